"""Jobs: each computes the stages of one group."""

import contextlib
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Protocol

from synthbench.base.errors import PendingError, UserError
from synthbench.base.runtime import Progress, Runtime
from synthbench.engine.artifacts import fetch_checked
from synthbench.engine.leases import StageBusyError
from synthbench.engine.progress import StageProgress, about, in_worker, says_starts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.stage import GroupMember, Stage
from synthbench.engine.store import Store, disk_errors
from synthbench.engine.workers import tell_parent
from synthbench.engine.workspace import ChatAccess, Workspace
from synthbench.llm.endpoint import Account, ChatModel
from synthbench.models.warm import keep_models


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended: the stages that it finished, and why others are unfinished.

    `executed`: identities of the stages that the job computed. `shared`: identities of the stages that
    another process committed first. `busy` names the process that holds a lock, in which case nothing was
    computed. `pending` names the LLM batches that unfinished stages wait for. `error` says why stages failed;
    with `is_user_error`, the cause is no bug of synthbench.
    """

    executed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    busy: str = ""
    pending: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    is_user_error: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class StageJob:
    """Stages that run together; those in `again` are recomputed even if they are cached.

    `position`: the first stage's number in the run, from 1, and the run's number of stages. `llm`: the
    address of the stages' LLM. `experiment` is billed for LLM requests. `tell` is called with a stage's
    identity, and its units done and in total.
    """

    store: Store
    stages: Sequence[Stage]
    runtime: Runtime
    progress: Progress
    again: frozenset[str] = field(default_factory=frozenset)
    position: tuple[int, int] = (1, 1)
    llm: ChatModel | None = None
    experiment: str = ""
    tell: Callable[[str, int, int], None] = tell_parent

    def run(self) -> JobOutcome:
        """Compute the stages that lack an artifact or are in `again`, and return the outcome.

        Errors become part of the outcome; only interrupts are raised.
        """
        started = time.perf_counter()
        executed: list[str] = []
        shared: set[str] = set()
        self.store.say = self.progress.say
        try:
            with contextlib.ExitStack() as locks, disk_errors(self.store.root):
                for stage in sorted(self.stages, key=lambda stage: stage.identity):
                    note = locks.enter_context(self.store.locks.stage(stage.identity, str(stage)))
                    if note:
                        self.progress.say(f"taking over {stage}: {note} left it unfinished")
                shared.update(
                    s.identity for s in self.stages if s.identity not in self.again and self._is_there(s)
                )
                missing = [stage for stage in self.stages if stage.identity not in shared]
                try:
                    for identity, is_ours in self._commits(missing):
                        if is_ours:
                            executed.append(identity)
                        else:
                            shared.add(identity)
                finally:
                    for stage in missing:
                        self.store.unfinished.clear_output(stage.identity)
                return JobOutcome(tuple(executed), tuple(shared), seconds=time.perf_counter() - started)
        except StageBusyError as busy:
            return JobOutcome(busy=str(busy))
        except PendingError as pending:
            return JobOutcome(tuple(executed), tuple(shared), pending=pending.messages)
        except UserError as error:
            return JobOutcome(tuple(executed), tuple(shared), error=error.messages, is_user_error=True)
        except ArtifactDamagedError as damage:
            message = f"an input is damaged ({damage}); run the same command again, which computes it anew"
            return JobOutcome(tuple(executed), tuple(shared), error=(message,), is_user_error=True)
        except SystemExit as end:
            message = f"its code ended the process (sys.exit({end.code!r})) instead of returning"
            return JobOutcome(tuple(executed), tuple(shared), error=(message,), is_user_error=True)
        except Exception:  # noqa: BLE001 - a bug in one stage must not lose the work of another
            return JobOutcome(tuple(executed), tuple(shared), error=(traceback.format_exc(),))

    def for_worker(self, runtime: Runtime) -> "StageJob":
        """Return a copy of the job for a worker process: with this runtime, and progress as plain lines."""
        return replace(self, progress=in_worker(self.progress), runtime=runtime, tell=tell_parent)

    def run_as_planned(self) -> JobOutcome:
        """Run on another machine than the planner's; return an error if a stage's identity differs here."""
        try:
            for stage in self.stages:
                stage.check_identity()
        except UserError as error:
            return JobOutcome(error=error.messages, is_user_error=True)
        return self.run()

    def _is_there(self, stage: Stage) -> bool:
        with contextlib.suppress(ArtifactDamagedError):
            if self.store.has(stage.identity):
                self.store.check(stage.identity)
                return True
        return False

    def _commits(self, stages: Sequence[Stage]) -> Iterator[tuple[str, bool]]:
        """Commit each stage; yield its identity, and whether this machine's commit was the first.

        Stages that a former run finished are committed first, without computing; then all others.
        """
        unfinished = []
        for stage in stages:
            is_new = stage.identity not in self.again
            is_ours = self.store.commit_finished(stage.identity) if is_new else None
            if is_ours is None:
                unfinished.append(stage)
            else:
                self.progress.say(f"committed {stage}, which a former run had finished")
                yield stage.identity, is_ours
        if unfinished:
            yield from self._compute(unfinished)

    def _compute(self, stages: Sequence[Stage]) -> Iterator[tuple[str, bool]]:
        """Compute and commit each stage; yields as `_commits` does."""
        for stage in stages:
            stage.check_code()
        keep_models(stages[0].paid_by)
        first, total = self.position
        for number, stage in enumerate(stages, first):
            if stage.identity in self.again:
                self.store.forget_work(stage.identity)
            if says_starts(self.progress):
                self.progress.say(f"running {stage} [{number}/{total}]")
        started = time.perf_counter()
        members = [
            GroupMember(
                stage.operation,
                {name: fetch_checked(self.store, source) for name, source in stage.reads.items()},
                self._workspace(stage),
            )
            for stage in stages
        ]
        with self.store.saving([stage.identity for stage in stages]):
            finished = members[0].operation.run_together(members)
            for stage, _ in zip(stages, finished, strict=True):
                seconds = time.perf_counter() - started
                record = {
                    "label": str(stage),
                    "spec": stage.stored_spec,
                    "seconds": round(seconds + self._seconds_of_shards(stage), 3),
                    "threads": self.runtime.threads,
                    "by": environment(),
                }
                is_ours = self.store.commit(stage.identity, record)
                started += seconds
                yield stage.identity, is_ours

    def _seconds_of_shards(self, stage: Stage) -> float:
        infos = (self.store.info(shard.identity) or {} for shard in stage.shards)
        return sum(float(info.get("seconds", 0.0)) for info in infos)

    def _workspace(self, stage: Stage) -> Workspace:
        chat = None
        if self.llm is not None:
            account = Account(self.experiment, stage.paid_by or stage.identity)
            chat = ChatAccess(self.llm, self.store.answers, account, self.store.ledger.send)
        progress = StageProgress(about(self.progress, str(stage)), partial(self.tell, stage.identity))
        folder = self.store.workspace(stage.identity, stage.operation.check_work)
        save = partial(self.store.save_work, stage.identity)
        work = Workspace(folder, self.runtime, progress, chat, stage.trusted, save)
        num_damaged = work.journal.repair()
        if num_damaged:
            self.progress.say(
                f"{stage}: dropped {num_damaged:,} journal line{'s' * (num_damaged != 1)}, damaged or of an "
                "earlier version; their records are made again"
            )
        return work


class Executor(Protocol):
    """Runs jobs."""

    @property
    def capacity(self) -> int:
        """The number of further jobs that the executor accepts now."""

    def fits(self, stage: Stage) -> bool:
        """Return whether the stage's resources are free now; always True if nothing runs."""
        return True

    def submit(self, job: StageJob) -> None:
        """Start a job, or queue it."""

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return finished jobs: at least one if any runs, or [] after about `seconds`."""


@cache
def environment() -> Mapping[str, str]:
    """Return the machine's type and the versions of Python and packages, since results depend on them."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in ("synthbench", "torch", "transformers", "sentence-transformers", "numpy", "scipy"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
