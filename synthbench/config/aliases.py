"""Names that stand for a source, another one in each row: `aliases: {gold: MRPC-train}`."""

from collections.abc import Iterator, Mapping
from typing import Any

from synthbench.config.documents import Document, KeyPath

LISTS = {"selection": ("sources",), "evaluate": ("tasks", "if_found", "exclude", "train", "dev")}


def without_aliases(document: Document) -> Document:
    """Return a run in which each alias is replaced by the source that it stands for, and has its place.

    What is not even shaped like a run is left as it is; that it is wrong is for the schema to say.
    """
    aliases = document.data.get("aliases")
    if not isinstance(aliases, dict):
        return document
    data, places = document.data, dict(document.places)
    for path, name in references(document.data):
        if isinstance(aliases.get(name), str):
            data = _with(data, path, aliases[name])
            places[path] = document.place(("aliases", name))
    return Document(data, places)


def references(run: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield every place of a run where a source is named, with the name, as far as it is readable."""
    for name, part in _items(run, "data"):
        if isinstance(part, dict):
            yield from _texts(("data", name, "source"), part.get("source"))
            for role, source in _items(part, "sources"):
                yield from _texts(("data", name, "sources", role), source)
            yield from _steps(("data", name, "prepare"), part.get("prepare"))
    train = run.get("train")
    selection = train.get("selection") if isinstance(train, dict) else None
    yield from _lists(("train", "selection"), selection, LISTS["selection"])
    for name, evaluation in _items(run, "evaluate"):
        yield from _lists(("evaluate", name), evaluation, LISTS["evaluate"])


def _steps(path: KeyPath, steps: object) -> Iterator[tuple[KeyPath, str]]:
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        yield from _lists((*path, index), step, ("sources",))


def _items(section: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    found = section.get(key)
    yield from found.items() if isinstance(found, dict) else ()


def _lists(path: KeyPath, section: object, keys: tuple[str, ...]) -> Iterator[tuple[KeyPath, str]]:
    for key in keys if isinstance(section, dict) else ():
        listed = section.get(key)  # type: ignore[attr-defined]
        for index, name in enumerate(listed if isinstance(listed, list) else ()):
            yield from _texts((*path, key, index), name)


def _texts(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value


def _with(data: Any, path: KeyPath, value: object) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return data with another value at a path, leaving what is shared with other rows untouched."""
    if not path:
        return value
    key, *inner = path
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[key] = _with(data[key], tuple(inner), value)  # type: ignore[index]
    return changed
