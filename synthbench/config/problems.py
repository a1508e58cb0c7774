"""Every fault of an experiment file at once, each with its place and a suggestion."""

import json
import types
import typing
from collections.abc import Iterator, Mapping
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
        for fault in failure.errors(include_url=False):
            location = _location_in(value, fault["loc"])
            problems.add(document, (*path, *location), _message(schema, value, fault, location))
        return None


def _location_in(value: Any, location: tuple[str | int, ...]) -> KeyPath:  # noqa: ANN401
    """Drop the tags that pydantic puts into locations for union members."""
    kept: list[str | int] = []
    for index, part in enumerate(location):
        if isinstance(value, Mapping) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif index < len(location) - 1 or not isinstance(value, Mapping):
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
    message = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = message[0].lower() + message[1:]
    given = fault.get("input")
    if isinstance(given, str | int | float | bool):
        suggestion = ""
        if kind == "literal_error" and isinstance(given, str):
            expected = str(fault.get("ctx", {}).get("expected", ""))
            suggestion = did_you_mean(
                given, [word.strip("' ") for word in expected.replace(" or ", ",").split(",")]
            )
            suggestion = "" if suggestion.startswith("; known") else suggestion
        return f"{message}, is {json.dumps(given, ensure_ascii=False)}{suggestion}"
    return message


def _field_names(schema: Any, value: Any, location: KeyPath) -> set[str]:  # noqa: ANN401
    """Return the keys that the models at a location know."""
    candidates = list(_models(schema, value))
    for part in location:
        value = _child(value, part)
        inner: list[Any] = []
        for candidate in candidates:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                known = candidate.model_fields.get(str(part))
                inner += list(_models(known.annotation, value)) if known else []
            else:
                inner.append(candidate)
        candidates = inner
    models = [model for model in candidates if isinstance(model, type) and issubclass(model, BaseModel)]
    return {name for model in models for name in model.model_fields}


def _child(value: Any, part: str | int) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return value.get(str(part))
    if isinstance(value, list) and isinstance(part, int):
        return value[part]
    return None


def _models(annotation: Any, value: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the model classes within an annotation (unions, lists and mappings are looked into).

    Of several models the one is taken whose Literal fields agree with the value, if any does.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    origin = typing.get_origin(annotation)
    if origin is None:
        return
    members = [model for inner in typing.get_args(annotation) for model in _models(inner, value)]
    if origin in (typing.Union, types.UnionType):
        agreeing = [model for model in members if _agrees(model, value)]
        members = agreeing or members
    yield from members


def _agrees(model: type[BaseModel], value: Any) -> bool:  # noqa: ANN401
    if not isinstance(value, Mapping):
        return False
    tags = {
        name: typing.get_args(known.annotation)
        for name, known in model.model_fields.items()
        if typing.get_origin(known.annotation) is typing.Literal
    }
    return any(value.get(name) in allowed for name, allowed in tags.items())
