"""Registers an experiment before its first score: records what it declares and which scores exist."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from synthbench.base.redaction import without_secrets
from synthbench.engine.jobs import environment
from synthbench.engine.plan import Plan
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.registration.declaring import (
    claims,
    compared,
    declared_rows,
    declared_runs,
    declared_sets,
    num_primary_columns,
    plain,
)
from synthbench.registration.history import EVALUATE, ItemHistory, stored_scores
from synthbench.registration.item_sets import ItemSets
from synthbench.registration.record import Identity, Registered, Registration
from synthbench.registration.stored_registrations import KnownRegistrations, Registrations
from synthbench.statistics.families import RULE

DEV = "dev:"
"""Prefix of the inputs on which a training chooses its checkpoint."""


@dataclass(frozen=True)
class Registering:
    """Registers a plan in a store; `say` reports unreadable registrations."""

    plan: Plan
    store: Store
    overrides: tuple[str, ...]
    say: Callable[[str], None]

    @cached_property
    def registrations(self) -> Registrations:
        """The store's registrations."""
        return Registrations(self.store, self.say)

    @cached_property
    def _known(self) -> KnownRegistrations:
        return self.registrations.known()

    @cached_property
    def _sets(self) -> ItemSets:
        return ItemSets(self.store, self.registrations, self._known, self.say)

    @cached_property
    def tests(self) -> Sequence[Stage]:
        """The stages that read the test sets."""
        found = (stage.inputs["task"] for run in self.plan.runs for stage in run.evaluations.values())
        return tuple({stage.identity: stage for stage in found}.values())

    @property
    def unread(self) -> Sequence[Stage]:
        """The stages of test sets that have to be read, since no registration knows their items."""
        return [stage for stage in self.tests if self._sets.registered(stage.identity) is None]

    @cached_property
    def former(self) -> Identity | None:
        """The hash of the first registration of the same declaration; None if there is none."""
        new = self._declaration
        return None if new is None else self._known.equal_to(new.declared)

    @cached_property
    def registered(self) -> Registered | None:
        """The registration: the `former` one, else a new one; None without test sets.

        Read this property after the test sets have been read, and before anything is scored.
        """
        new = self._declaration
        if new is None:
            return None
        if self.former is not None:
            return _registered(self.former, self._known.records[self.former])
        past = ItemHistory(new, self._known, tuple(stored_scores(self.store)), self._sets)
        history = past.history({name for stage in self._dev if (name := self._sets.of(stage.identity))})
        before = history.earlier[-1].hash if history.earlier else ""
        new = new.model_copy(update={"before": before, "history": history})
        name = self.registrations.add(new)
        # Another machine may have registered the same at the same time: the first one counts for both.
        known = self.registrations.known()
        first = known.equal_to(new.declared) or name
        return _registered(first, known.records.get(first, new))

    def mark_scored(self) -> None:
        """Record that the plan's scores exist, if any do, since `clean` may remove the scores later."""
        registered = self.registered
        if registered is None or registered.hash in self._known.scored:
            return
        scores = {stage.identity for run in self.plan.runs for stage in run.evaluations.values()}
        if any(map(self.store.has, scores)):
            self.registrations.mark_scored(registered.hash)

    @property
    def _dev(self) -> Sequence[Stage]:
        stages = (
            source
            for stage in self.plan.stages.values()
            for name, source in stage.inputs.items()
            if name.startswith(DEV) and stage.kind != EVALUATE
        )
        return tuple({stage.identity: stage for stage in stages}.values())

    @cached_property
    def _declaration(self) -> Registration | None:
        """What the plan declares, without its history; None without test sets."""
        items = {stage.identity: name for stage in self.tests if (name := self._sets.of(stage.identity))}
        if not items:
            return None
        experiment = self.plan.experiment
        sizes = {
            stage: (name, len(keys) if (keys := self._sets.keys(name)) is not None else 0)
            for stage, name in items.items()
        }
        tests = tuple(declared_sets(self.plan, sizes))
        common, rows = declared_rows(self.plan)
        given = claims(experiment)
        pairs = tuple(compared(experiment, given))
        content = {key: value for key, value in experiment.resolved.items() if key != "runtime"}
        return Registration(
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
            synthbench=environment().get("synthbench", ""),
            experiment=experiment.name,
            overrides=self.overrides,
            settings=common,
            rows=rows,
            seeds=experiment.seeds,
            varied=("training", *experiment.vary),
            tests=tests,
            runs=tuple(declared_runs(self.plan)),
            claims=given,
            compared=pairs,
            num_comparisons=len(pairs) * num_primary_columns(experiment, given, tests),
            rule=RULE,
            file=plain(without_secrets(content)),
        )


def _registered(name: Identity, record: Registration) -> Registered:
    return Registered(
        hash=name,
        time=record.time,
        experiment=record.experiment,
        num_comparisons=record.num_comparisons,
        history=record.history,
    )
