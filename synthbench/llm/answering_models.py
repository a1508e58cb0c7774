"""Names of models that answered, where they differ from the requested model."""

import re
from collections.abc import Iterable, Iterator

from synthbench.base.patterns import linear_pattern

_VERSIONS = linear_pattern(r"(?>(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{3,4}|latest|preview))*)")
_FOLDER = linear_pattern(r"^(?:[/~]|\.{1,2}/|[A-Za-z]:[\\/])|\.gguf$", re.IGNORECASE)


def is_alias(asked: str, answered: str) -> bool:
    """Return whether two names denote one model.

    A version (gpt-4o-2024-08-06), a tag or a provider is ignored if only one name has it.
    """
    (maker, name, tag), (other_maker, other_name, other_tag) = map(_parts, (asked, answered))
    if (maker and other_maker and maker != other_maker) or (tag and other_tag and tag != other_tag):
        return False
    short, long = sorted((name, other_name), key=len)
    return long.startswith(short) and _VERSIONS.fullmatch(long, len(short)) is not None


def notes_on_models(asked: str, answered: Iterable[str]) -> Iterator[str]:
    """Yield a note on each model that answered: a warning, unless its name is an alias of `asked` or a path.

    A user's own server may report its model's path as the name.
    """
    for name in answered:
        if is_alias(asked, name) or _FOLDER.search(name):
            yield f"The LLM {asked} answered as {name}."
        else:
            yield f"Another LLM answered than was asked: {name} instead of {asked}."


def _parts(model: str) -> tuple[str, str, str]:
    """Return a model's provider, its name, and its tag."""
    name, _, tag = model.lower().removeprefix("models/").partition(":")
    maker, _, name = name.rpartition("/")
    return maker, name, tag
