"""What the store knows about the stages of a plan."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from synthbench.durability import DamagedFileError
from synthbench.pipeline.engine.artifacts import Artifacts
from synthbench.pipeline.engine.plan import Plan, PlannedRun
from synthbench.pipeline.engine.stage import Stage, ancestors, difference
from synthbench.pipeline.engine.store import ArtifactDamagedError, Store

State = Literal["cached", "not needed", "to run", "resumable", "stale", "damaged"]


@dataclass(frozen=True)
class StageStatus:
    """One stage: how many runs need it, whether it is to run, and why."""

    stage: Stage
    num_runs: int
    state: State
    why: str = ""

    @property
    def is_to_run(self) -> bool:
        """Tell whether a run computes the stage."""
        return self.state not in ("cached", "not needed")


def statuses(plan: Plan, store: Store) -> list[StageStatus]:
    """Return the state of every stage, inputs first. Looks only; a damaged artifact stays where it is."""
    counts = _num_runs(plan)
    known: dict[str, str] = {}
    with suppress(DamagedFileError):  # a run says so, and writes them anew
        known = store.addresses(plan.experiment.name)
    previous = {identity: known[address] for address, identity in plan.addresses.items() if address in known}
    states: dict[str, tuple[State, str]] = {}
    for identity, stage in plan.stages.items():
        states[identity] = _state(stage, store, previous)
        winner = Artifacts(store).chosen_input(stage) if states[identity][0] == "cached" else None
        if winner is not None and states[winner.identity][0] != "cached":
            states[identity] = ("to run", "the model that it chose is gone")
    needed = _needed(plan, {identity for identity, (state, _) in states.items() if state != "cached"})
    result = []
    for identity, stage in plan.stages.items():
        state, why = states[identity]
        if identity not in needed and state != "cached":
            state, why = "not needed", "what depends on it is cached"
        result.append(StageStatus(stage, counts.get(identity, 0), state, why))
    return result


def _state(stage: Stage, store: Store, previous: dict[str, str]) -> tuple[State, str]:
    identity = stage.identity
    if store.has(identity):
        try:
            store.check(identity)
        except ArtifactDamagedError as damage:
            return "damaged", str(damage)
        return "cached", ""
    if (store.root / "partial" / identity).is_dir():
        return "resumable", "begun by an earlier run"
    old = previous.get(identity)
    info = store.info(old) if old and old != identity else None
    if info is not None:
        return "stale", difference(info["spec"], stage.spec)
    return "to run", ""


def _needed(plan: Plan, missing: set[str]) -> set[str]:
    """Return the missing stages that a target depends on through missing stages only."""
    return {stage.identity for stage in ancestors(plan.targets, lambda stage: stage.identity in missing)}


def _num_runs(plan: Plan) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run in plan.runs:
        for identity in needed_by(run):
            counts[identity] = counts.get(identity, 0) + 1
    return counts


def needed_by(run: PlannedRun) -> set[str]:
    """Return the identities of the stages that a run's results come from."""
    return {stage.identity for stage in ancestors(run.ends)}


@dataclass(frozen=True)
class RowStatus:
    """One row: how many runs it has, and of their stages how many are to run and how many are cached.

    A stage that several rows share counts in each; one that is not needed any more, in none.
    """

    label: str
    num_runs: int
    num_to_run: int
    num_cached: int


def row_statuses(plan: Plan, found: Sequence[StageStatus]) -> list[RowStatus]:
    """Sum up the states of a plan's stages by row, in the order of the rows."""
    to_run = {each.stage.identity for each in found if each.is_to_run}
    cached = {each.stage.identity for each in found if each.state == "cached"}
    stages: dict[str, set[str]] = {}
    num_runs: dict[str, int] = {}
    for run in plan.runs:
        label = run.variant.label
        stages.setdefault(label, set()).update(needed_by(run))
        num_runs[label] = num_runs.get(label, 0) + 1
    return [
        RowStatus(label, num_runs[label], len(needed & to_run), len(needed & cached))
        for label, needed in stages.items()
    ]
