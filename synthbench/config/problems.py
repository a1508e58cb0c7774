"""Every fault of an experiment file at once, each with its place and a suggestion."""

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from synthbench.config.documents import Document, KeyPath
from synthbench.errors import UserError, did_you_mean


@dataclass
class Problems:
    """Collects messages `file:line: key.path: what is wrong`, each once, in the order of discovery."""

    messages: dict[str, None] = field(default_factory=dict)

    def add(self, document: Document, path: KeyPath, message: str) -> None:
        """Note what is wrong at a key."""
        key = ".".join(str(part) for part in path)
        place = document.place(path)
        self.messages[": ".join(part for part in (place, key, message) if part)] = None

    def add_error(self, document: Document, path: KeyPath, error: UserError) -> None:
        """Note every message of an error at a key."""
        for message in error.messages:
            self.add(document, path, message)

    def raise_if_any(self) -> None:
        """Raise one UserError with all messages, if there are any."""
        if self.messages:
            raise UserError(*self.messages)


def parse(schema: Any, value: Any, document: Document, path: KeyPath, problems: Problems) -> Any:  # noqa: ANN401
    """Validate a value against a pydantic model or any type; None (and the problems noted) if it fails.

    JSON is the way in because pydantic's strict mode takes a list for a tuple only there.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(schema)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        problems.add(document, path, f"a value of a type that is not plain YAML: {value!r}")
        return None
    try:
        return adapter.validate_json(text)
    except ValidationError as failure:
        faults = failure.errors(include_url=False)
        for fault in faults:
            # A list is "too short" also where its faulty items are merely not counted.
            if fault["type"] == "too_short" and any(
                _is_within(other["loc"], fault["loc"]) for other in faults
            ):
                continue
            location = _location_in(value, fault)
            problems.add(document, (*path, *location), _message(schema, value, fault, location))
        return None


def _is_within(location: tuple[str | int, ...], outer: tuple[str | int, ...]) -> bool:
    return len(location) > len(outer) and location[: len(outer)] == outer


def _location_in(value: Any, fault: Any) -> KeyPath:  # noqa: ANN401
    """Drop the tags that pydantic puts into locations for union members, and for keys at fault themselves."""
    location: tuple[str | int, ...] = fault["loc"]
    if fault["type"] == "union_tag_invalid":
        location = (*location, fault["ctx"]["discriminator"].strip("'"))
    kept: list[str | int] = []
    for index, part in enumerate(location):
        if isinstance(value, Mapping) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif fault["type"] != "missing" or index < len(location) - 1:
            continue
        kept.append(part)
    return tuple(kept)


def _message(schema: Any, value: Any, fault: Any, location: KeyPath) -> str:  # noqa: ANN401
    kind = fault["type"]
    if kind == "extra_forbidden":
        siblings = _field_names(schema, value, location[:-1])
        return f"unknown key{did_you_mean(str(location[-1]), siblings)}"
    if kind == "missing":
        return "missing; it has no default"
    if kind == "union_tag_invalid":
        tag = str(fault["ctx"]["tag"])
        return (
            f"unknown {location[-1]} '{tag}'{did_you_mean(tag, _words(str(fault['ctx']['expected_tags'])))}"
        )
    message = str(fault["msg"])
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = _SHAPES.get(kind) or message[0].lower() + message[1:]
    given = fault.get("input")
    if not isinstance(given, str | int | float):
        return message
    suggestion = ""
    if kind == "literal_error" and isinstance(given, str):
        suggestion = did_you_mean(given, _words(str(fault.get("ctx", {}).get("expected", ""))))
        suggestion = "" if suggestion.startswith("; known") else suggestion
    return f"{message}, is {json.dumps(given, ensure_ascii=False)}{suggestion}"


_SHAPES = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a mapping"),
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
}
"""pydantic speaks of JSON's objects and arrays; by kind of fault."""


def _words(listed: str) -> list[str]:
    """Return the words of a list in pydantic's messages: "'a', 'b' or 'c'"."""
    return [word.strip("' ") for word in listed.replace(" or ", ",").split(",")]


def _field_names(schema: Any, value: Any, location: KeyPath) -> set[str]:  # noqa: ANN401
    """Return the keys that the models at a location know."""
    found = list(_members(schema, value))
    for part in location:
        inner = [annotation for member in found for annotation in _inner(member, part)]
        value = _child(value, part)
        found = [member for annotation in inner for member in _members(annotation, value)]
    return {name for member in found if _is_model(member) for name in member.model_fields}


def _child(value: Any, part: str | int) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return value.get(str(part))
    if isinstance(value, list) and isinstance(part, int):
        return value[part]
    return None


def _members(annotation: Any, value: Any) -> list[Any]:  # noqa: ANN401
    """Return what an annotation stands for, the members of a union one by one.

    Of several models those are taken that the value is likely meant for, if there are such.
    """
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _members(typing.get_args(annotation)[0], value)
    if origin not in (typing.Union, types.UnionType):
        return [annotation]
    members = [member for inner in typing.get_args(annotation) for member in _members(inner, value)]
    return [member for member in members if _is_model(member) and _is_likely(member, value)] or members


def _inner(annotation: Any, part: str | int) -> list[Any]:  # noqa: ANN401
    """Return the annotation of what stands at a key or an index."""
    if _is_model(annotation):
        known = annotation.model_fields.get(str(part))
        return [known.annotation] if known else []
    arguments = typing.get_args(annotation)
    return [arguments[-1] if isinstance(part, str) else arguments[0]] if arguments else []


def _is_model(annotation: Any) -> bool:  # noqa: ANN401
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_likely(model: type[BaseModel], value: Any) -> bool:  # noqa: ANN401
    """Tell whether the value has a key that the model must have, or names the model by a constant."""
    if not isinstance(value, Mapping):
        return False
    return any(
        name in value if known.is_required() else typing.get_args(known.annotation) == (value.get(name),)
        for name, known in model.model_fields.items()
    )
