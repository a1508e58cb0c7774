"""A section that is given in part keeps its other keys, whatever the component that has it."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

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


def _sections(model: type[BaseModel], path: str) -> Iterator[tuple[str, BaseModel]]:
    """Yield all sections that are a key's default, with their dotted names."""
    for key, field in model.model_fields.items():
        if field.is_required():
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, BaseModel):
            yield f"{path}{key}", default
            yield from _sections(type(default), f"{path}{key}.")
