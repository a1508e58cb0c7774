"""Find the stages to compute: those without a whole artifact."""

import contextlib
from collections.abc import Collection, Iterable

from synthbench.base.runtime import Progress
from synthbench.engine.artifacts import Artifacts, fetch_checked
from synthbench.engine.leases import StageBusyError
from synthbench.engine.plan import Plan
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.stage import Stage, to_compute
from synthbench.engine.store import Store


class NeededStages:
    """Finds the stages to compute; reports and discards damaged artifacts.

    Stages with identities in `forced` count as missing. Each artifact is checked at most once lightly and
    once thoroughly.
    """

    def __init__(self, store: Store, progress: Progress, forced: Collection[str] = ()) -> None:
        self._store = store
        self._progress = progress
        self._forced = forced
        self._known: dict[tuple[str, bool], bool] = {}
        """(identity, whether the check was thorough) -> whether the artifact is usable."""

    def of_plan(self, plan: Plan, also: Iterable[Stage] = ()) -> dict[str, Stage]:
        """Return identity -> stage to compute for the plan's targets and `also`, inputs first.

        The plan's damaged artifacts are among them even if no target needs them.
        """
        needed = self.of([*plan.targets, *also])
        unchecked = (
            stage
            for stage in plan.stages.values()
            if not {(stage.identity, False), (stage.identity, True)} & self._known.keys()
        )
        damaged = [
            stage
            for stage in unchecked
            if self._store.has(stage.identity) and not self._is_whole(stage, thorough=False)
        ]
        self._known |= {(stage.identity, thorough): False for stage in damaged for thorough in (False, True)}
        return needed | self.of(damaged)

    def of(self, targets: Iterable[Stage]) -> dict[str, Stage]:
        """Return identity -> stage to compute for the targets, inputs first.

        Artifacts that will be read as inputs are checked thoroughly.
        """
        ends = {stage.identity: stage for stage in targets if self._is_missing(stage, thorough=False)}
        found = to_compute(
            ends.values(), lambda stage: stage.identity in ends or self._is_missing(stage, thorough=True)
        )
        return {stage.identity: stage for stage in found}

    def is_whole_after(self, stage: Stage, damage: ArtifactDamagedError) -> bool:
        """Return whether an artifact that was found damaged is whole by now; discard it if it is not.

        If another process holds the stage, nothing is discarded.
        """
        if not damage.is_foreign:
            return self._is_whole(stage, thorough=True)
        # Its checksums match, so a check would not find the fault.
        with contextlib.suppress(StageBusyError), self._store.locks.stage(stage.identity, str(stage)):
            self._store.discard(stage.identity)
            self._say_damaged(stage, damage)
        return False

    def _is_missing(self, stage: Stage, *, thorough: bool) -> bool:
        return stage.identity in self._forced or not self._usable(stage, thorough=thorough)

    def _usable(self, stage: Stage, *, thorough: bool) -> bool:
        """Return whether the artifact is whole; for a select stage, also whether the chosen model is.

        If the chosen model is gone, the select stage's artifact is discarded.
        """
        key = (stage.identity, thorough)
        if key not in self._known:
            self._known[key] = self._is_whole(stage, thorough=thorough)
            winner = Artifacts(self._store).chosen_input(stage) if self._known[key] else None
            if winner is not None and not self._usable(winner, thorough=thorough):
                self._discard_choice(stage)
                self._known[key] = False
        return self._known[key]

    def _discard_choice(self, stage: Stage) -> None:
        """Discard a select stage's artifact if the chosen model is gone and no other process holds it."""
        with (
            contextlib.suppress(StageBusyError, ArtifactDamagedError),
            self._store.locks.stage(stage.identity, str(stage)),
        ):
            winner = Artifacts(self._store).chosen_input(stage)
            if winner is not None and not self._store.has(winner.identity):
                self._store.discard(stage.identity)

    def _is_whole(self, stage: Stage, *, thorough: bool) -> bool:
        try:
            return self._is_there(stage, thorough=thorough)
        except ArtifactDamagedError as damage:
            return self._is_whole_after_all(stage, damage, thorough=thorough)

    def _is_there(self, stage: Stage, *, thorough: bool) -> bool:
        """Return whether the artifact exists; raises ArtifactDamagedError if it is damaged.

        If `thorough`, all files are fetched and hashed, and their content is validated.
        """
        if not self._store.has(stage.identity):
            return False
        self._store.check(stage.identity, thorough=thorough)
        if thorough:
            fetch_checked(self._store, stage)
        else:
            Artifacts(self._store).chosen_input(stage)
        return True

    def _is_whole_after_all(self, stage: Stage, damage: ArtifactDamagedError, *, thorough: bool) -> bool:
        """Check a damaged artifact again, under its lock; discard it if still damaged.

        Returns True if another process has recomputed it, else False. If another process holds the lock,
        nothing is checked or discarded.
        """
        try:
            with self._store.locks.stage(stage.identity, str(stage)):
                try:
                    if self._is_there(stage, thorough=thorough):
                        return True
                    # The check has already removed it from a shared store.
                except ArtifactDamagedError as still:
                    damage = still
                    self._store.discard(stage.identity)
                self._say_damaged(stage, damage)
        except StageBusyError as busy:
            self._progress.say(f"the stored artifact of {stage} is damaged; {busy} is computing it again")
        return False

    def _say_damaged(self, stage: Stage, damage: ArtifactDamagedError) -> None:
        self._progress.say(f"the stored artifact of {stage} is damaged ({damage}); computing it again")
