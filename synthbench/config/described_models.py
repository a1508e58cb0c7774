"""What the models of an experiment say of themselves, a line for each: of those that are at hand."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from synthbench.base.errors import UserError
from synthbench.base.user_files import STARTS_FROM
from synthbench.config.experiment import Experiment
from synthbench.config.permissions import plugins_of
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.facts import described
from synthbench.models.pretrained import Pretrained

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
    if facts is None:
        return ""
    used = {
        name: getattr(model, name) for name in ("num_layers", "max_length", "dtype") if hasattr(model, name)
    }
    prompts = (
        f"prompt '{name}': {json.dumps(text, ensure_ascii=False)}"
        for name, text in facts.prompts.items()
        if text
    )
    return f"model {model.model}: {', '.join((*described(facts, **used), *prompts))}"
