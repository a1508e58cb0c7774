"""Rules for every installed plug-in, built-in or not."""

import inspect
import re
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from wording import refused

from synthbench.config.schema import (
    EvaluateSection,
    PartSection,
    SelectionSection,
    StepSection,
    TrainSection,
)
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.contracts import Method, Step
from synthbench.plugins.loading import GROUPS, component, installed
from synthbench.plugins.model_contracts import Evaluator, Trainer

POINTS = [(group, name) for group in GROUPS for name in sorted(installed(group))]
RESERVED = {
    *PartSection.model_fields,
    *TrainSection.model_fields,
    *SelectionSection.model_fields,
    *EvaluateSection.model_fields,
}
HEAVY = {"torch", "transformers", "sentence_transformers", "mlflow", "pandas", "sklearn", "datasets", "scipy"}


@pytest.fixture(params=POINTS, ids=[f"{group}-{name}" for group, name in POINTS])
def plugin(request: pytest.FixtureRequest) -> Any:
    """Each installed plug-in in turn."""
    return component(*request.param)


def test_every_group_has_plugins() -> None:
    assert {group for group, _ in POINTS} == {"methods", "steps", "trainers", "evaluators", "importers"}
    assert {"method", "source", "sources", "prepare", "trainer", "selection"} <= RESERVED
    assert {"evaluator", "tasks", "if_found", "exclude"} <= RESERVED


def test_a_plugins_version_is_a_whole_number(plugin: Any) -> None:
    assert type(plugin.version) is int
    assert plugin.version >= 1


def test_a_plugin_has_a_one_line_summary(plugin: Any) -> None:
    assert plugin.__doc__
    assert plugin.__doc__ != plugin.__mro__[1].__doc__
    first = plugin.__doc__.strip().splitlines()[0]
    assert first.endswith(".")


def test_every_field_is_annotated_and_described(plugin: Any) -> None:
    undescribed = [name for name, known in plugin.model_fields.items() if not known.description]
    assert undescribed == []


def test_a_plugins_fields_do_not_use_the_sections_keys(plugin: Any) -> None:
    own = {Step: StepSection, Method: PartSection}
    section = next((section for kind, section in own.items() if issubclass(plugin, kind)), None)
    reserved = RESERVED if section is None else section.model_fields
    assert set(reserved).isdisjoint(plugin.model_fields)


def test_a_plugin_is_strict_and_immutable(plugin: Any) -> None:
    for model in (plugin, *_inner_models(plugin)):
        assert model.model_config.get("extra") == "forbid", model
        assert model.model_config.get("frozen") is True, model
        assert model.model_config.get("strict") is True, model


def test_an_unknown_key_is_refused(plugin: Any) -> None:
    with refused("no_such_key", kind=ValidationError):
        plugin.model_validate({"no_such_key": 1})


def test_defaults_are_valid_and_survive_json(plugin: Any) -> None:
    if any(known.is_required() for known in plugin.model_fields.values()):
        return
    try:
        configured = plugin()
    except ValidationError as error:
        assert issubclass(plugin, Step) or "needs either" in str(error), "its defaults are no settings"
        return
    assert plugin.model_validate_json(configured.model_dump_json()) == configured
    assert all(re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", hash) for hash in configured.revisions().values())


def test_a_plugin_names_the_record_kinds_that_its_contract_requires(plugin: Any) -> None:
    assert not inspect.isabstract(plugin)
    if issubclass(plugin, Method | Evaluator):
        assert isinstance(plugin.record_kind, RecordKind)
    if issubclass(plugin, Trainer):
        assert isinstance(plugin.model_kind, ModelKind)
    if issubclass(plugin, Step):
        assert plugin.kinds
        assert all(isinstance(kind, RecordKind) for kind in plugin.kinds)
    if issubclass(plugin, Method):
        roles = {**plugin.source_roles, **plugin.optional_source_roles}
        assert all(isinstance(kind, RecordKind) for kind in roles.values())
        assert set(plugin.source_roles).isdisjoint(plugin.optional_source_roles)


def test_a_plugins_module_imports_nothing_heavy() -> None:
    modules = sorted({installed(group)[name].value.split(":")[0] for group, name in POINTS})
    program = (
        f"import importlib, sys; [importlib.import_module(name) for name in {modules!r}]; "
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _inner_models(model: type[BaseModel]) -> set[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    waiting: list[Any] = [known.annotation for known in model.model_fields.values()]
    while waiting:
        annotation = waiting.pop()
        waiting += getattr(annotation, "__args__", ())
        is_new = (
            isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in found
        )
        if is_new:
            found.add(annotation)
            waiting += [known.annotation for known in annotation.model_fields.values()]
    return found
