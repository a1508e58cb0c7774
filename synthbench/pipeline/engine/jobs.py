"""One job: the stages of a group, computed under their locks, in this process or another."""

import contextlib
import platform
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from synthbench.errors import PendingError, UserError
from synthbench.llm.endpoint import Account
from synthbench.pipeline.engine.progress import about
from synthbench.pipeline.engine.stage import GroupMember, Stage
from synthbench.pipeline.engine.store import ArtifactDamagedError, StageBusyError, Store, disk_errors
from synthbench.pipeline.engine.workspace import ChatAccess, Workspace
from synthbench.plugins import ChatModel
from synthbench.runtime import Progress, Runtime


@dataclass(frozen=True)
class Outcome:
    """What became of a job: `executed` and `shared` are identities of stages that are there now.

    `busy` says who holds a lock (then nothing was done), `pending` what is under way elsewhere and comes on
    another day, `error` what went wrong; both are about the stages that are not there now.
    """

    executed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    busy: str = ""
    pending: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    is_user_error: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """Stages that run together; those in `again` are computed even if their artifact is there.

    `position` is the number of the first of them among all that are to run, and how many these are. `llm` is
    where the LLM is to be found that one of them uses, `experiment` who pays for it.
    """

    store: Store
    stages: Sequence[Stage]
    runtime: Runtime
    progress: Progress
    again: frozenset[str] = field(default_factory=frozenset)
    position: tuple[int, int] = (1, 1)
    llm: ChatModel | None = None
    experiment: str = ""

    def run(self) -> Outcome:
        """Compute the stages whose artifacts are missing; never raises but for interruption."""
        started = time.perf_counter()
        executed: list[str] = []
        try:
            with contextlib.ExitStack() as locks, disk_errors(self.store.root):
                for stage in sorted(self.stages, key=lambda stage: stage.identity):
                    note = locks.enter_context(self.store.lock(stage.identity, str(stage)))
                    if note:
                        self.progress.say(f"taking over {stage}: {note} left it unfinished")
                missing = [s for s in self.stages if s.identity in self.again or not self._is_there(s)]
                try:
                    for identity in self._compute(missing):
                        executed.append(identity)
                finally:
                    for stage in missing:
                        self.store.clear_output(stage.identity)
                shared = tuple(stage.identity for stage in self.stages if stage not in missing)
                return Outcome(tuple(executed), shared, seconds=time.perf_counter() - started)
        except StageBusyError as busy:
            return Outcome(busy=str(busy))
        except PendingError as pending:
            return Outcome(tuple(executed), pending=pending.messages)
        except UserError as error:
            return Outcome(tuple(executed), error=error.messages, is_user_error=True)
        except SystemExit as end:
            message = f"its code ended the process (sys.exit({end.code!r})) instead of returning"
            return Outcome(tuple(executed), error=(message,), is_user_error=True)
        except Exception:  # noqa: BLE001 - one stage's bug must not take the others' work along
            return Outcome(tuple(executed), error=(traceback.format_exc(),))

    def _is_there(self, stage: Stage) -> bool:
        if not self.store.has(stage.identity):
            return False
        try:
            self.store.check(stage.identity)
        except ArtifactDamagedError:
            return False
        return True

    def _compute(self, stages: Sequence[Stage]) -> Iterator[str]:
        """Yield the identity of each stage once it is committed."""
        if not stages:
            return
        for stage in stages:
            stage.check_code()
        first, total = self.position
        for number, stage in enumerate(stages, first):
            if stage.identity in self.again:
                self.store.forget_partial(stage.identity)
            self.progress.say(f"running {stage} [{number}/{total}]")
        started = time.perf_counter()
        members = [
            GroupMember(
                stage.operation,
                {name: self.store.folder(source.identity) for name, source in stage.inputs.items()},
                self._workspace(stage),
            )
            for stage in stages
        ]
        finished = members[0].operation.run_together(members)
        for stage, _ in zip(stages, finished, strict=True):
            seconds = time.perf_counter() - started
            record = {
                "label": str(stage),
                "spec": stage.spec,
                "seconds": round(seconds, 3),
                "threads": self.runtime.threads,
                "by": environment(),
            }
            self.store.commit(stage.identity, record)
            started += seconds
            yield stage.identity

    def _workspace(self, stage: Stage) -> Workspace:
        chat = None
        if self.llm is not None:
            chat = ChatAccess(self.llm, self.store.answers, Account(self.experiment, stage.identity))
        progress = about(self.progress, str(stage))
        work = Workspace(self.store.workspace(stage.identity), self.runtime, progress, chat)
        num_damaged = work.journal.mend()
        if num_damaged:
            self.progress.say(
                f"{stage}: dropped {num_damaged:,} journal line{'s' * (num_damaged != 1)}, damaged or of an "
                "earlier version; what they held is made again"
            )
        return work


@cache
def environment() -> Mapping[str, str]:
    """Return the versions and the machine that results depend on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in ("synthbench", "torch", "transformers", "sentence-transformers", "numpy", "scipy"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
