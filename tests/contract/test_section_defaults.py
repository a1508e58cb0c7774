"""Defaults of settings: those of a section given in part, and those that null gives."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel
from settings_models import settings_models

from synthbench.plugins.loading import GROUPS, component, installed

COMPONENTS = [(group, name) for group in GROUPS for name in installed(group)]


@pytest.mark.parametrize(("group", "name"), COMPONENTS)
def test_a_sections_default_has_the_defaults_of_its_keys(group: str, name: str) -> None:
    """If not, `judge: {temperature: 0.5}` would also change the grades that `claif` asks for."""
    for path, section in _sections(component(group, name), ""):
        given = {
            key: getattr(section, key)
            for key, field in type(section).model_fields.items()
            if field.is_required()
        }
        assert section == type(section)(**given), path


@pytest.mark.parametrize("model", settings_models(), ids=lambda model: model.__name__)
def test_null_means_the_default_alone(model: type[BaseModel]) -> None:
    """In a file, null removes a key, so it can stand for no other value than the default."""
    for key, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        assert default is None or "null" not in (field.description or ""), key


def _sections(model: type[BaseModel], path: str) -> Iterator[tuple[str, BaseModel]]:
    """Yield all sections that are a key's default, with their dotted names."""
    for key, field in model.model_fields.items():
        if field.is_required():
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, BaseModel):
            yield f"{path}{key}", default
            yield from _sections(type(default), f"{path}{key}.")
