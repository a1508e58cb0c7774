"""The facts of a stage before it runs: what it reads, makes, computes and asks."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from synthbench.data.dataset import MANIFEST_FILE, read_manifest
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
from synthbench.plugins.contracts import Component, Evaluator, Method, Step, Trainer
from synthbench.plugins.loading import component
from synthbench.stages.asking import LLM_KEY, NEED, SHARD_KEY
from synthbench.stages.data import ReadSource
from synthbench.stages.generation import SOURCE
from synthbench.stages.preparation import RECIPE, Prepare
from synthbench.stages.training import DATA, PAUSED

SENTENCES = {kind: len(record.text_fields) for kind, record in RECORD_TYPES.items()} | {
    RecordKind.RANKING: 21
}
"""Sentences of a record; of a ranking, those of AskUbuntu's: a query and 20 candidates."""


@dataclass(frozen=True)
class ArtifactFacts:
    """What is known of an artifact: its records, or its model; None: unknown.

    `until` is the finished share of a training's steps. `free`: the model computes nothing.
    """

    num_records: int | None = None
    kind: RecordKind | None = None
    base: Pretrained | None = None
    until: float = 1.0
    free: bool = False

    def after(self, steps: Iterable[Step]) -> "ArtifactFacts":
        """Return what is known of the records that steps let go on."""
        size, kind = self.num_records, self.kind
        for step in steps:
            size = None if size is None else step.expected(size)
            kind = None if kind is None else step.kind_after(kind)
        return ArtifactFacts(size, kind)


UNKNOWN = ArtifactFacts()


@dataclass(frozen=True)
class Piece:
    """A planned or past stage by its spec, with its plug-in and what is known of its inputs."""

    kind: str
    component: str
    config: Mapping[str, Any]
    plugin: Component | None
    inputs: Mapping[str, ArtifactFacts]
    is_sharded: bool = False
    """Whether shards do its work."""

    @property
    def share(self) -> float:
        """The share of the plug-in's work that the stage does: a shard does its own, a sharded stage none."""
        if SHARD_KEY in self.config:
            return 1 / float(self.config[SHARD_KEY]["of"])
        return 0.0 if self.is_sharded else 1.0

    @property
    def data(self) -> ArtifactFacts:
        """What is known of the records that a step or an evaluator reads."""
        return self.inputs.get("task") or self.inputs.get("data") or UNKNOWN

    def sizes(self) -> dict[str, int]:
        """Return the known numbers of records that a method reads, by role or dependency."""
        roles = {name.removeprefix(SOURCE).removeprefix(NEED): facts for name, facts in self.inputs.items()}
        return {role: facts.num_records for role, facts in roles.items() if facts.num_records is not None}

    def total(self, prefix: str) -> int | None:
        """Return the number of records of all inputs with a prefix, None if one is unknown."""
        sizes = [facts.num_records for name, facts in self.inputs.items() if name.startswith(prefix)]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def expected(piece: Piece) -> Expected:
    """Return what a generate stage's method makes, and the stage's share of its tokens and work."""
    if not isinstance(piece.plugin, Method):
        return Expected()
    whole = piece.plugin.expected(piece.sizes())
    tokens = None if whole.tokens is None else round(piece.share * whole.tokens)
    work = whole.work
    if work is None and _models(piece):
        work = _reading(piece, whole.num_records, piece.plugin.record_kind)
    return Expected(whole.num_records, work and work.share(piece.share), tokens)


def facts_of(piece: Piece) -> ArtifactFacts:
    """Return what is known of a stage's future artifact."""
    if isinstance(piece.plugin, Trainer):
        base, until = getattr(piece.plugin, "base", None), float(piece.config.get("until", 1.0))
        if isinstance(base, Pretrained):
            return ArtifactFacts(base=base, until=until)
        return ArtifactFacts(until=until, free=not piece.plugin.takes_data)
    if isinstance(piece.plugin, Method):
        return ArtifactFacts(piece.plugin.expected(piece.sizes()).num_records, piece.plugin.record_kind)
    if isinstance(piece.plugin, Step):
        return piece.data.after([piece.plugin])
    if piece.kind == "select":
        return next(iter(piece.inputs.values()), UNKNOWN)
    return ArtifactFacts(piece.total(""), piece.data.kind) if piece.kind == "join" else piece.data


def work_of(piece: Piece) -> Work | None:
    """Return how much a stage computes, None if unknown."""
    if LLM_KEY in piece.config:
        amount, llm = asked(piece), piece.config[LLM_KEY]
        name = f"{llm.get('endpoint')} {llm.get('model', '')}".rstrip()
        return None if amount is None else Work(name, None, amount.num_requests)
    if isinstance(piece.plugin, Trainer):
        work = piece.plugin.work(_num_trained_on(piece), piece.total("dev"))
        begun = piece.inputs.get(PAUSED, ArtifactFacts(until=0.0)).until
        return work and work.share(float(piece.config.get("until", 1.0)) - begun)
    if isinstance(piece.plugin, Method):
        return expected(piece).work
    if isinstance(piece.plugin, Evaluator | Step):
        work = _reading(piece, piece.data.num_records, piece.data.kind)
        return replace(work, operations=None) if work is not None and works_on(piece.plugin) else work
    return Work("", 0.0, max((facts.num_records or 0 for facts in piece.inputs.values()), default=0))


def works_on(plugin: object) -> bool:
    """Tell whether an evaluator computes for an unknown time after encoding."""
    encodes_only = Evaluator.evaluate_with_progress
    return isinstance(plugin, Evaluator) and type(plugin).evaluate_with_progress is not encodes_only


def _reading(piece: Piece, number: int | None, kind: RecordKind | None) -> Work | None:
    """Return the work of reading so many records by the largest model that the stage is given."""
    if number is None or kind is None:
        return None
    both = getattr(getattr(piece.plugin, "labeller", piece.plugin), "both_orders", False)
    count = 2 * number if both else number
    works = [
        reading(facts.base, count, SENTENCES[kind]) if facts.base else Work("", None, count)
        for facts in _models(piece)
    ]
    light = Work("", 0.0, count)
    return max(
        works, key=lambda each: math.inf if each.operations is None else each.operations, default=light
    )


def _models(piece: Piece) -> list[ArtifactFacts]:
    return [facts for facts in piece.inputs.values() if facts.kind is None and not facts.free]


def asked(piece: Piece) -> ChatAmount | None:
    """Return the requests and tokens that a stage's method or step would take; None: unknown."""
    if isinstance(piece.plugin, Method):
        amount = piece.plugin.asks(piece.sizes())
        return None if amount is None else amount.share(piece.share)
    size = piece.data.num_records
    return piece.plugin.asks(size) if isinstance(piece.plugin, Step) and size is not None else None


def models_of(piece: Piece) -> dict[str, Shape | None]:
    """Return the models that a stage names or is given, with what is used of them; None: of unknown size."""
    return dict(_named([piece.plugin, *(facts.base for facts in piece.inputs.values())]))


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


def _num_trained_on(piece: Piece) -> int | None:
    """Return how many rows an epoch has: of each part as many as its weight says; None: unknown."""
    weights, num_rows = piece.config.get("weights"), 0
    for name, facts in piece.inputs.items():
        if name.startswith(DATA):
            weight = weights[int(name.removeprefix(DATA))] if weights else 1.0
            num_rows += weighted_size(facts.num_records or 0, weight)
    return None if piece.total(DATA) is None else num_rows


_GROUPS = {"train": "trainers", "generate": "methods", "evaluate": "evaluators", "prepare": "steps"}


class Known:
    """Looks up what is known of stages and artifacts, of each once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._facts: dict[str, ArtifactFacts] = {}

    def piece(self, stage: Stage) -> Piece:
        """Return a stage of a plan with what is known of its inputs."""
        inputs = {name: self.facts(source) for name, source in stage.inputs.items()}
        plugin = getattr(stage.operation, "plugin", None)
        config, component = stage.spec["config"], stage.operation.component
        return Piece(stage.kind, component, config, plugin, inputs, is_sharded=bool(stage.shards))

    def facts(self, stage: Stage) -> ArtifactFacts:
        """Return what is known of a stage's artifact, which may not exist yet."""
        if stage.identity not in self._facts:
            if self.store.has(stage.identity):
                return self.stored(stage.identity)
            self._facts[stage.identity] = self._expected(stage)
        return self._facts[stage.identity]

    def stored(self, identity: str) -> ArtifactFacts:
        """Return what is known of a stored artifact; UNKNOWN if it is gone or damaged."""
        if identity not in self._facts:
            self._facts[identity] = UNKNOWN  # a stranger's record may name itself as its input
            with suppress(Exception):  # whatever the records and plug-ins of strangers do
                self._facts[identity] = self._stored(identity, self.store.info(identity) or {})
        return self._facts[identity]

    def _stored(self, identity: str, info: Mapping[str, Any]) -> ArtifactFacts:
        if (name := f"{DATASET_FOLDER}/{MANIFEST_FILE}") in info["files"]:
            manifest = read_manifest(self.store.file(identity, name).parent)
            return ArtifactFacts(manifest.num_records, manifest.kind)
        if CHOICE_FILE in info["files"]:
            return self.stored(next(iter(info["spec"]["inputs"].values())))
        return facts_of(self.past(info))

    def past(self, info: Mapping[str, Any]) -> Piece:
        """Return a past stage by its record; raises if a stranger wrote it, or its plug-in has changed."""
        spec = info["spec"]
        kind, name, config, plugin = spec["kind"], spec["component"], spec["config"], None
        if kind in _GROUPS and name != RECIPE:
            kind_of_plugin = component(_GROUPS[kind], name)
            own = {key: value for key, value in config.items() if key in kind_of_plugin.model_fields}
            plugin = kind_of_plugin.model_validate_json(json.dumps(own))
        inputs = {name: self.stored(identity) for name, identity in spec["inputs"].items()}
        return Piece(kind, name, config, plugin, inputs)

    def _expected(self, stage: Stage) -> ArtifactFacts:
        operation = stage.operation
        if isinstance(operation, ReadSource):
            source = operation.source
            return ArtifactFacts(source.expected_records(operation.roots), source.record_kind)
        steps = operation.steps if isinstance(operation, Prepare) else ()
        facts = facts_of(self.piece(stage))
        return facts.after(step.plugin for step in steps) if steps else facts
