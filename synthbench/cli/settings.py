"""The settings of a component, one by one: key, values, default and meaning."""

import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from synthbench.plugins.prompts import PromptFile

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

REQUIRED = "required"
SECTION = "keys below"
_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "any value",
}


@dataclass(frozen=True)
class Setting:
    """One key, dotted if nested; `values` describes its values, `default` is written as in YAML."""

    key: str
    values: str
    default: str
    description: str


def settings_of(model: "type[BaseModel]", prefix: str = "") -> Iterator[Setting]:
    """Yield the model's keys in order; keys of nested sections are dotted and follow their section."""
    model.model_rebuild()  # sections may refer to others that are defined later
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        sections = _sections(field.annotation)
        if sections and issubclass(sections[0], PromptFile):
            yield Setting(
                key, f"file, or {SECTION}", _default(field, is_section=True), field.description or ""
            )
            for inner, prompts in sections[0].model_fields.items():
                yield Setting(
                    f"{key}.{prompts.alias or inner}", "prompts", "shipped", prompts.description or ""
                )
            continue
        values = SECTION if sections else _values(field.annotation, field.metadata)
        yield Setting(key, values, _default(field, is_section=bool(sections)), field.description or "")
        if len(sections) == 1:
            yield from settings_of(sections[0], f"{key}.")
        elif isinstance(field.discriminator, str):
            yield from _settings_of_either(sections, f"{key}.", field.discriminator)


def _settings_of_either(
    sections: "Sequence[type[BaseModel]]", prefix: str, discriminator: str
) -> Iterator[Setting]:
    """Yield the keys of alternative sections: first the discriminating key, then each section's own."""
    named = {_values(each.model_fields[discriminator].annotation): each for each in sections}
    described = "; ".join(f"{name}: {summary(each).rstrip('.')}" for name, each in named.items())
    yield Setting(f"{prefix}{discriminator}", _either(list(named)), REQUIRED, described)
    for name, section in named.items():
        for setting in settings_of(section, prefix):
            if setting.key != f"{prefix}{discriminator}":
                yield replace(setting, description=f"{name}: {setting.description}".rstrip(": "))


def summary(described: type) -> str:
    """Return the first paragraph of a class's docstring as one line."""
    return " ".join((described.__doc__ or "").strip().split("\n\n")[0].split())


def _sections(annotation: Any) -> "list[type[BaseModel]]":  # noqa: ANN401 - any annotation
    """Return the pydantic models that an annotation allows, [] if it allows other types besides null."""
    from pydantic import BaseModel

    members = [each for each in _members(annotation) if each is not types.NoneType]
    found = [each for each in members if isinstance(each, type) and issubclass(each, BaseModel)]
    return found if len(found) == len(members) else []


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the members of a union, else the annotation itself; unwraps `Annotated`."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _members(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return tuple(member for each in typing.get_args(annotation) for member in _members(each))
    return (annotation,)


def _default(field: "FieldInfo", *, is_section: bool) -> str:
    if field.is_required():
        return REQUIRED
    value = field.get_default(call_default_factory=True, validated_data={})
    from pydantic import BaseModel

    has_models = isinstance(value, tuple) and any(isinstance(each, BaseModel) for each in value)
    if (is_section and value is not None) or has_models:
        return ""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str) and value:
        return " ".join(value.split())
    return json.dumps(value).replace("e-0", "e-")


def _values(annotation: Any, metadata: Sequence[Any] = ()) -> str:  # noqa: ANN401
    """Describe a key's valid values except null; the key's default and description explain null."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _values(arguments[0], [*_constraints(arguments[1:]), *metadata])
    if origin in (typing.Union, types.UnionType):
        texts = (_values(each, metadata) for each in arguments if each is not types.NoneType)
        return " or ".join(dict.fromkeys(texts))
    if origin is typing.Literal:
        return _either([str(choice) for choice in arguments])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"[{', '.join(_values(each) for each in arguments)}]"
    if origin is not None:
        many = "mapping" if issubclass(origin, Mapping) else f"list of {_plural(_values(arguments[0]))}"
        return many + _limits(metadata, "items")
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _either([str(choice.value) for choice in annotation])
    if _sections(annotation):
        return "section"
    return _WORDS.get(annotation, "any value") + _limits(metadata, "characters", is_whole=annotation is int)


def _plural(words: str) -> str:
    first, comma, rest = words.partition(",")
    known = (*_WORDS.values(), "section")
    return (f"{first}s" if first in known else first) + comma + rest


def _either(choices: Sequence[str]) -> str:
    return " or ".join([*([", ".join(choices[:-1])] if choices[:-1] else []), choices[-1]])


def _constraints(annotations: Sequence[Any]) -> list[Any]:
    """Return the constraints of an `Annotated`, including those within a `Field(...)`."""
    from pydantic.fields import FieldInfo

    return [
        constraint
        for each in annotations
        for constraint in (each.metadata if isinstance(each, FieldInfo) else [each])
    ]


def _limits(metadata: Sequence[Any], unit: str, *, is_whole: bool = False) -> str:
    """Describe the constraints: ", 1 to 1,000", ", above 0", ", at least 2 items"."""
    names = ("ge", "gt", "le", "lt", "min_length")
    found = {
        name: getattr(constraint, name)
        for constraint in metadata
        for name in names
        if getattr(constraint, name, None) is not None
    }
    if is_whole and "lt" in found:
        found["le"] = found.pop("lt") - 1
    bounds = []
    if "ge" in found and "le" in found:
        bounds.append(f"{found.pop('ge'):,} to {found.pop('le'):,}")
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds += [f"{words[name]} {found[name]:,}" for name in words if name in found]
    least = found.get("min_length", 0)
    if least > (unit == "characters"):  # "at least 1 character" goes without saying
        bounds.append(f"at least {least} {unit if least > 1 else unit[:-1]}")
    return "".join(f", {each}" for each in bounds)
