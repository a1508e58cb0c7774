"""What the models of an experiment say of themselves, a line for each: of those that are at hand."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from synthbench.config.experiment import Experiment
from synthbench.config.permissions import plugins_of
from synthbench.errors import UserError
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.facts import Facts
from synthbench.models.pretrained import Pretrained
from synthbench.user_files import STARTS_FROM

Model = Pretrained | NamedLanguageModel


def described_models(experiment: Experiment) -> Iterator[str]:
    """Yield a line on each model that the rows name: architecture, dtype, outputs, limits, prompts."""
    configs = (candidate.config for variant in experiment.variants for candidate in variant.candidates)
    plugins = (plugin for config in configs for plugin in plugins_of(config))
    models = (model for plugin in plugins for model in _models(plugin, experiment.roots.base))
    yield from dict.fromkeys(line for model in models if (line := _line(model)))


def _models(value: Any, folder: Path) -> Iterator[Model]:  # noqa: ANN401 - whatever settings hold
    if isinstance(value, Model):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), folder)
    elif isinstance(value, Mapping):
        # The settings of a model that a method or step is given.
        if "model" in value:
            yield from _parsed(value, folder)
        for item in value.values():
            yield from _models(item, folder)


def _parsed(settings: Mapping[str, Any], folder: Path) -> Iterator[Pretrained]:
    try:
        yield Pretrained.model_validate_json(json.dumps(dict(settings)), context={STARTS_FROM: folder})
    except (ValidationError, TypeError):
        return


def _line(model: Model) -> str:
    try:
        facts = model.facts()
    except UserError:
        return ""
    return "" if facts is None else f"model {model.model}: {', '.join(_facts(model, facts))}"


def _facts(model: Model, facts: Facts) -> Iterator[str]:
    yield facts.kind or "no transformer"
    if facts.num_layers is not None:
        kept = getattr(model, "num_layers", None)
        yield f"{facts.num_layers} layers" if kept is None else f"{kept} of {facts.num_layers} layers"
    loaded = getattr(model, "dtype", "fp32")
    stored = facts.dtype
    yield loaded if stored in (None, loaded) else f"{loaded}, by itself {stored}"
    if facts.outputs is not None:
        yield f"{facts.outputs} output{'' if facts.outputs == 1 else 's'}"
    if facts.positions is not None:
        given = getattr(model, "max_length", None)
        beyond = given is not None and given > facts.positions
        yield f"{facts.positions:,} positions" + (f", so max_length {given} is cut to them" if beyond else "")
    if facts.vocabulary is not None:
        yield f"{facts.vocabulary:,} tokens"
    if facts.pads is False:
        yield "no padding token"
    if facts.routes_tasks:
        yield "modules of their own for queries and passages"
    for name, text in facts.prompts.items():
        if text:
            yield f"prompt '{name}': {json.dumps(text, ensure_ascii=False)}"
