"""Runs a plan: every missing stage once, in one process or several."""

import contextlib
import fnmatch
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.runtime import Progress, Runtime
from synthbench.config.llm import NamedLLM
from synthbench.engine.artifacts import fetch
from synthbench.engine.jobs import Executor, JobOutcome, StageJob
from synthbench.engine.monitor import RunMonitor, failure_line, titled
from synthbench.engine.needed import NeededStages
from synthbench.engine.plan import Plan
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.schedule import Schedule
from synthbench.engine.shared_ledger import CountedHold
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.llm.endpoint import ChatModel
from synthbench.llm.endpoint_check import check_endpoint

SECONDS_BETWEEN_ATTEMPTS = 0.3


@dataclass
class RunReport:
    """The outcome of a run's `num_needed` missing stages.

    This run computed the `executed` stages, other processes the `shared` ones. `failed` and `pending` map
    identities to stages with their messages; `pending` stages wait for an LLM's batch. `held_up` stages
    depend on pending ones, `skipped` stages on failed ones. `is_data_faulty`: the data are invalid, so
    nothing was generated or trained. `only_user_errors`: no stage failed by an unexpected exception.
    """

    num_needed: int = 0
    executed: list[Stage] = field(default_factory=list)
    shared: list[Stage] = field(default_factory=list)
    failed: dict[str, tuple[Stage, tuple[str, ...]]] = field(default_factory=dict)
    skipped: list[Stage] = field(default_factory=list)
    pending: dict[str, tuple[Stage, tuple[str, ...]]] = field(default_factory=dict)
    is_data_faulty: bool = False
    held_up: list[Stage] = field(default_factory=list)
    only_user_errors: bool = True

    @property
    def failure_lines(self) -> tuple[str, ...]:
        """A line for each failed stage: its name and the last line of its error."""
        return tuple(failure_line(stage, lines) for stage, lines in self.failed.values())

    @property
    def pending_lines(self) -> tuple[str, ...]:
        """A line for each pending stage and reason."""
        return tuple(f"{stage}: {line}" for stage, lines in self.pending.values() for line in lines)

    def add(self, later: "RunReport") -> None:
        """Add the report of a later part of the same run; `is_data_faulty` stays unchanged."""
        self.num_needed += later.num_needed
        self.executed += later.executed
        self.shared += later.shared
        self.skipped += later.skipped
        self.held_up += later.held_up
        self.failed |= later.failed
        self.pending |= later.pending
        self.only_user_errors &= later.only_user_errors


def matching(plan: Plan, patterns: Iterable[str]) -> set[str]:
    """Return the identities of stages that match `--force` patterns, of their shards and of all dependents.

    A pattern is a kind ("train"), "kind label" as `plan` prints it, or a shell glob over "kind label".
    Raises UserError if a pattern matches nothing.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        found = {
            identity
            for identity, stage in plan.stages.items()
            if pattern in (stage.kind, str(stage)) or fnmatch.fnmatchcase(str(stage), pattern)
        }
        if not found:
            kinds = {stage.kind for stage in plan.stages.values()}
            raise UserError(f"--force {pattern}: matches no stage of this plan{did_you_mean(pattern, kinds)}")
        chosen |= found
    # Sharded stages are recomputed in shards.
    chosen |= {shard.identity for identity in chosen for shard in plan.stages[identity].shards}
    for identity, stage in plan.stages.items():  # inputs come before their readers
        if any(source.identity in chosen for source in stage.reads.values()):
            chosen.add(identity)
    return chosen


@dataclass
class Runner:
    """Executes plans against a store."""

    store: Store
    executor: Executor
    runtime: Runtime
    progress: Progress
    llm: Callable[[NamedLLM], ChatModel | None] = lambda _: None
    """Returns an LLM's address; may start its server. Default: None, so no stage can ask an LLM."""
    experiment: str = ""
    """The experiment billed for LLM requests."""
    monitor: RunMonitor = field(default_factory=RunMonitor)
    """Tracks the run's progress, for display."""
    asking: CountedHold | None = None
    """Holds the ledger of LLM answers while stages ask LLMs; None: the runner makes its own.

    The caller closes it after the executor's workers have ended.
    """

    def needed(
        self, plan: Plan, forced: Collection[str] = (), also: Iterable[Stage] = ()
    ) -> dict[str, Stage]:
        """Return identity -> stage to be computed, inputs first; report and discard damaged artifacts.

        `forced` and `also`: as in `run`. The plan's damaged artifacts are recomputed even if no target needs
        them, since the results may show their content.
        """
        return self._needed(forced).of_plan(plan, also)

    def _needed(self, forced: Collection[str] = ()) -> NeededStages:
        return NeededStages(self.store, self.progress, forced)

    def run(
        self,
        plan: Plan,
        forced: Collection[str] = (),
        *,
        also: Iterable[Stage] = (),
        once_read: Callable[[], object] = lambda: None,
    ) -> RunReport:
        """Compute the missing stages of the plan and of `also`; the identities in `forced` count as missing.

        `also` has stages outside the plan. Sources are read first. If their data are invalid, the run ends
        there. Otherwise the run calls `once_read()`, then computes the other stages.
        A failed or pending stage holds up only stages that depend on it.
        Raises UserError if stages need an LLM that can't answer.
        """
        also = tuple(also)
        with self.store.listed({*plan.stages, *(stage.identity for stage in also)}):
            needed = self.needed(plan, forced, also)
        return self._compute(needed, forced, once_read)

    def read(self, stages: Iterable[Stage]) -> RunReport:
        """Compute stages that only read sources, if they are missing."""
        return self._compute(self._needed().of(stages))

    def compute_again(self, stage: Stage, damage: ArtifactDamagedError) -> RunReport:
        """Recompute a stage whose artifact is damaged, as `damage` describes, and the stage's missing inputs.

        If another process holds the stage, nothing is discarded; once that process is done, the stage runs.
        """
        is_whole = self._needed().is_whole_after(stage, damage)
        again = set() if is_whole or not self.store.has(stage.identity) else {stage.identity}
        return self._compute(self._needed(again).of([stage]), again)

    def _compute(
        self,
        needed: Mapping[str, Stage],
        forced: Collection[str] = (),
        once_read: Callable[[], object] = lambda: None,
    ) -> RunReport:
        self._check_llms(needed.values())
        report = RunReport(num_needed=len(needed))
        again = frozenset(identity for identity in forced if identity in needed)
        first = {identity: stage for identity, stage in needed.items() if stage.operation.comes_first}
        rest = {identity: stage for identity, stage in needed.items() if identity not in first}
        self.monitor.begin(needed.values())
        self._run_stages(first, again, report)
        if not report.failed:
            self._check(rest, report)
        report.is_data_faulty = bool(report.failed) and report.only_user_errors
        if report.is_data_faulty:
            report.skipped += (stage for stage in rest.values() if stage.identity not in report.failed)
            self.monitor.left_out(rest)
        else:
            once_read()
            self._run_stages(rest, again, report)
        return report

    def _check_llms(self, stages: Iterable[Stage]) -> None:
        """Raise UserError, with the messages of all LLMs that can't answer.

        Looks up the model at its endpoint, or the server's program if the run starts the server.
        """
        asked = [llm for stage in stages if (llm := stage.operation.asked_llm) is not None]
        messages: list[str] = []
        for llm in {llm.name: llm for llm in asked}.values():
            try:
                check_endpoint(llm.endpoint(), is_elsewhere=self.runtime.executor == "ray")
            except UserError as error:
                messages += error.messages
        if messages:
            raise UserError(*messages)

    def _check(self, stages: Mapping[str, Stage], report: RunReport) -> None:
        """Let each stage check its sources, which have been read by now; add failures to the report."""
        for identity, stage in stages.items():
            given = {
                name: fetch(self.store, source.identity)
                for name, source in stage.inputs.items()
                if source.operation.comes_first
            }
            try:
                stage.operation.check(given)
            except UserError as error:
                report.failed[identity] = (stage, error.messages)
                self.monitor.failed(stage, error.messages)

    def _run_stages(self, stages: Mapping[str, Stage], again: frozenset[str], report: RunReport) -> None:
        with contextlib.ExitStack() as own:
            ledger = self.asking or own.enter_context(CountedHold(self.store.ledger.held))
            self._run_scheduled(Schedule(stages), ledger, again, report)

    def _run_scheduled(
        self, schedule: Schedule, ledger: CountedHold, again: frozenset[str], report: RunReport
    ) -> None:
        self._skip(schedule.drop(report.failed), report.skipped)
        num_running = 0
        said: set[str] = set()
        # Groups whose lease another process holds: tried again at fixed times, even beside running jobs.
        held: list[Sequence[Stage]] = []
        look_at = 0.0
        while schedule or num_running or held:
            holder = ""
            while self.executor.capacity > 0 and (group := schedule.start(self.executor.fits)):
                if _asks(group):
                    holder = holder or ledger.enter()
                    if holder:
                        self._say_held(group, (holder, "asks an LLM"), said)
                        held.append(group)
                        continue
                num_settled, num_needed = self.monitor.counts
                position = (num_settled + num_running + 1, num_needed)
                num_running += len(group)
                self.monitor.started(group)
                self.executor.submit(self._job(group, again, position))
            pause = max(0.0, look_at - time.monotonic()) if held else None
            if pause and not num_running:
                time.sleep(pause)
            for job, outcome in self.executor.wait(pause):
                num_running -= len(job.stages)
                if _asks(job.stages):
                    ledger.leave()
                self.monitor.ended(job.stages, outcome.executed, outcome.seconds, outcome.shared)
                if outcome.busy:
                    self._remove_dead(job.stages)
                    self._say_held(job.stages, (outcome.busy, "is computing it"), said)
                    held.append(job.stages)
                else:
                    self._account(job, outcome, report, schedule)
            if held and time.monotonic() >= look_at:
                look_at = time.monotonic() + SECONDS_BETWEEN_ATTEMPTS
                for stages in held:
                    schedule.put_back(stages)
                held.clear()

    def _remove_dead(self, stages: Iterable[Stage]) -> None:
        for stage in stages:
            if left_by := self.store.locks.remove_dead(stage.identity):
                self.progress.say(f"taking over {stage}: {left_by} left it unfinished")

    def _job(self, stages: Sequence[Stage], again: frozenset[str], position: tuple[int, int]) -> StageJob:
        # Stages that ask an LLM run alone.
        asked = stages[0].operation.asked_llm
        llm = None if asked is None else self.llm(asked)
        return StageJob(
            self.store,
            stages,
            self.runtime,
            self.progress,
            again,
            position,
            llm=llm,
            experiment=self.experiment,
            tell=self.monitor.advanced,
        )

    def _skip(self, stages: Sequence[Stage], kind: list[Stage]) -> None:
        kind += stages
        self.monitor.left_out(stage.identity for stage in stages)

    def _say_held(self, stages: Sequence[Stage], by: tuple[str, str], said: set[str]) -> None:
        """Report, once per stage, that a group waits. `by`: the blocking process, and what it does."""
        self.monitor.put_back(stages, by[0])
        for stage in stages:
            if stage.identity not in said:
                self.progress.say(f"waiting for {stage}: {' '.join(by)}")
                said.add(stage.identity)

    def _account(self, job: StageJob, outcome: JobOutcome, report: RunReport, schedule: Schedule) -> None:
        by_identity = {stage.identity: stage for stage in job.stages}
        there = {*outcome.executed, *outcome.shared}
        schedule.finish(there)
        for stage in job.stages:
            if stage.identity in there:
                continue
            if outcome.pending:
                report.pending[stage.identity] = (stage, outcome.pending)
            if outcome.error:
                report.failed[stage.identity] = (stage, outcome.error)
                self.monitor.failed(stage, outcome.error)
                report.only_user_errors &= outcome.is_user_error
        dropped = schedule.drop(by_identity.keys() - there)
        self._skip(dropped, report.held_up if outcome.pending else report.skipped)
        report.executed += [by_identity[identity] for identity in outcome.executed]
        for identity in outcome.shared:
            report.shared.append(by_identity[identity])
            self.progress.say(f"shared {by_identity[identity]}: another process has computed it")
        if outcome.executed:
            done = titled([by_identity[identity] for identity in outcome.executed])
            self.progress.say(f"done {done} in {outcome.seconds:.1f} s")


def _asks(stages: Sequence[Stage]) -> bool:
    """Return whether a group asks an LLM."""
    return any(stage.operation.asked_llm is not None for stage in stages)
