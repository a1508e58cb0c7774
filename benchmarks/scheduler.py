"""The costs of planning and scheduling: CPU seconds to plan an experiment, and to run empty stages.

    python benchmarks/scheduler.py

Planning: experiments/quickstart.yaml with growing numbers of seeds; the file is read, and each stage's
identity is computed and looked up in an empty store. Scheduling: an experiment of n rows, with four sources,
and a generation, a training and an evaluation in each row. The executor reports each stage as done at once;
computing identities and looking them up is included. Exit code 1 if planning 200 seeds and scheduling 6,004
stages take more than 3 s.
"""

import io
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import ClassVar, cast

from synthbench.base.runtime import Runtime
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.progress import PlainProgress
from synthbench.engine.runner import Runner
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.pipeline.planning import make_plan

GOAL = 3.0
"""CPU seconds."""
QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart.yaml"


@dataclass(frozen=True)
class Nothing(Operation):
    """A stage that does nothing."""

    kind: ClassVar[str] = "nothing"
    name: str
    version: int = 1

    @property
    def component(self) -> str:
        """The stage's name."""
        return self.name

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Do nothing: the executor never calls it."""
        raise NotImplementedError


class DoneAtOnce:
    """An executor that reports every stage as done without running it."""

    def __init__(self) -> None:
        self._job: StageJob | None = None

    @property
    def capacity(self) -> int:
        """One job at a time."""
        return 0 if self._job else 1

    def submit(self, job: StageJob) -> None:
        """Accept a job."""
        self._job = job

    def fits(self, stage: Stage) -> bool:
        """Return True: any stage fits."""
        return True

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return the job as done."""
        job, self._job = self._job, None
        return [] if job is None else [(job, JobOutcome(tuple(stage.identity for stage in job.stages)))]


def graph(num_rows: int) -> Plan:
    """Return the parts of a plan that a runner reads."""
    sources = {f"source{index}": Stage(Nothing(f"source{index}")) for index in range(4)}
    stages = {stage.identity: stage for stage in sources.values()}
    targets = []
    for row in range(num_rows):
        generated = Stage(Nothing(f"generate{row}"), sources)
        trained = Stage(Nothing(f"train{row}"), {"data:0": generated})
        targets.append(Stage(Nothing(f"evaluate{row}"), {"model": trained, "task": sources["source0"]}))
        stages |= {stage.identity: stage for stage in (generated, trained, targets[-1])}
    return cast("Plan", SimpleNamespace(targets=targets, stages=stages))


def planned(num_seeds: int) -> tuple[int, float]:
    """Return the number of stages of quickstart with `num_seeds` seeds, and the CPU seconds to plan them."""
    start = time.process_time()
    experiment = load_experiment(QUICKSTART, Overrides(assignments=(f"seeds={list(range(num_seeds))}",)))
    plan = make_plan(experiment)
    with TemporaryDirectory() as folder:
        found = statuses(plan, Store(Path(folder)))
    return len(found), time.process_time() - start


def shown(what: str, number: int, seconds: float) -> str:
    """Return the figures as a line."""
    return f"{number:,} stages {what}: {seconds:.2f} s CPU, {1000 * seconds / number:.2f} ms each"


def main() -> int:
    """Print the seconds for plans and graphs of growing size."""
    of_goal = 0.0
    for num_seeds in (3, 200):
        number, seconds = planned(num_seeds)
        print(shown("planned", number, seconds))
        of_goal += seconds if num_seeds == 200 else 0.0
    for num_rows in (250, 2000, 8000):
        plan = graph(num_rows)
        with TemporaryDirectory() as folder:
            runner = Runner(Store(Path(folder)), DoneAtOnce(), Runtime(), PlainProgress())
            start = time.process_time()
            with redirect_stderr(io.StringIO()):
                report = runner.run(plan)
            seconds = time.process_time() - start
        assert len(report.executed) == len(plan.stages)
        print(shown("scheduled", len(plan.stages), seconds))
        of_goal += seconds if num_rows == 2000 else 0.0
    print(f"together {of_goal:.2f} s, goal {GOAL:g} s {'reached' if of_goal <= GOAL else 'MISSED'}")
    return int(of_goal > GOAL)


if __name__ == "__main__":
    sys.exit(main())
