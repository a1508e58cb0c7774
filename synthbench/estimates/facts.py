"""What is known of stages before they run: their records, and what their models compute."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from synthbench.base.errors import UserError
from synthbench.data.dataset import MANIFEST_FILE, read_manifest
from synthbench.data.records import RecordKind
from synthbench.engine.artifacts import CHOICE_FILE, DATASET_FOLDER
from synthbench.engine.stage import Stage
from synthbench.engine.store import ArtifactDamagedError, Store
from synthbench.llm.endpoint import ChatAmount
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Expected, Work, reading, weighted_size
from synthbench.plugins.contracts import Component, Evaluator, Method, Step, Trainer
from synthbench.plugins.loading import component
from synthbench.stages.asking import LLM_KEY, NEED, SHARD_KEY
from synthbench.stages.data import ReadSource
from synthbench.stages.generation import SOURCE
from synthbench.stages.preparation import RECIPE, Prepare
from synthbench.stages.training import DATA, PAUSED

SENTENCES = {
    RecordKind.SENTENCE: 1,
    RecordKind.PAIR: 2,
    RecordKind.SCORED_PAIR: 2,
    RecordKind.TRIPLET: 3,
    RecordKind.RANKING: 21,
    RecordKind.RETRIEVAL: 1,
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


UNKNOWN = ArtifactFacts()
_OF_STRANGERS = (
    ValidationError,
    OSError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    StopIteration,
)
"""What is raised where an artifact's record says what no stage says."""


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

    def sizes(self) -> dict[str, int]:
        """Return the known numbers of records that a method reads, by role or dependency."""
        roles = {name.removeprefix(SOURCE).removeprefix(NEED): facts for name, facts in self.inputs.items()}
        return {role: facts.num_records for role, facts in roles.items() if facts.num_records is not None}


def expected(piece: Piece) -> Expected:
    """Return what a generate stage's method expects."""
    if not isinstance(piece.plugin, Method):
        return Expected()
    return _shared(piece.plugin.expected(piece.sizes()), piece.share)


def _shared(whole: Expected, share: float) -> Expected:
    """Return a share of the tokens and the work; the records are those of the whole data set."""
    if share == 1 or whole.work is None:
        return whole
    operations = None if whole.work.operations is None else share * whole.work.operations
    tokens = None if whole.tokens is None else round(share * whole.tokens)
    return Expected(whole.num_records, Work(whole.work.model, operations, share * whole.work.calls), tokens)


def facts_of(piece: Piece) -> ArtifactFacts:
    """Return what is known of a stage's future artifact."""
    if isinstance(piece.plugin, Trainer):
        base = getattr(piece.plugin, "base", None)
        until = float(piece.config.get("until", 1.0))
        if isinstance(base, Pretrained):
            return ArtifactFacts(base=base, until=until)
        return ArtifactFacts(until=until, free=not piece.plugin.takes_data)
    if isinstance(piece.plugin, Method):
        return ArtifactFacts(expected(piece).num_records, piece.plugin.record_kind)
    if isinstance(piece.plugin, Step):
        return _prepared(piece.inputs.get("data", UNKNOWN), [piece.plugin])
    if piece.kind == "select":
        return next(iter(piece.inputs.values()), UNKNOWN)
    data = piece.inputs.get("task") or piece.inputs.get("data") or UNKNOWN
    if piece.kind == "join":
        return ArtifactFacts(_total(piece.inputs, ""), data.kind)
    return data


def work_of(piece: Piece) -> Work | None:
    """Return how much a stage computes, None if unknown."""
    if isinstance(piece.plugin, Trainer):
        return _training(piece, piece.plugin)
    if isinstance(piece.plugin, Evaluator):
        work = _evaluating(piece)
        return replace(work, operations=None) if work is not None and works_on(piece.plugin) else work
    if isinstance(piece.plugin, Method):
        return _asking(piece) if LLM_KEY in piece.config else expected(piece).work
    if isinstance(piece.plugin, Step):
        size = piece.inputs.get("data", UNKNOWN).num_records
        if LLM_KEY in piece.config:
            return _asking(piece)
        return None if size is None else piece.plugin.work(size)
    size = max((facts.num_records or 0 for facts in piece.inputs.values()), default=0)
    return Work("", 0.0, float(size))


def works_on(plugin: object) -> bool:
    """Tell whether an evaluator computes for an unknown time after encoding."""
    return (
        isinstance(plugin, Evaluator)
        and type(plugin).evaluate_with_progress is not Evaluator.evaluate_with_progress
    )


def _training(piece: Piece, trainer: Trainer) -> Work | None:
    work = trainer.work(_num_trained_on(piece), _total(piece.inputs, "dev"))
    begun = piece.inputs[PAUSED].until if PAUSED in piece.inputs else 0.0
    share = float(piece.config.get("until", 1.0)) - begun
    if work is None or work.operations is None:
        return work
    return replace(work, operations=share * work.operations, calls=share * work.calls)


def _num_trained_on(piece: Piece) -> int | None:
    """Return how many rows an epoch has: of each part as many as its weight says; None: unknown."""
    weights, num_rows = piece.config.get("weights"), 0
    for name, facts in piece.inputs.items():
        if name.startswith(DATA):
            if facts.num_records is None:
                return None
            weight = weights[int(name.removeprefix(DATA))] if weights else 1.0
            num_rows += weighted_size(facts.num_records, weight)
    return num_rows


def _evaluating(piece: Piece) -> Work | None:
    task, model = piece.inputs.get("task", UNKNOWN), piece.inputs.get("model", UNKNOWN)
    if task.num_records is None or task.kind is None:
        return None
    if model.base is None:
        return Work("", 0.0 if model.free else None, task.num_records)
    return reading(model.base, task.num_records * SENTENCES[task.kind])


def asked(piece: Piece) -> ChatAmount | None:
    """Return the requests and tokens that a stage's method or step would take; None: unknown."""
    if isinstance(piece.plugin, Method):
        amount = piece.plugin.asks(piece.sizes())
        return None if amount is None else amount.share(piece.share)
    size = piece.inputs.get("data", UNKNOWN).num_records
    return piece.plugin.asks(size) if isinstance(piece.plugin, Step) and size is not None else None


def _prepared(data: ArtifactFacts, steps: Iterable[Step]) -> ArtifactFacts:
    """Return what is known of data after steps."""
    for step in steps:
        size = None if data.num_records is None else step.expected(data.num_records)
        data = ArtifactFacts(size, None if data.kind is None else step.kind_after(data.kind))
    return data


def _asking(piece: Piece) -> Work | None:
    """Return the number of requests."""
    amount, llm = asked(piece), piece.config[LLM_KEY]
    if amount is None:
        return None
    name = f"{llm.get('endpoint')} {llm.get('model', '')}".rstrip()
    return Work(name, None, amount.num_requests)


def _total(inputs: Mapping[str, ArtifactFacts], prefix: str) -> int | None:
    """Return the number of records of all inputs with a prefix, None if one is unknown."""
    sizes = [facts.num_records for name, facts in inputs.items() if name.startswith(prefix)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


_GROUPS = {"train": "trainers", "generate": "methods", "evaluate": "evaluators", "prepare": "steps"}
_OTHER_KEYS = {
    "train": ("seed", "until", "selection", "weights", "temperatures"),
    "generate": (LLM_KEY, SHARD_KEY),
    "prepare": (LLM_KEY,),
}
"""Keys of a stage's configuration that are not its plug-in's."""


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
            self._facts[identity] = self._stored(identity, self.store.info(identity) or {})
        return self._facts[identity]

    def past(self, info: Mapping[str, Any]) -> tuple[Piece, Work | None] | None:
        """Return a past stage by its record, None if its plug-in no longer takes its settings."""
        try:
            piece = self._past_piece(info)
            return piece, work_of(piece)
        except (UserError, *_OF_STRANGERS):
            return None

    def _past_piece(self, info: Mapping[str, Any]) -> Piece:
        spec = info["spec"]
        inputs = {name: self.stored(identity) for name, identity in spec["inputs"].items()}
        return Piece(spec["kind"], spec["component"], spec["config"], _rebuilt(spec), inputs)

    def _expected(self, stage: Stage) -> ArtifactFacts:
        operation = stage.operation
        if isinstance(operation, ReadSource):
            source = operation.source
            return ArtifactFacts(source.expected_records(operation.roots), source.record_kind)
        facts = facts_of(self.piece(stage))
        if isinstance(operation, Prepare):
            return _prepared(facts, [step.plugin for step in operation.steps])
        return facts

    def _stored(self, identity: str, info: Mapping[str, Any]) -> ArtifactFacts:
        files = info.get("files", {})
        try:
            if (name := f"{DATASET_FOLDER}/{MANIFEST_FILE}") in files:
                manifest = read_manifest(self.store.fetch_file(identity, name).parent)
                return ArtifactFacts(manifest.num_records, manifest.kind)
            if CHOICE_FILE in files:
                return self.stored(next(iter(info["spec"]["inputs"].values())))
            return facts_of(self._past_piece(info))
        except (UserError, ArtifactDamagedError, *_OF_STRANGERS):
            return UNKNOWN


def _rebuilt(spec: Mapping[str, Any]) -> Component | None:
    """Return the plug-in of a past stage; raises ValidationError if its settings changed since."""
    kind = spec["kind"]
    if kind not in _GROUPS or spec["component"] == RECIPE:
        return None
    others = _OTHER_KEYS.get(kind, ())
    config = {key: value for key, value in spec["config"].items() if key not in others}
    plugin: Component = component(_GROUPS[kind], spec["component"]).model_validate_json(json.dumps(config))
    return plugin
