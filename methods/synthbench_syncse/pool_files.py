"""Pools as YAML files: those that ship, and a user's own."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from synthbench.api import UserError, did_you_mean, load_yaml, read_settings
from synthbench_syncse.pools import LabelPool, SentencePool

Pool = TypeVar("Pool", LabelPool, SentencePool)
_Location = tuple[int | str, ...]


def positive_pool(file: Path | None = None) -> LabelPool:
    """Return the prompts for positives of a file, of the shipped one by default.

    Raises UserError on each fault of the file, as all functions here.
    """
    return _read(file, "positive", LabelPool)


def negative_pool(file: Path | None = None) -> LabelPool:
    """Return the prompts for hard negatives."""
    return _read(file, "negative", LabelPool)


def sentence_pool(file: Path | None = None) -> SentencePool:
    """Return the prompts for new sentences, their genres and topics."""
    pool = _read(file, "sentences", SentencePool)
    unknown = [name for name in pool.caption_genres if name not in pool.genres]
    if unknown:
        index = pool.caption_genres.index(unknown[0])
        place, key = _place(_text(file, "sentences"), file, ("caption_genres", index))
        raise UserError(f"{place}: {key}: no genre '{unknown[0]}'{did_you_mean(unknown[0], pool.genres)}")
    return pool


def fingerprint(file: Path | None, shipped: str) -> str:
    """Return the content hash of a file, by default of a shipped one: positive, negative or sentences."""
    return hashlib.sha256(_text(file, shipped).encode()).hexdigest()


def _read(file: Path | None, shipped: str, schema: type[Pool]) -> Pool:
    return _shipped(shipped, schema) if file is None else _parse(_text(file, shipped), file, schema)


@cache
def _shipped(name: str, schema: type[Pool]) -> Pool:
    return _parse(_text(None, name), None, schema)


def _text(file: Path | None, shipped: str) -> str:
    if file is None:
        folder = resources.files("synthbench_syncse") / "pools"
        return (folder / f"{shipped}.yaml").read_text(encoding="utf-8")
    return read_settings(file)


def _parse(text: str, file: Path | None, schema: type[Pool]) -> Pool:
    data = load_yaml(text, str(file), "safe")
    try:
        # Only from JSON does strict pydantic take a list for a tuple.
        return schema.model_validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        raise UserError(*_messages(error, text, file, schema)) from None


def _messages(error: ValidationError, text: str, file: Path | None, schema: type[BaseModel]) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        place, key = _place(text, file, fault["loc"])
        yield ": ".join(part for part in (place, key, _wording(fault, schema)) if part)


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
    if kind == "string_type":
        return f"must be text, is {fault['input']!r}"
    return str(fault["msg"]).lower()


def _shown(value: object) -> str:
    return "empty" if value is None else repr(value)


def _known_keys(schema: type[BaseModel], location: _Location) -> Sequence[str]:
    """Return the keys of the section at a location; sections are models, and mappings or lists of models."""
    for key in location:
        field = schema.model_fields.get(str(key))
        if field is not None:
            models = [part for part in _parts(field.annotation) if isinstance(part, type)]
            schema = next((part for part in models if issubclass(part, BaseModel)), schema)
    return tuple(schema.model_fields)


def _parts(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - types have no type in common
    yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _parts(part)


def _place(text: str, file: Path | None, location: _Location) -> tuple[str, str]:
    """Return "file:line" and the dotted key of a location; of what is not there, the line around it."""
    node, line = load_yaml(text, str(file)), 1
    for key in location:
        positions = getattr(getattr(node, "lc", None), "data", None) or {}
        if key not in positions:
            break
        line = positions[key][0] + 1
        node = node[key]
    return f"{file or 'shipped pool'}:{line}", ".".join(map(str, location))
