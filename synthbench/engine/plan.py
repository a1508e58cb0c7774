"""The stages of an experiment, the runs that need them, and the state of both: cached, to run, stale."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from synthbench.base.durability import DamagedFileError
from synthbench.config.experiment import (
    Experiment,
    Variant,
)
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.stage import Stage, difference, to_compute
from synthbench.engine.store import Store


@dataclass(frozen=True)
class PlannedRun:
    """A row with one seed, and the stages that its results are read from.

    `data`: each candidate's parts, by the identity of its model ("" without a model).
    """

    variant: Variant
    seed: int
    data: Mapping[str, Mapping[str, Stage]]
    candidates: tuple[Stage, ...]
    model: Stage | None
    evaluations: Mapping[str, Stage]
    audits: Mapping[str, Stage]

    @property
    def label(self) -> str:
        """The row's label and seed."""
        return f"{self.variant.label} seed {self.seed}"

    @property
    def ends(self) -> tuple[Stage, ...]:
        """The model, evaluations and audits; the data if there are none."""
        model = () if self.model is None else (self.model,)
        found = (*model, *self.evaluations.values(), *self.audits.values())
        return found or tuple(stage for parts in self.data.values() for stage in parts.values())


@dataclass
class Plan:
    """All runs of an experiment; `stages` holds each identity once, inputs first.

    `not_at_hand`: messages on missing data or models, each with the sources concerned. `unsure`: identities
    that depend on these; a run will compute others.
    """

    experiment: Experiment
    runs: list[PlannedRun] = field(default_factory=list)
    stages: dict[str, Stage] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    missing_tasks: tuple[str, ...] = ()
    not_at_hand: dict[str, list[str]] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)

    @property
    def targets(self) -> list[Stage]:
        """The stages whose artifacts the run has to produce."""
        found = [stage for run in self.runs for stage in run.ends]
        return list({stage.identity: stage for stage in found}.values())


State = Literal["cached", "not needed", "to run", "resumable", "stale", "damaged", "unknown"]


@dataclass(frozen=True)
class StageStatus:
    """A stage's state: how many runs need it, whether it has to run, and why."""

    stage: Stage
    num_runs: int
    state: State
    why: str = ""

    @property
    def is_to_run(self) -> bool:
        """Return whether a run computes the stage."""
        return self.state not in ("cached", "not needed")


def statuses(plan: Plan, store: Store) -> list[StageStatus]:
    """Return the state of every stage, inputs first. Read-only, even if artifacts are damaged.

    The state is "unknown" if the identity depends on missing data or models.
    """
    with store.listed(plan.stages):
        return _statuses(plan, store)


def _statuses(plan: Plan, store: Store) -> list[StageStatus]:
    num_runs = Counter(identity for run in plan.runs for identity in needed_by(run))
    known: dict[str, str] = {}
    with suppress(DamagedFileError):  # a run reports the damage and rewrites the addresses
        known = store.addresses.of(plan.experiment.name)
    previous = {identity: known[address] for address, identity in plan.addresses.items() if address in known}
    begun = store.begun()
    states: dict[str, tuple[State, str]] = {}
    for identity, stage in plan.stages.items():
        if identity in plan.unsure:
            states[identity] = ("unknown", "whether they are cached: what they depend on is not at hand")
            continue
        states[identity] = _state(stage, store, previous, begun)
        winner = None
        if states[identity][0] == "cached":
            try:
                winner = Artifacts(store).chosen_input(stage)
            except ArtifactDamagedError as damage:
                states[identity] = ("damaged", str(damage))
        if winner is not None and states[winner.identity][0] != "cached":
            states[identity] = ("to run", "the model that it chose is gone")
    missing = {identity for identity, (state, _) in states.items() if state != "cached"}
    needed = {each.identity for each in to_compute(plan.targets, lambda each: each.identity in missing)}
    result = []
    for identity, stage in plan.stages.items():
        state, why = states[identity]
        if identity not in needed and state != "cached":
            state, why = "not needed", "what depends on it is cached"
        result.append(StageStatus(stage, num_runs[identity], state, why))
    return result


def _state(stage: Stage, store: Store, previous: dict[str, str], begun: set[str]) -> tuple[State, str]:
    identity = stage.identity
    if store.has(identity):
        try:
            store.check(identity)
        except ArtifactDamagedError as damage:
            return "damaged", str(damage)
        return "cached", ""
    if identity in begun:
        return "resumable", "begun by an earlier run"
    old = previous.get(identity)
    info = store.info(old) if old and old != identity else None
    if info is not None and info.get("spec"):
        return "stale", difference(info["spec"], stage.spec)
    return "to run", ""


def needed_by(run: PlannedRun) -> set[str]:
    """Return the identities of all stages that a run's results depend on."""
    return {stage.identity for stage in to_compute(run.ends, lambda _: True)}


@dataclass(frozen=True)
class RowStatus:
    """A row's counts of runs, stages to run and cached stages; `num_unknown` of those to run may be cached.

    A stage that rows share counts in each of them. An unneeded stage counts in none.
    """

    label: str
    num_runs: int
    num_to_run: int
    num_cached: int
    num_unknown: int


def row_statuses(plan: Plan, found: Sequence[StageStatus]) -> list[RowStatus]:
    """Count the states of a plan's stages by row, in the order of the rows."""
    to_run = {each.stage.identity for each in found if each.is_to_run}
    cached = {each.stage.identity for each in found if each.state == "cached"}
    unknown = {each.stage.identity for each in found if each.state == "unknown"}
    stages: dict[str, set[str]] = {}
    num_runs = Counter(run.variant.label for run in plan.runs)
    for run in plan.runs:
        stages.setdefault(run.variant.label, set()).update(needed_by(run))
    return [
        RowStatus(label, num_runs[label], *(len(needed & some) for some in (to_run, cached, unknown)))
        for label, needed in stages.items()
    ]
