"""Describes each model of an experiment in one line, if the model is on this machine."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from synthbench.base.errors import UserError
from synthbench.base.user_files import STARTS_FROM
from synthbench.config.experiment import Experiment, configs_of
from synthbench.config.permissions import models_in, plugins_of
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.facts import described
from synthbench.models.pretrained import Pretrained

Model = Pretrained | NamedLanguageModel


def described_models(experiment: Experiment) -> Iterator[str]:
    """Yield a line on each model of the rows: architecture, dtype, outputs, limits, prompts."""
    plugins = (plugin for config in configs_of(experiment.variants) for plugin in plugins_of(config))
    models = (model for plugin in plugins for model in models_in(plugin))
    parsed = (_parsed(model, experiment.roots.base) for model in models)
    yield from dict.fromkeys(line for model in parsed if model is not None and (line := _line(model)))


def _parsed(model: Model | Mapping[str, Any], folder: Path) -> Model | None:
    if not isinstance(model, Mapping):
        return model
    try:
        return Pretrained.model_validate_json(json.dumps(dict(model)), context={STARTS_FROM: folder})
    except (ValidationError, TypeError):
        return None


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
