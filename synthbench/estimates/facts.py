"""Facts about a stage before it runs: records read and made, computation, LLM requests."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from synthbench.data.manifest import MANIFEST_FILE, read_manifest
from synthbench.data.records import RECORD_TYPES, RecordKind
from synthbench.engine.artifacts import CHOICE_FILE, DATASET_FOLDER
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.llm.endpoint import ChatAmount
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import (
    Expected,
    Shape,
    Work,
    name_of,
    reading,
    shape_of,
    shape_of_base,
    weighted_size,
)
from synthbench.plugins.contracts import Component, Method, Step
from synthbench.plugins.loading import component
from synthbench.plugins.model_contracts import Evaluator, Trainer
from synthbench.stages.asking import LLM_KEY, NEED, SHARD_KEY
from synthbench.stages.data import ReadSource
from synthbench.stages.generation import SOURCE
from synthbench.stages.preparation import RECIPE, Prepare
from synthbench.stages.training import DATA, PAUSED

SENTENCES = {kind: len(record.text_fields) for kind, record in RECORD_TYPES.items()} | {
    RecordKind.RANKING: 21
}
"""Sentences per record; for rankings as in AskUbuntu: a query and 20 candidates."""


@dataclass(frozen=True)
class ArtifactFacts:
    """What is known of an artifact: its number and kind of records, or its base model; None: unknown.

    `until` is the finished share of a training's steps. `free`: the model computes nothing.
    """

    num_records: int | None = None
    kind: RecordKind | None = None
    base: Pretrained | None = None
    until: float = 1.0
    free: bool = False

    def after(self, steps: Iterable[Step]) -> "ArtifactFacts":
        """Return the number and kind of the records that are expected to remain after the steps."""
        size, kind = self.num_records, self.kind
        for step in steps:
            size = None if size is None else step.expected(size)
            kind = None if kind is None else step.kind_after(kind)
        return ArtifactFacts(size, kind)


UNKNOWN = ArtifactFacts()


@dataclass(frozen=True)
class StageView:
    """A planned or past stage: settings, plug-in, and what is known of its inputs."""

    kind: str
    component: str
    config: Mapping[str, Any]
    plugin: Component | None
    inputs: Mapping[str, ArtifactFacts]
    is_sharded: bool = False
    """Whether shards do the stage's work."""

    @property
    def share(self) -> float:
        """The share of the plug-in's work that this stage does: 0 if shards do it, 1 / n for a shard of n."""
        if SHARD_KEY in self.config:
            return 1 / float(self.config[SHARD_KEY]["of"])
        return 0.0 if self.is_sharded else 1.0

    @property
    def data(self) -> ArtifactFacts:
        """What is known of the records that a step or an evaluator reads."""
        return self.inputs.get("task") or self.inputs.get("data") or UNKNOWN

    def sizes(self) -> dict[str, int]:
        """Return the numbers of records that a method reads, by role or dependency, where they are known."""
        roles = {name.removeprefix(SOURCE).removeprefix(NEED): facts for name, facts in self.inputs.items()}
        return {role: facts.num_records for role, facts in roles.items() if facts.num_records is not None}

    def total(self, prefix: str) -> int | None:
        """Return the number of records in all inputs with this prefix, None if any is unknown."""
        sizes = [facts.num_records for name, facts in self.inputs.items() if name.startswith(prefix)]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def expected(view: StageView) -> Expected:
    """Return the expected output of a generate stage, with this stage's share of tokens and work.

    For other stages, all is unknown.
    """
    if not isinstance(view.plugin, Method):
        return Expected()
    whole = view.plugin.expected(view.sizes())
    tokens = None if whole.tokens is None else round(view.share * whole.tokens)
    work = whole.work
    if work is None and _models(view):
        work = _reading(view, whole.num_records, view.plugin.record_kind)
    return Expected(whole.num_records, work and work.share(view.share), tokens, whole.tries)


def facts_of(view: StageView) -> ArtifactFacts:
    """Return what is known of the artifact that a stage will write: its records or its model."""
    if isinstance(view.plugin, Trainer):
        base, until = getattr(view.plugin, "base", None), float(view.config.get("until", 1.0))
        if isinstance(base, Pretrained):
            return ArtifactFacts(base=base, until=until)
        return ArtifactFacts(until=until, free=not view.plugin.takes_data)
    if isinstance(view.plugin, Method):
        return ArtifactFacts(view.plugin.expected(view.sizes()).num_records, view.plugin.record_kind)
    if isinstance(view.plugin, Step):
        return view.data.after([view.plugin])
    if view.kind == "select":
        return next(iter(view.inputs.values()), UNKNOWN)
    return ArtifactFacts(view.total(""), view.data.kind) if view.kind == "join" else view.data


def work_of(view: StageView) -> Work | None:
    """Return a stage's amount of computation, None if unknown."""
    if LLM_KEY in view.config:
        amount, llm = asked(view), view.config[LLM_KEY]
        name = f"{llm.get('endpoint')} {llm.get('model', '')}".rstrip()
        return None if amount is None else Work(name, None, amount.num_requests)
    if isinstance(view.plugin, Trainer):
        work = view.plugin.work(_num_trained_on(view), view.total("dev"))
        begun = view.inputs.get(PAUSED, ArtifactFacts(until=0.0)).until
        return work and work.share(float(view.config.get("until", 1.0)) - begun)
    if isinstance(view.plugin, Method):
        return expected(view).work
    if isinstance(view.plugin, Evaluator | Step):
        work = _reading(view, view.data.num_records, view.data.kind)
        return replace(work, operations=None) if work is not None and works_on(view.plugin) else work
    return Work("", 0.0, max((facts.num_records or 0 for facts in view.inputs.values()), default=0))


def works_on(plugin: object) -> bool:
    """Return whether a plug-in is an evaluator that computes for an unknown time after encoding."""
    encodes_only = Evaluator.evaluate_with_progress
    return isinstance(plugin, Evaluator) and type(plugin).evaluate_with_progress is not encodes_only


def _reading(view: StageView, number: int | None, kind: RecordKind | None) -> Work | None:
    """Return the work of encoding `number` records with the largest model of the stage.

    None if number or kind is unknown. If a model's size is unknown, so are the operations.
    """
    if number is None or kind is None:
        return None
    both = getattr(getattr(view.plugin, "labeller", view.plugin), "both_orders", False)
    count = 2 * number if both else number
    works = [
        reading(facts.base, count, SENTENCES[kind]) if facts.base else Work("", None, count)
        for facts in _models(view)
    ]
    light = Work("", 0.0, count)
    return max(
        works, key=lambda each: math.inf if each.operations is None else each.operations, default=light
    )


def _models(view: StageView) -> list[ArtifactFacts]:
    return [facts for facts in view.inputs.values() if facts.kind is None and not facts.free]


def asked(view: StageView) -> ChatAmount | None:
    """Return the requests and tokens that a stage's method or step needs; None: unknown."""
    if isinstance(view.plugin, Method):
        amount = view.plugin.asks(view.sizes())
        return None if amount is None else amount.share(view.share)
    size = view.data.num_records
    return view.plugin.asks(size) if isinstance(view.plugin, Step) and size is not None else None


def models_of(view: StageView) -> dict[str, Shape | None]:
    """Return the models in a stage's settings and inputs: name -> size, None if unknown."""
    return dict(_named([view.plugin, *(facts.base for facts in view.inputs.values())]))


def _named(settings: object) -> Iterator[tuple[str, Shape | None]]:
    if isinstance(settings, Pretrained):
        yield name_of(settings), shape_of_base(settings)
    elif isinstance(settings, BaseModel):
        if isinstance(model := getattr(settings, "model", None), str):
            yield model, shape_of(model, getattr(settings, "revision", None))
        yield from _named([getattr(settings, name) for name in type(settings).model_fields])
    elif isinstance(settings, Collection) and not isinstance(settings, str):
        for each in settings.values() if isinstance(settings, dict) else settings:
            yield from _named(each)


def _num_trained_on(view: StageView) -> int | None:
    """Return the rows of an epoch: each part's number of records times its weight; None: unknown."""
    weights, num_rows = view.config.get("weights"), 0
    for name, facts in view.inputs.items():
        if name.startswith(DATA):
            weight = weights[int(name.removeprefix(DATA))] if weights else 1.0
            num_rows += weighted_size(facts.num_records or 0, weight)
    return None if view.total(DATA) is None else num_rows


_GROUPS = {"train": "trainers", "generate": "methods", "evaluate": "evaluators", "prepare": "steps"}


class StageFacts:
    """Looks up facts about stages and artifacts for estimates; each artifact is looked up once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._facts: dict[str, ArtifactFacts] = {}

    def view(self, stage: Stage) -> StageView:
        """Return a planned stage with what is known of its inputs."""
        inputs = {name: self.facts(source) for name, source in stage.inputs.items()}
        plugin = getattr(stage.operation, "plugin", None)
        config, component = stage.spec["config"], stage.operation.component
        return StageView(stage.kind, component, config, plugin, inputs, is_sharded=bool(stage.shards))

    def facts(self, stage: Stage) -> ArtifactFacts:
        """Return what is known of a stage's artifact: from the store if it exists, else as expected."""
        if stage.identity not in self._facts:
            if self.store.has(stage.identity):
                return self.stored(stage.identity)
            self._facts[stage.identity] = self._expected(stage)
        return self._facts[stage.identity]

    def stored(self, identity: str) -> ArtifactFacts:
        """Return what is known of a stored artifact; UNKNOWN if it is gone or damaged."""
        if identity not in self._facts:
            self._facts[identity] = UNKNOWN  # a stranger's record may name itself as its input
            with suppress(Exception):  # records and plug-ins of strangers may raise anything
                self._facts[identity] = self._stored(identity, self.store.info(identity) or {})
        return self._facts[identity]

    def _stored(self, identity: str, info: Mapping[str, Any]) -> ArtifactFacts:
        if (name := f"{DATASET_FOLDER}/{MANIFEST_FILE}") in info["files"]:
            manifest = read_manifest(self.store.file(identity, name).parent)
            return ArtifactFacts(manifest.num_records, manifest.kind)
        if CHOICE_FILE in info["files"]:
            return self.stored(next(iter(info["spec"]["inputs"].values())))
        return facts_of(self.past(info))

    def past(self, info: Mapping[str, Any]) -> StageView:
        """Return a past stage from its record.

        Raises any exception if the record is invalid or the plug-in is gone or has changed.
        """
        spec = info["spec"]
        kind, name, config, plugin = spec["kind"], spec["component"], spec["config"], None
        if kind in _GROUPS and name != RECIPE:
            kind_of_plugin = component(_GROUPS[kind], name)
            own = {key: value for key, value in config.items() if key in kind_of_plugin.model_fields}
            plugin = kind_of_plugin.model_validate_json(json.dumps(own))
        inputs = {name: self.stored(identity) for name, identity in spec["inputs"].items()}
        return StageView(kind, name, config, plugin, inputs)

    def _expected(self, stage: Stage) -> ArtifactFacts:
        operation = stage.operation
        if isinstance(operation, ReadSource):
            source = operation.source
            return ArtifactFacts(source.expected_records(operation.roots), source.record_kind)
        steps = operation.steps if isinstance(operation, Prepare) else ()
        facts = facts_of(self.view(stage))
        return facts.after(step.plugin for step in steps) if steps else facts
