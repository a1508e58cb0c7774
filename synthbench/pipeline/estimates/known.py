"""Facts of the stages of a plan, and of the artifacts in the store."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from synthbench.data.dataset import read_manifest
from synthbench.errors import UserError
from synthbench.models.work import Work
from synthbench.pipeline.estimates.facts import UNKNOWN, Facts, Piece, facts_of, work_of
from synthbench.pipeline.evaluation import Evaluate
from synthbench.pipeline.generation import LLM_KEY, Generate
from synthbench.pipeline.operations import CHOICE_FILE, DATASET_FOLDER, Prepare, ReadSource, Train
from synthbench.pipeline.stage import Stage
from synthbench.pipeline.store import Store
from synthbench.plugins import Component, component

_GROUPS = {"train": "trainers", "generate": "methods", "evaluate": "evaluators"}
_NOT_THE_PLUGINS = {"train": ("seed", "until", "selection"), "generate": (LLM_KEY,)}
"""What the configuration of a stage holds beside its plug-in's."""


class Known:
    """What is known of stages and artifacts, each looked up once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._facts: dict[str, Facts] = {}

    def piece(self, stage: Stage) -> Piece:
        """Return a stage of a plan with what is known of its inputs."""
        inputs = {name: self.facts(source) for name, source in stage.inputs.items()}
        config = stage.spec["config"]
        return Piece(stage.kind, stage.operation.component, config, _plugin(stage), inputs)

    def facts(self, stage: Stage) -> Facts:
        """Return what is known of a stage's artifact, whether it is there or not."""
        if stage.identity not in self._facts:
            if self.store.has(stage.identity):
                return self.stored(stage.identity)
            self._facts[stage.identity] = self._expected(stage)
        return self._facts[stage.identity]

    def stored(self, identity: str) -> Facts:
        """Return what is known of an artifact of the store; nothing of one that is gone or damaged."""
        if identity not in self._facts:
            self._facts[identity] = self._stored(identity, self.store.info(identity) or {})
        return self._facts[identity]

    def past(self, info: Mapping[str, Any]) -> tuple[Piece, Work | None] | None:
        """Return a stage that was run, by what was recorded of it; None if its plug-in knows it no more."""
        try:
            piece = self._past_piece(info)
            return piece, work_of(piece)
        except (UserError, ValidationError, KeyError, TypeError, ValueError, AttributeError):
            return None

    def _past_piece(self, info: Mapping[str, Any]) -> Piece:
        spec = info["spec"]
        inputs = {name: self.stored(identity) for name, identity in spec["inputs"].items()}
        return Piece(spec["kind"], spec["component"], spec["config"], _rebuilt(spec), inputs)

    def _expected(self, stage: Stage) -> Facts:
        operation = stage.operation
        if isinstance(operation, ReadSource):
            source = operation.source
            return Facts(source.expected_records(operation.places), source.record_kind)
        facts = facts_of(self.piece(stage))
        if isinstance(operation, Prepare) and facts.num_records is not None:
            size = facts.num_records
            for step in operation.steps:
                size = step.expected(size)
            return Facts(size, facts.kind)
        return facts

    def _stored(self, identity: str, info: Mapping[str, Any]) -> Facts:
        folder = self.store.folder(identity)
        try:
            if (folder / DATASET_FOLDER).is_dir():
                manifest = read_manifest(folder / DATASET_FOLDER)
                return Facts(manifest.num_records, manifest.kind)
            if (folder / CHOICE_FILE).is_file():
                return self.stored(next(iter(info["spec"]["inputs"].values())))
            return facts_of(self._past_piece(info))
        except (UserError, ValidationError, OSError, KeyError, TypeError, ValueError, StopIteration):
            return UNKNOWN


def _plugin(stage: Stage) -> Component | None:
    operation = stage.operation
    if isinstance(operation, Train):
        return operation.trainer
    if isinstance(operation, Generate):
        return operation.method
    return operation.evaluator if isinstance(operation, Evaluate) else None


def _rebuilt(spec: Mapping[str, Any]) -> Component | None:
    """Return the plug-in of a stage that was run; raises what pydantic does if it was another then."""
    kind = spec["kind"]
    if kind not in _GROUPS:
        return None
    others = _NOT_THE_PLUGINS.get(kind, ())
    config = {key: value for key, value in spec["config"].items() if key not in others}
    plugin: Component = component(_GROUPS[kind], spec["component"]).model_validate_json(json.dumps(config))
    return plugin
