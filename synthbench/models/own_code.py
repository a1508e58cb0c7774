"""Trust in models' own code: only code of the bases that an experiment trusts may run.

An artifact may come from another machine. Code that its description names, or that its files hold, never runs
unless the same files belong to a base with `trust_remote_code` in the experiment.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from synthbench.base.durability import file_hash, open_file
from synthbench.base.patterns import linear_pattern
from synthbench.models import reference
from synthbench.models.pretrained import Pretrained, pretrained_in

_OF_LIBRARY = linear_pattern(r"^sentence_transformers(?>(?:\.[a-z_]+)*)\.[A-Z]\w+")
"""Matches classes of sentence-transformers, but not what its modules import, such as pickle."""
MOST_BYTES = 50_000_000
"""Maximum bytes read from a JSON file: a tokenizer's settings may list its whole vocabulary."""


def with_own_code(settings: object) -> Iterator[Pretrained]:
    """Yield the models in a plug-in's settings that are allowed to run their own code."""
    return (base for base in pretrained_in(settings) if base.trust_remote_code)


def why_untrusted(base: Pretrained, trusted: Collection[Pretrained], checkpoint: Path | None) -> str:
    """Return why an artifact's model may not run its own code, "" if it may.

    `checkpoint` is the folder of the artifact's checkpoint, None if the artifact names a model elsewhere.
    Downloads the trusted bases if needed; raises UserError if one can't be found.
    """
    if not trusted:
        return "it asks for Python code of its own to be run, and the experiment allows none"
    if checkpoint is None:
        named = {(reference.anywhere(each.model), each.revision) for each in trusted}
        is_named = (base.model, base.revision) in named
        return (
            "" if is_named else f"it asks for the code of {base.model}, which the experiment does not trust"
        )
    folders = [Path(reference.resolve(each.model, each.revision)) for each in trusted]
    known = {pair for folder in folders for pair in _code(folder)}
    if unknown := sorted(name for name, digest in _code(checkpoint) if (name, digest) not in known):
        return f"its {unknown[0]} is not that of a base that the experiment trusts"
    if unread := next((file for file in sorted(checkpoint.rglob("*.json")) if _json(file) is None), None):
        return _unreadable(unread.name)
    mentioned = {name for folder in folders for name in _mentioned(folder)}
    if unknown := sorted(set(_mentioned(checkpoint)) - mentioned):
        return f"it names the code {unknown[0][:80]}, which no base that the experiment trusts names"
    return ""


def foreign_module(checkpoint: Path) -> str:
    """Return a message on the first module in modules.json that is not sentence-transformers', else ""."""
    file = checkpoint / "modules.json"
    if not file.exists():
        return ""
    if (found := _json(file)) is None:
        return _unreadable(file.name)
    strange = [name for name in _types(found) if not _OF_LIBRARY.fullmatch(name)]
    return f"its modules.json names {strange[0][:80]!a}, which is no module of a model" if strange else ""


def _code(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name (without folders) and the hash of each Python file."""
    for file in sorted(folder.rglob("*.py")):
        yield file.name, file_hash(file)


def _mentioned(folder: Path) -> Iterator[str]:
    """Yield the classes outside sentence-transformers that a model's JSON files tell loaders to import."""
    for file in sorted(folder.rglob("*.json")):
        found = _json(file)
        if file.name == "modules.json":
            yield from (name for name in _types(found) if not _OF_LIBRARY.fullmatch(name))
        elif isinstance(found, dict) and "auto_map" in found:
            yield from _texts(found["auto_map"])


def _unreadable(name: str) -> str:
    return f"its {name} is no JSON of at most {MOST_BYTES // 1_000_000} MB, and may name any code"


def _json(file: Path) -> object:
    """Return the content of a JSON file; None if it can't be read, is too large or is null."""
    try:
        with open_file(file) as stream:
            content = stream.read(MOST_BYTES + 1)
        return None if len(content) > MOST_BYTES else json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None


def _types(modules: object) -> Iterator[str]:
    for module in modules if isinstance(modules, list) else []:
        yield str(module.get("type")) if isinstance(module, dict) else str(module)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
