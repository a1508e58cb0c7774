"""Values of the code that decide a result where the settings say nothing, and which of them identities hold.

A setting that came later is left out of identities while it has the only value that there was before; so is
a constant of the code. That value is a literal that is written once and never changed (`frozen`). So another
default or constant makes another identity, and no store serves what was made with the former one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

CONSTANTS_KEY = "experiment.constants"
"""Where a configuration holds constants that changed; no plug-in has a setting of this name."""


@dataclass(frozen=True)
class Constant:
    """A constant's value in the code, and the literal that identities leave out."""

    value: Any
    frozen: Any


class WithConstants:
    """Settings, or a section of them, whose result depends on constants of the code, too."""

    def constants(self) -> Mapping[str, Constant]:
        """Return, by name, the constants that decide the result with these settings."""
        return {}


def in_identity(settings: BaseModel, *, leave_out: Iterable[str] = ()) -> dict[str, Any]:
    """Return what identities hold of settings as JSON: the settings, and the constants that changed."""
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
    """Yield the settings and all sections within them."""
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
