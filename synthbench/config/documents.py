"""YAML files as plain data, with the file and line of every value."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import NO_FILE, PACKAGE_PREFIX, in_package, read_settings, why_no_file
from synthbench.worlds import NAME

if TYPE_CHECKING:
    from synthbench.base.yaml_loading import Lines

KeyPath = tuple[str | int, ...]

SOURCE_KEYS = ("task", "file", "documents", NAME)
COMPONENT_KEYS = ("method", "trainer", "evaluator", "name", "source", *SOURCE_KEYS, "endpoint", "local")
"""Keys that name a section's component: a patch that changes one replaces the whole section.

The keys of sources count in sources only, since methods may have settings of the same name.
"""


@dataclass(frozen=True)
class Document:
    """Data of a YAML file (mappings, lists, scalars) and the location of each of its keys, "file:line"."""

    data: Any
    locations: Mapping[KeyPath, str] = field(default_factory=dict)

    def location(self, path: KeyPath) -> str:
        """Return the location of the key, or of the nearest enclosing key with a location."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.locations:
                return self.locations[path[:length]]
        return ""

    def at(self, path: KeyPath) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value at a path, None if there is none."""
        found = self.data
        for key in path:
            if isinstance(found, dict):
                found = found.get(key)
            else:
                found = found[key] if isinstance(found, list) and isinstance(key, int) else None
        return found

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """Return the mapping at a path, {} if there is none."""
        found = self.at(path)
        return found if isinstance(found, dict) else {}

    def section(self, *path: str | int) -> "Document":
        """Return the mapping at a path as a document of its own."""
        inner = {own: location for own, location in self.locations.items() if own[: len(path)] == path}
        return Document(self.mapping(*path), {own[len(path) :]: each for own, each in inner.items()})

    def replaced(
        self, path: KeyPath, value: object, locations: Mapping[KeyPath, str] | None = None
    ) -> "Document":
        """Return a copy with `value` at a path and `locations` added; this document is unchanged."""
        return Document(_replaced(self.data, path, value), {**self.locations, **(locations or {})})


def _replaced(data: Any, path: KeyPath, value: object) -> Any:  # noqa: ANN401
    if not path:
        return value
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[path[0]] = _replaced(data[path[0]], path[1:], value)  # type: ignore[index]
    return changed


def read_document(file: Path) -> Document:
    """Read a YAML 1.2 file and the files that `include` lists: relative paths, or "package:module/path".

    The file's own values override included ones. Raises UserError for a file that is missing, not UTF-8, not
    a YAML mapping, includes itself, or has a duplicate key.
    """
    _check_moved(file)
    return _read(file, ())


def _check_moved(file: Path) -> None:
    """Raise UserError with the new path for a file that has moved to a subfolder of `experiments`."""
    if file.absolute().parent.name == "experiments" and why_no_file(file) == NO_FILE:
        found = sorted(file.parent.rglob(file.name))
        if found:
            raise UserError(f"{file}: {NO_FILE}; this experiment is {found[0]}")


def _read(file: Path, including: tuple[Path, ...]) -> Document:
    own = parse_document(read_settings(file), str(file))
    if not isinstance(own.data, dict):
        found = "empty" if own.data is None else f"a {type(own.data).__name__}"
        raise UserError(f"{file}:1: must be a mapping of keys to values, is {found}")
    includes = own.data.pop("include", [])
    if not (isinstance(includes, list) and all(isinstance(name, str) for name in includes)):
        raise UserError(f"{own.location(('include',))}: include: must be a list of file names")
    merged = Document({})
    for name in includes:
        path = _included(file, name)
        wrong = why_no_file(path)
        if wrong:
            raise UserError(f"{own.location(('include',))}: include: {wrong}: {path}")
        chain = (*including, file.resolve())
        if path.resolve() in chain:
            names = " -> ".join(each.name for each in (*chain, path))
            raise UserError(f"{own.location(('include',))}: include: includes itself: {names}")
        included = _read(path, chain)
        merged = merge(merged, included, keep_nulls=True)
    return merge(merged, own, keep_nulls=True)


def _included(file: Path, name: str) -> Path:
    """Return the path of an included file; for a missing package, return the name unchanged."""
    if not name.startswith(PACKAGE_PREFIX):
        return file.parent / name
    paths = in_package(name)
    return next((path for path in paths if path.is_file()), paths[0] if paths else Path(name))


def parse_document(text: str, name: str) -> Document:
    """Parse YAML text; locations and messages use `name` as the file's name."""
    data, lines = _parsed(text, name)
    return Document(_as_text(data), {path: f"{name}:{line}" for path, line in lines.items()})


@lru_cache(maxsize=32)
def _parsed(text: str, name: str) -> "tuple[Any, Lines]":
    """Parse YAML text, cached since a command reads some files several times. Don't change the result."""
    from synthbench.base.yaml_loading import load_with_lines

    return load_with_lines(text, name)


def _as_text(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return the data with keys and dates as text."""
    if isinstance(value, dict):
        return {str(key): _as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def expand_dotted(
    patch: Document, faults: list[str] | None = None, whole: Mapping[str, Any] | None = None
) -> Document:
    """Turn keys such as `train.base.model` into nested mappings.

    Row names may contain dots. In a top-level patch they are looked up in `whole`, the document to be
    patched: in `variants.a.b.train`, the name is `a.b` if that variant exists, else `a`. The longest
    matching name counts.

    Raises UserError if one file sets a value both dotted and nested. If `faults` is given, appends the
    message to this list instead, and the later value counts. If two files set the value, the later file's
    counts.
    """
    result = Document({}, {(): patch.location(())})
    for key, value in patch.data.items():
        parts = _parts(key, whole or {})
        nested: Any = value
        for part in reversed(parts):
            nested = {part: nested}
        locations: dict[KeyPath, str] = {
            tuple(parts[:n]): patch.location((key,)) for n in range(1, len(parts) + 1)
        }
        for path, location in patch.locations.items():
            if path[:1] == (key,):
                locations[(*parts, *path[1:])] = location
        twice, location = _in_both(result.data, nested), patch.location((key,))
        if twice and _file(result.location(twice)) == _file(location):
            message = f"{location}: {'.'.join(twice)}: is given twice, dotted and nested"
            if faults is None:
                raise UserError(message)
            faults.append(message)
        result = merge(result, Document(nested, locations), keep_nulls=True)
    return result


def _parts(key: str, whole: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    rest = key
    while rest:
        named = (name for name in _row_names(whole, parts) if f"{rest}.".startswith(f"{name}."))
        parts.append(max(named, key=len, default=rest.partition(".")[0]))
        rest = rest[len(parts[-1]) + 1 :]
    return parts


def _row_names(whole: Mapping[str, Any], path: Sequence[str]) -> Iterable[str]:
    """Return the names of rows or axis values that may follow a top-level path."""
    if path == ["variants"] or (path[:1] == ["grid"] and path[3:] == ["variants"]):
        return [*Document(whole).mapping("variants"), str(whole.get("baseline"))]
    return Document(whole).mapping(*path) if path[:1] == ["grid"] and len(path) == 2 else ()


def _in_both(first: Any, second: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return a path at which both mappings set a value, () if there is none."""
    for key in first.keys() & second.keys():
        if not (isinstance(first[key], dict) and isinstance(second[key], dict)):
            return (key,)
        inner = _in_both(first[key], second[key])
        if inner:
            return (key, *inner)
    return ()


def _file(location: str) -> str:
    return location.rpartition(":")[0]


def merge(under: Document, over: Document, *, keep_nulls: bool = False) -> Document:
    """Merge two documents; values of `over` replace values of `under`.

    Mappings are merged key by key; all else is replaced. Null removes a key. A mapping that names another
    component (see COMPONENT_KEYS) replaces the whole mapping of `under`. `keep_nulls` is for patches to be
    applied later: nulls stay, except if they remove a variant, axis or axis value.
    """
    locations, over_locations = dict(under.locations), over.locations

    def merged(under: Any, over: Any, path: KeyPath) -> Any:  # noqa: ANN401
        if not (isinstance(under, dict) and isinstance(over, dict)) or is_another_component(under, over):
            return replaced(over, path)
        if path not in locations and path in over_locations:
            locations[path] = over_locations[path]
        result = dict(under)
        for key, value in over.items():
            child = (*path, key)
            if value is None and (not keep_nulls or (key in under and _is_row(child))):
                result.pop(key, None)
                replaced(None, child)
            else:
                result[key] = merged(under[key], value, child) if key in under else replaced(value, child)
        return result

    def replaced(value: Any, path: KeyPath) -> Any:  # noqa: ANN401
        for known in [known for known in locations if known[: len(path)] == path]:
            del locations[known]
        locations.update({k: location for k, location in over_locations.items() if k[: len(path)] == path})
        return value if keep_nulls else without_nulls(value)

    return Document(merged(under.data, over.data, ()), locations)


def _is_row(path: KeyPath) -> bool:
    """Return whether a top-level path is a variant, an axis or an axis value.

    A null at such a path removes the entry at once. A null further inside is part of a patch applied later.
    """
    return (path[0] == "variants" and len(path) == 2) or (path[0] == "grid" and len(path) in (2, 3))


def is_another_component(under: Mapping[str, Any], over: Mapping[str, Any]) -> bool:
    """Return whether a section's patch names another component, and thus replaces the whole section."""
    is_method = "method" in under or "method" in over
    # If the value is a mapping, the key is the name of an axis or row.
    known = [
        key
        for key in COMPONENT_KEYS
        if not (is_method and key in SOURCE_KEYS)
        and not any(isinstance(each.get(key), dict) for each in (under, over))
    ]
    is_named_anew = any(key in over and under.get(key) != over[key] for key in known)
    return is_named_anew and any(key in under for key in known)


def without_nulls(value: Any) -> Any:  # noqa: ANN401
    """Return the data without the keys whose value is null."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    return value


def flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, value) of every leaf; lists are leaves."""
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def texts_in(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:  # noqa: ANN401 - whatever YAML holds
    """Yield every text in the data with its path, which starts with `path`."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(inner, (*path, key))
