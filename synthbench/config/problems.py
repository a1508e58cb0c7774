"""Every fault of an experiment file at once, each with its place and a suggestion."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from synthbench.config.documents import Document, KeyPath
from synthbench.config.wording import describe
from synthbench.errors import UserError
from synthbench.given_files import STARTS_FROM


@dataclass(frozen=True)
class Fault:
    """What is wrong with a key, and where that key stands ("file:line", or the option that gave it)."""

    place: str
    key: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.key, self.what) if part)


@dataclass
class Problems:
    """Collects faults, each once, in the order of discovery.

    `folder` is the experiment file's: relative names of files and folders in it start from there.
    """

    folder: Path | None = None
    faults: dict[Fault, None] = field(default_factory=dict)

    def add(self, document: Document, path: KeyPath, what: str) -> None:
        """Note what is wrong at a key."""
        self.note(Fault(document.place(path), ".".join(str(part) for part in path), what))

    def add_error(self, document: Document, path: KeyPath, error: UserError) -> None:
        """Note every message of an error at a key."""
        for message in error.messages:
            self.add(document, path, message)

    def note(self, *faults: Fault) -> None:
        """Note faults that are known with their place."""
        self.faults.update(dict.fromkeys(faults))

    def raise_if_any(self) -> None:
        """Raise one UserError with a message on each fault, if there are any."""
        if self.faults:
            raise UserError(*dict.fromkeys(str(fault) for fault in self.faults))


def parse(
    schema: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
    document: Document,
    path: KeyPath,
    problems: Problems,
    beside: Collection[str] = (),
) -> Any:  # noqa: ANN401
    """Validate a value against a pydantic model or any type; None (and the problems noted) if it fails.

    `beside` are keys of the same section that others read: an unknown key may be one of them, misspelt.
    JSON is the way in because pydantic's strict mode takes a list for a tuple only there.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(schema)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        problems.add(document, path, f"a value of a type that is not plain YAML: {value!r}")
        return None
    try:
        return adapter.validate_json(text, context={STARTS_FROM: problems.folder})
    except ValidationError as failure:
        found = failure.errors(include_url=False)
        by_location: dict[KeyPath, list[Any]] = {}
        for fault in found:
            # A list is "too short" also where its faulty items are merely not counted.
            if fault["type"] == "too_short" and any(
                _is_within(other["loc"], fault["loc"]) for other in found
            ):
                continue
            by_location.setdefault(_location_in(value, fault), []).append(fault)
        for location, faults in by_location.items():
            problems.add(document, (*path, *location), describe(schema, value, faults, location, beside))
        return None


def readable(schema: type[BaseModel], value: Mapping[str, Any], folder: Path | None = None) -> Any:  # noqa: ANN401 - an instance of schema
    """Return a model of which only what can be read is as given; the rest is default, None without one.

    For looking further where something is known to be wrong: it is not valid as a whole.
    """
    fields: dict[str, Any] = {}
    for name, known in schema.model_fields.items():
        fields[name] = None if known.is_required() else known.get_default(call_default_factory=True)
        if name in value:
            annotation: Any = Annotated[known.annotation, known]
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            try:
                fields[name] = adapter.validate_json(
                    json.dumps(value[name]), strict=True, context={STARTS_FROM: folder}
                )
            except (ValidationError, TypeError, ValueError):
                continue
    return schema.model_construct(**fields)


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
