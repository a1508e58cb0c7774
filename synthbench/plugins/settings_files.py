"""Read a plug-in's own YAML files, such as prompts; every error names file, line and key."""

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.yaml_loading import load_with_lines

Settings = TypeVar("Settings", bound=BaseModel)
Location = tuple[int | str, ...]


def parsed_settings(text: str, name: Path | str, schema: type[Settings]) -> Settings:
    """Return the settings in a YAML text.

    Raises UserError with all faults; `name` is the text's name in these messages.
    """
    # The order of keys can decide what a plug-in generates, and no identity tells it: it must stay.
    data, _ = load_with_lines(text, str(name), is_merged_first=True)
    try:
        # Strict pydantic accepts a list as a tuple only from JSON.
        return schema.model_validate_json(to_json(data))
    except ValidationError as error:
        raise UserError(*_messages(error, text, name, schema)) from None


def _messages(error: ValidationError, text: str, name: Path | str, schema: type[BaseModel]) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        location, key = _located_key(text, name, fault["loc"])
        yield ": ".join(part for part in (location, key, _wording(fault, schema)) if part)


def _wording(fault: Mapping[str, Any], schema: type[BaseModel]) -> str:
    kind = fault["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = _known_keys(schema, fault["loc"][:-1])
        return f"unknown key{did_you_mean(str(fault['loc'][-1]), known)}"
    if kind == "value_error":
        return str(fault["ctx"]["error"])
    if kind == "string_pattern_mismatch":
        return "must not be empty"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"must be a mapping of keys to values, is {_shown(fault['input'])}"
    if kind in ("tuple_type", "list_type"):
        return f"must be a list, is {_shown(fault['input'])}"
    if kind == "too_short":
        return f"needs at least {fault['ctx']['min_length']}, has {fault['ctx']['actual_length']}"
    if kind == "string_type":
        return f"must be text, is {_shown(fault['input'])}"
    return str(fault["msg"]).lower()


def _shown(value: object) -> str:
    return "empty" if value is None else reprlib.repr(value)


def _known_keys(schema: type[BaseModel], location: Location) -> Sequence[str]:
    """Return the permitted keys of the section at a location; it may lie in a mapping or list of sections."""
    for key in location:
        field = _fields(schema).get(str(key))
        if field is not None:
            models = [part for part in _parts(field.annotation) if isinstance(part, type)]
            schema = next((part for part in models if issubclass(part, BaseModel)), schema)
    return tuple(_fields(schema))


def _fields(schema: type[BaseModel]) -> Mapping[str, Any]:
    """Return key in a file -> the schema's field."""
    return {field.alias or name: field for name, field in schema.model_fields.items()}


def _parts(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - types have no type in common
    yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _parts(part)


def _located_key(text: str, name: Path | str, location: Location) -> tuple[str, str]:
    """Return "file:line" and the dotted key of a location.

    The line of a missing key is the line of its section.
    """
    lines = load_with_lines(text, str(name))[1]
    written: Location = ()
    keys: list[int | str] = []
    for step in location:
        # An item that stands alone, without a list around it, has no index in the file.
        if (*written, step) in lines and written == tuple(keys):
            written = (*written, step)
            keys.append(step)
        elif not isinstance(step, int):
            keys.append(step)
    return f"{name}:{lines[written]}", ".".join(map(str, keys))
