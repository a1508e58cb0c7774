"""Defaults and constants that decide results, and the rule by which they enter identities.

An identity leaves out a constant of the code, or a setting that was added later, while it has its first
value. This value, `frozen`, is a literal that is written once and never changed. A changed default or
constant therefore changes the identity, and no store serves results of the old value.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pydantic import BaseModel, Field

CONSTANTS_KEY = "experiment.constants"
"""The configuration's key for changed constants; no plug-in may have a setting of this name."""


@dataclass(frozen=True)
class Constant:
    """A constant's current value, and the frozen first value that identities leave out."""

    value: Any
    frozen: Any


@dataclass(frozen=True)
class Omitted:
    """Test whether a field equals `value`; if it does, identities and files leave it out."""

    value: Any

    def __call__(self, given: object) -> bool:
        """Return whether the field is left out at the given value."""
        return bool(given == self.value)


def added_field(frozen: Any, description: str = "", **options: Any) -> Any:  # noqa: ANN401 - of the field's type
    """Declare a setting added after others; identities and files leave it out while its value is `frozen`.

    `frozen` is the setting's first default and never changes; `options` are passed to pydantic's `Field`.
    Pass `default` if today's default is not `frozen`.
    """
    return Field(**{"default": frozen, **options}, description=description, exclude_if=Omitted(frozen))


class WithConstants:
    """Settings, or a section of them, whose results also depend on constants of the code."""

    def constants(self) -> Mapping[str, Constant]:
        """Return the constants, by name, that decide the result under these settings."""
        return {}


def in_identity(settings: BaseModel, *, leave_out: Iterable[str] = ()) -> dict[str, Any]:
    """Return the settings, without `leave_out`, and all changed constants, as JSON for an identity."""
    changed = {
        name: constant.value
        for section in sections(settings)
        if isinstance(section, WithConstants)
        for name, constant in section.constants().items()
        if constant.value != constant.frozen
    }
    given = settings.model_dump(mode="json", exclude=set(leave_out))
    return {**given, **({CONSTANTS_KEY: changed} if changed else {})}


def sections(value: Any) -> Iterator[BaseModel]:  # noqa: ANN401 - a setting's value
    """Yield all pydantic models in settings or in a stage's operation (a dataclass), at any depth."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from sections(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from sections(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from sections(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from sections(getattr(value, field.name))
