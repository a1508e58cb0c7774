"""Stages that do next to nothing, graphs of them, and runs of such graphs in processes of their own."""

import errno
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fakes import Lines, note_work

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.engine import workers as engine_workers
from synthbench.engine.artifacts import write_dataset
from synthbench.engine.devices import VISIBLE
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import InProcess, executor
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace

RUNTIME = Runtime(device="cpu")


@dataclass(frozen=True)
class Work(Operation):
    """Writes its name, records that it ran, and then behaves as configured."""

    kind: ClassVar[str] = "work"
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    behaviour: str = ""
    version: int = 1
    reads: Mapping[str, str] = field(default_factory=dict)

    @property
    def component(self) -> str:
        return self.name

    def config(self) -> Mapping[str, Any]:
        return self.settings

    @property
    def outside(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.reads

    def check(self, inputs: Mapping[str, Path]) -> None:
        if self.behaviour == "refuses its data":
            names = [(folder / "name.txt").read_text(encoding="utf-8") for folder in inputs.values()]
            raise UserError(f"{self.name} can do nothing with {', '.join(names)}")

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        note_work(self.name)
        for folder in inputs.values():
            assert (folder / "name.txt").is_file()
        self._behave(work)
        (work.output / "name.txt").write_text(self.name, encoding="utf-8")

    def _behave(self, work: Workspace) -> None:
        if self.behaviour.startswith("sleep "):
            time.sleep(float(self.behaviour.split()[1]))
        elif self.behaviour.startswith("says "):
            work.progress.say(self.behaviour.split()[1])
        elif self.behaviour.startswith("waits for "):
            wait_for(Path(self.behaviour.removeprefix("waits for ")))
        elif self.behaviour == "counts":
            with work.progress.task("counting", 3) as task:
                task.advance()
        elif self.behaviour == "user error":
            raise UserError(f"{self.name} can't be done", "and this is why")
        elif self.behaviour == "bug":
            raise ZeroDivisionError(self.name)
        elif self.behaviour == "sys.exit":
            sys.exit(0)
        elif self.behaviour == "exit":
            os._exit(7)
        elif self.behaviour == "interrupt":
            raise KeyboardInterrupt
        elif self.behaviour == "full disk":
            with open("/dev/full", "w", encoding="utf-8") as stream:  # noqa: PTH123
                stream.write("x")
        elif self.behaviour == "full disk in words":
            raise RuntimeError(f"I/O error: {os.strerror(errno.ENOSPC)} (os error 28)")


@dataclass(frozen=True)
class Sees(Work):
    """Writes down which GPUs its process sees, on what device, which process that is, and when it ran.

    It is not in the tests' module, which each process would import anew, with all that planning needs.
    """

    kind: ClassVar[str] = "train"
    log: str = ""
    gpus: float = 1.0
    awaits: str = ""

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        began = time.time()
        (Path(self.log) / f"{self.name}.began").touch()
        if self.awaits:
            wait_for(Path(self.log) / f"{self.awaits}.began")
        seen = os.environ.get(VISIBLE)
        super().run(inputs, work)
        found = [self.name, seen, work.runtime.device, os.getpid(), began, time.time()]
        (Path(self.log) / f"{self.name}.json").write_text(json.dumps(found))


@dataclass(frozen=True)
class FirstWork(Work):
    """A stage that runs before all others."""

    comes_first: ClassVar[bool] = True


@dataclass(frozen=True)
class Together(Work):
    """Work that runs together with its like."""

    def group(self, inputs: Mapping[str, Stage]) -> str:
        return "together"


@dataclass(frozen=True)
class Data(Operation):
    """A data set of numbered pairs."""

    kind: ClassVar[str] = "source"
    component: ClassVar[str] = "pairs"
    version: ClassVar[int] = 1
    size: int = 3

    def config(self) -> Mapping[str, Any]:
        return {"size": self.size}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        pairs = [ScoredPair(sentence1=f"a{i}", sentence2=f"b{i}", score=0.5) for i in range(self.size)]
        write_dataset(SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs), work)


def stage(name: str, *inputs: Stage, behaviour: str = "", first: bool = False) -> Stage:
    """Return a stage with this name and inputs."""
    operation = (FirstWork if first else Work)(name, behaviour=behaviour)
    return Stage(operation, {each.operation.component: each for each in inputs}, name)


@dataclass
class Graph:
    """The part of a plan that a runner uses."""

    targets: Sequence[Stage]

    @property
    def stages(self) -> dict[str, Stage]:
        found: dict[str, Stage] = {}

        def visit(each: Stage) -> None:
            for source in each.inputs.values():
                visit(source)
            found.setdefault(each.identity, each)

        for target in self.targets:
            visit(target)
        return found


def carry_out(
    store: Store, *targets: Stage, forced: frozenset[str] = frozenset(), jobs: int = 1
) -> tuple[RunReport, list[str]]:
    """Run a graph; return the report and the messages."""
    lines = Lines()
    if jobs == 1:
        report = Runner(store, InProcess(), RUNTIME, lines).run(Graph(targets), forced)  # type: ignore[arg-type]
        return report, lines.said
    with executor(jobs) as workers:
        report = Runner(store, workers, RUNTIME, lines).run(Graph(targets), forced)  # type: ignore[arg-type]
    return report, lines.said


def run_job(store: Store, *stages: Stage) -> JobOutcome:
    """Run stages as one job, in this process."""
    return StageJob(store, stages, RUNTIME, Lines()).run()


def names(stages: Sequence[Stage]) -> list[str]:
    """Return the names of stages."""
    return [each.operation.component for each in stages]


def in_process(target: Any, *arguments: Any) -> multiprocessing.process.BaseProcess:
    """Start a function in a new process, with the start method and preloaded imports of workers."""
    context: Any = engine_workers.worker_context()
    process: multiprocessing.process.BaseProcess = context.Process(
        target=_with_environment, args=({**os.environ}, target, *arguments)
    )
    process.start()
    return process


def _with_environment(environment: Mapping[str, str], target: Any, *arguments: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*arguments)


def wait_for(file: Path, seconds: float = 30.0) -> None:
    """Wait until a file is there."""
    end = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < end, f"{file} never came"
        time.sleep(0.01)


def hold_lock(root: Path, identity: str, marker: Path) -> None:
    """Take a stage's lock, say so with a file, and keep it until killed."""
    with Store(root).locks.stage(identity, "work held"):
        marker.write_text(str(os.getpid()))
        time.sleep(600)


def run_diamond(root: Path, said: Path, start: Path) -> None:
    """Run four stages of 0.3 s each once a file exists, and write the messages to a file."""
    wait_for(start)
    report, lines = carry_out(Store(root), diamond("sleep 0.3"))
    said.write_text(json.dumps([names(report.executed), sorted(names_of_failed(report)), lines]))


def diamond(behaviour: str = "") -> Stage:
    """Return the end of a diamond of stages."""
    top = stage("top", behaviour=behaviour)
    sides = (stage(side, top, behaviour=behaviour) for side in ("left", "right"))
    return stage("end", *sides, behaviour=behaviour)


def names_of_failed(report: RunReport) -> list[str]:
    """Return the names of the stages that failed."""
    return names([each for each, _ in report.failed.values()])


def run_with_workers(root: Path) -> None:
    """Keep two worker processes busy for a long time; they need nothing of what takes seconds to import."""
    engine_workers.PRELOADED = __name__
    carry_out(Store(root), *(stage(f"long {n}", behaviour="sleep 600") for n in range(2)), jobs=2)


@dataclass(frozen=True)
class ReadFile(Operation):
    """Stands for a file that was read before."""

    kind: ClassVar[str] = "source"
    component: ClassVar[str] = "file"
    version: ClassVar[int] = 1
    file: str
    content: str = ""

    def config(self) -> Mapping[str, Any]:
        return {"file": self.file, "content": self.content}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        raise AssertionError("it is made before")
