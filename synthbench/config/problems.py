"""Reports all faults of an experiment file at once, each with its location and a remedy."""

import json
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import STARTS_FROM
from synthbench.config.documents import Document, KeyPath
from synthbench.worlds import NAME

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
COMPONENT_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9_-]*|[A-Za-z0-9_./~-]+\.py:[A-Za-z_][A-Za-z0-9_]*)$"
TASK_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.,() -]*$"
ROW_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"
COMMIT_PATTERN = r"^[0-9a-f]{40}$"

_SENTENCES = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a mapping"),
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "missing": "missing; it has no default",
    "union_tag_not_found": "needs the key {discriminator}",
}
"""Messages by pydantic's error type; names in braces come from the error's context."""
_PATTERNS = {
    NAME_PATTERN: "must be of letters, digits, _ and -",
    COMPONENT_PATTERN: "must be of letters, digits, _ and -, or FILE.py:CLASS",
    TASK_PATTERN: "must be of letters, digits, _, -, dots, commas, brackets and spaces",
    ROW_NAME_PATTERN: "must be of letters, digits, _ and -, and dots between them",
    COMMIT_PATTERN: "must be a full commit hash (40 hexadecimal digits)",
}
_OTHER_TYPE = ("_type", "_parsing", "_from_float")


def describe(
    schema: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
    faults: Sequence[Any],
    location: KeyPath,
    beside: Collection[str] = (),
) -> str:
    """Return one message on pydantic's errors at a location.

    Several errors mean that the value fits no member of a union. `beside` are further valid keys of the
    section, for suggestions.
    """
    kind = faults[0]["type"]
    if kind == "extra_forbidden":
        return _unknown_key(schema, value, location, beside if len(location) == 1 else ())
    if kind == "union_tag_invalid":
        context = faults[0]["ctx"]
        tag = str(context["tag"])
        return f"unknown {location[-1]} '{tag}'{did_you_mean(tag, _words(str(context['expected_tags'])))}"
    # The value is meant for the union member of its own type.
    meant = [fault for fault in faults if not str(fault["type"]).endswith(_OTHER_TYPE)] or faults
    sentences = list(dict.fromkeys(_sentence(fault) for fault in meant))
    message = " or ".join([sentences[0], *(each.removeprefix("must be ") for each in sentences[1:])])
    return message + _given(meant[0])


def _unknown_key(schema: Any, value: Any, location: KeyPath, beside: Collection[str]) -> str:  # noqa: ANN401
    key, siblings = str(location[-1]), _field_names(schema, value, location[:-1])
    if key in siblings:
        return "does not go with the other keys here"
    return f"unknown key{did_you_mean(key, {*siblings, *beside})}"


def _sentence(fault: Any) -> str:  # noqa: ANN401
    kind, context, message = fault["type"], fault.get("ctx", {}), str(fault["msg"])
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind in ("too_short", "string_too_short"):
        least = context["min_length"]
        return "must not be empty" if least == 1 else f"must hold at least {least} values"
    if kind == "too_long":
        return f"must hold at most {context['max_length']:,} values"
    if kind == "string_too_long":
        return f"must have at most {context['max_length']:,} characters"
    if kind == "missing" and isinstance(fault["loc"][-1], int):
        return "missing; the list is too short"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"must match {context['pattern']}")
    if kind in _SENTENCES:
        return _SENTENCES[kind].format_map({name: _number(value) for name, value in context.items()})
    return message[0].lower() + message[1:]


def _number(value: Any) -> Any:  # noqa: ANN401
    """Write a whole number without decimals: 1, not 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _given(fault: Any) -> str:  # noqa: ANN401
    """Return what to append to an error's message: ", is VALUE", a suggestion, both, or ""."""
    kind, given = fault["type"], fault.get("input")
    if kind in ("missing", "value_error", "assertion_error", "too_short", "too_long", "union_tag_not_found"):
        return ""
    if kind == "source" and isinstance(given, Mapping):
        return _close(list(given), ("task", "file", NAME))
    if given is None or isinstance(given, list | dict):
        return f", is {'empty' if given is None else 'a list' if isinstance(given, list) else 'a mapping'}"
    shown = f", is {json.dumps(given, ensure_ascii=False)}"
    if kind != "literal_error" or not isinstance(given, str):
        return shown
    return shown + _close([given], _words(str(fault.get("ctx", {}).get("expected", ""))))


def _close(words: Sequence[str], known: Sequence[str]) -> str:
    """Return a suggestion for the first word that resembles a known one, "" if none does."""
    hints = (did_you_mean(word, known) for word in words)
    return next((hint for hint in hints if not hint.startswith("; known")), "")


def _words(listed: str) -> list[str]:
    """Parse a list in pydantic's messages, such as "'a', 'b' or 'c'"."""
    return [word.strip("' ") for word in listed.replace(" or ", ",").split(",")]


def _field_names(schema: Any, value: Any, location: KeyPath) -> set[str]:  # noqa: ANN401
    """Return the valid keys of the models at a location."""
    found = list(_members(schema, value))
    for part in location:
        inner = [annotation for member in found for annotation in _inner(member, part)]
        value = Document(value).at((part,))
        found = [member for annotation in inner for member in _members(annotation, value)]
    return {name for member in found if _is_model(member) for name in member.model_fields}


def _members(annotation: Any, value: Any) -> list[Any]:  # noqa: ANN401
    """Return an annotation's types: the members of a union, else the type itself.

    If a union has models that the value is likely meant for, return only these.
    """
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _members(typing.get_args(annotation)[0], value)
    if origin not in (typing.Union, types.UnionType):
        return [annotation]
    members = [member for inner in typing.get_args(annotation) for member in _members(inner, value)]
    return [member for member in members if _is_model(member) and _is_likely(member, value)] or members


def _inner(annotation: Any, part: str | int) -> list[Any]:  # noqa: ANN401
    """Return the annotation of the value at a key or an index."""
    if _is_model(annotation):
        known = annotation.model_fields.get(str(part))
        return [known.annotation] if known else []
    arguments = typing.get_args(annotation)
    return [arguments[-1] if isinstance(part, str) else arguments[0]] if arguments else []


def _is_model(annotation: Any) -> bool:  # noqa: ANN401
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_likely(model: type[BaseModel], value: Any) -> bool:  # noqa: ANN401
    """Return whether the value has one of the model's mandatory keys, or its constant tag."""
    if not isinstance(value, Mapping):
        return False
    return any(
        name in value if known.is_required() else typing.get_args(known.annotation) == (value.get(name),)
        for name, known in model.model_fields.items()
    )


@dataclass(frozen=True)
class Fault:
    """A key's fault, and its location ("file:line", or the option that set it)."""

    location: str
    key: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.location, self.key, self.what) if part)


@dataclass
class Problems:
    """Collects distinct faults, in the order of discovery.

    `folder` is the experiment file's folder, from which relative paths start.
    """

    folder: Path | None = None
    faults: dict[Fault, None] = field(default_factory=dict)

    def add(self, document: Document, path: KeyPath, what: str) -> None:
        """Note a fault of a key."""
        self.note(Fault(document.location(path), ".".join(str(part) for part in path), what))

    def note(self, *faults: Fault) -> None:
        """Note faults that already have a location."""
        self.faults.update(dict.fromkeys(faults))

    def raise_if_any(self) -> None:
        """Raise one UserError with a message for each fault, if there are any."""
        if self.faults:
            raise UserError(*dict.fromkeys(str(fault) for fault in self.faults))


@dataclass(frozen=True)
class Cursor:
    """A key of a document; gives the key's value and collects faults of the key in Problems."""

    document: Document
    problems: Problems
    path: KeyPath = ()

    def __getitem__(self, key: str | int) -> "Cursor":
        return Cursor(self.document, self.problems, (*self.path, key))

    @property
    def value(self) -> Any:  # noqa: ANN401 - whatever the file holds
        """The value at this key, None if there is none."""
        return self.document.at(self.path)

    @property
    def mapping(self) -> dict[str, Any]:
        """The value if it is a mapping, else {}."""
        return self.document.mapping(*self.path)

    @property
    def sections(self) -> "Iterator[tuple[str, Cursor]]":
        """The keys and Cursors of the mappings directly below."""
        return ((name, self[name]) for name, each in self.mapping.items() if isinstance(each, dict))

    def add(self, what: str) -> None:
        """Note a fault of this key."""
        self.problems.add(self.document, self.path, what)

    def is_known(self, what: str, name: str, known: Collection[str]) -> bool:
        """Return whether a name is known; if not, note a fault with a suggestion."""
        if name not in known:
            self.add(f"no {what} is called '{name}'{did_you_mean(name, known)}")
        return name in known

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note every message of a UserError raised within the block."""
        try:
            yield
        except UserError as error:
            for message in error.messages:
                self.add(message)

    def passes(self, check: Callable[[], object]) -> bool:
        """Return whether a check passes; note its UserError if not."""
        with self.noting():
            check()
            return True
        return False

    def parse(self, schema: Any, value: Any = None, beside: Collection[str] = ()) -> Any:  # noqa: ANN401
        """Return this key's value, or `value`, validated by a model or type; None after noting faults.

        `beside` are further valid keys of the section, for suggestions. Validates the value as JSON, since
        pydantic's strict mode accepts a list as a tuple only in JSON.
        """
        value = self.value if value is None else value
        try:
            text = json.dumps(value)
        except (TypeError, ValueError):
            self.add(f"a value of a type that is not plain YAML: {value!r}")
            return None
        try:
            return _reader(schema).validate_json(text, context={STARTS_FROM: self.problems.folder})
        except ValidationError as failure:
            found = failure.errors(include_url=False)
        by_location: dict[KeyPath, list[Any]] = {}
        for fault in found:
            # Pydantic does not count faulty items, so it may also call the list too short.
            is_within = (each["loc"][: len(fault["loc"])] == fault["loc"] != each["loc"] for each in found)
            if fault["type"] != "too_short" or not any(is_within):
                by_location.setdefault(_location_in(value, fault), []).append(fault)
        for location, faults in by_location.items():
            # Faults further within tell which member of a union is meant: the others do not count.
            is_meant = any(other[: len(location)] == location != other for other in by_location)
            if is_meant and all(str(fault["type"]).endswith(_OTHER_TYPE) for fault in faults):
                continue
            message = describe(schema, value, faults, location, beside)
            self.problems.add(self.document, (*self.path, *location), message)
        return None

    def readable(self, schema: type[BaseModel], value: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Validate a section like `parse`; if invalid, return an unvalidated model of the readable fields."""
        parsed = self.parse(schema, value)
        return readable(schema, value, self.problems.folder) if parsed is None else parsed


@cache
def _reader(schema: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a model or a type
    """Return the schema's validator, cached since making one takes longer than validating a section."""
    return TypeAdapter(schema)


@cache
def _reader_of_field(schema: type[BaseModel], name: str) -> TypeAdapter[Any]:
    known = schema.model_fields[name]
    annotation: Any = Annotated[known.annotation, known]
    return TypeAdapter(annotation)


def readable(schema: type[BaseModel], value: Mapping[str, Any], folder: Path | None = None) -> Any:  # noqa: ANN401 - an instance of schema
    """Return an unvalidated model: unreadable fields get their default, or None without one.

    For finding further faults in a section that is already known to be invalid.
    """
    fields: dict[str, Any] = {}
    for name, known in schema.model_fields.items():
        fields[name] = None if known.is_required() else known.get_default(call_default_factory=True)
        if name in value:
            try:
                fields[name] = _reader_of_field(schema, name).validate_json(
                    json.dumps(value[name]), strict=True, context={STARTS_FROM: folder}
                )
            except (ValidationError, TypeError, ValueError):
                continue
    return schema.model_construct(**fields)


def _location_in(value: Any, fault: Any) -> KeyPath:  # noqa: ANN401
    """Return a fault's location without pydantic's tags for union members and invalid keys."""
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
