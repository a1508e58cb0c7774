"""What the scheduler costs: seconds to run graphs of stages that do nothing.

    python benchmarks/scheduler.py

An experiment of n rows has four sources, then a generation, a training and an evaluation in each row. The
executor reports each stage as done at once; identities and the look into an empty store are counted.
"""

import io
import time
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import ClassVar, cast

from synthbench.pipeline.engine.jobs import Job, Outcome
from synthbench.pipeline.engine.plan import Plan
from synthbench.pipeline.engine.progress import PlainProgress
from synthbench.pipeline.engine.runner import Runner
from synthbench.pipeline.engine.stage import Operation, Stage
from synthbench.pipeline.engine.store import Store
from synthbench.pipeline.engine.workspace import Workspace
from synthbench.runtime import Runtime


@dataclass(frozen=True)
class Nothing(Operation):
    """A stage that does nothing."""

    kind: ClassVar[str] = "nothing"
    name: str
    version: int = 1

    @property
    def component(self) -> str:
        """Its name."""
        return self.name

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Never called: the executor only says that it was."""
        raise NotImplementedError


class DoneAtOnce:
    """Computes nothing, and says that it did."""

    capacity = 1

    def __init__(self) -> None:
        self._job: Job | None = None

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._job = job

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return it as done."""
        job, self._job = self._job, None
        return [] if job is None else [(job, Outcome(tuple(stage.identity for stage in job.stages)))]


def graph(num_rows: int) -> Plan:
    """Return as much of a plan as a runner reads."""
    sources = {f"source{index}": Stage(Nothing(f"source{index}")) for index in range(4)}
    stages = {stage.identity: stage for stage in sources.values()}
    targets = []
    for row in range(num_rows):
        generated = Stage(Nothing(f"generate{row}"), sources)
        trained = Stage(Nothing(f"train{row}"), {"data:0": generated})
        targets.append(Stage(Nothing(f"evaluate{row}"), {"model": trained, "task": sources["source0"]}))
        stages |= {stage.identity: stage for stage in (generated, trained, targets[-1])}
    return cast("Plan", SimpleNamespace(targets=targets, stages=stages))


def main() -> None:
    """Print the seconds for graphs of growing size."""
    for num_rows in (250, 2000, 8000):
        plan = graph(num_rows)
        with TemporaryDirectory() as folder:
            runner = Runner(Store(Path(folder)), DoneAtOnce(), Runtime(), PlainProgress())
            start = time.process_time()
            with redirect_stderr(io.StringIO()):
                report = runner.run(plan)
            seconds = time.process_time() - start
        assert len(report.executed) == len(plan.stages)
        print(f"{len(plan.stages):,} stages: {seconds:.2f} s CPU")


if __name__ == "__main__":
    main()
