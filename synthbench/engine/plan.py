"""The stages of an experiment, the runs that need them, and each stage's state: cached, to run, stale ..."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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

    `data` maps the identity of each candidate's model ("" without a model) to the candidate's parts.
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
        """The run's final stages: model, evaluations and audits, or the data if the run has none of these."""
        model = () if self.model is None else (self.model,)
        found = (*model, *self.evaluations.values(), *self.audits.values())
        return found or tuple(stage for parts in self.data.values() for stage in parts.values())


@dataclass
class Plan:
    """All runs of an experiment; `stages` holds each identity once, inputs first.

    `not_at_hand`: messages on missing data or models, each with the sources concerned. `unsure`: identities
    that depend on the missing data; in a run, these stages will have other identities.
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
        """The stages whose artifacts a run has to produce, each once."""
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
        """Return whether a run computes the stage; True if unknown."""
        return self.state not in ("cached", "not needed")


def statuses(plan: Plan, store: Store) -> list[StageStatus]:
    """Return the state of every stage, inputs first. Read-only, even if artifacts are damaged.

    The state of a needed stage is "unknown" if the identity depends on missing data or models.
    """
    known: dict[str, str] = {}
    with suppress(DamagedFileError):  # a run reports the damage and rewrites the addresses
        known = store.addresses.of(plan.experiment.name)
    previous = {identity: known[address] for address, identity in plan.addresses.items() if address in known}
    states: dict[str, tuple[State, str]] = {}
    with store.listed(plan.stages):
        begun = store.begun()
        for identity, stage in plan.stages.items():
            if identity in plan.unsure:
                why = "whether they are cached: what they depend on is not at hand"
                states[identity] = ("unknown", why)
            else:
                states[identity] = _state(stage, store, previous.get(identity), begun, states)
    num_runs = Counter(identity for run in plan.runs for identity in needed_by(run))
    missing = {identity for identity, (state, _) in states.items() if state != "cached"}
    needed = {each.identity for each in to_compute(plan.targets, lambda each: each.identity in missing)}
    result = []
    for identity, stage in plan.stages.items():
        state, why = states[identity]
        if identity not in needed and state != "cached":
            state, why = "not needed", "what depends on it is cached"
        result.append(StageStatus(stage, num_runs[identity], state, why))
    return result


def _state(
    stage: Stage,
    store: Store,
    old: str | None,
    begun: Collection[str],
    earlier: Mapping[str, tuple[State, str]],
) -> tuple[State, str]:
    """Return a stage's state, and why.

    `old`: the last run's identity at the stage's address, None if unknown. `earlier`: the inputs' states.
    """
    identity = stage.identity
    if store.has(identity):
        try:
            store.check(identity)
            winner = Artifacts(store).chosen_input(stage)
        except ArtifactDamagedError as damage:
            return "damaged", str(damage)
        if winner is not None and earlier[winner.identity][0] != "cached":
            return "to run", "the model that it chose is gone"
        return "cached", ""
    if identity in begun:
        return "resumable", "begun by an earlier run"
    info = store.info(old) if old and old != identity else None
    if info is not None and info.get("spec"):
        return "stale", difference(info["spec"], stage.spec)
    return "to run", ""


def needed_by(run: PlannedRun) -> set[str]:
    """Return the identities of all stages that a run's results depend on."""
    return {stage.identity for stage in to_compute(run.ends, lambda _: True)}


def of_rows(plan: Plan, found: Sequence[StageStatus]) -> dict[str, list[StageStatus]]:
    """Return each row's label -> its stages' states, in no order; rows may share stages."""
    needed: dict[str, set[str]] = {}
    for run in plan.runs:
        needed.setdefault(run.variant.label, set()).update(needed_by(run))
    states = {each.stage.identity: each for each in found}
    return {label: [states[identity] for identity in stages] for label, stages in needed.items()}
