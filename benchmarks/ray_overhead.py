"""The overhead of Ray against `--jobs`: seconds for 500 stages that sleep for one second, two at a time.

    python benchmarks/ray_overhead.py [--stages 500] [--at-once 2]

Both start from nothing, Ray a cluster of one node with that many cores; the beginning, with a first stage for
each worker, is reported separately. The minimum is stages / at once seconds. The CPU milliseconds are those
of all processes, and say more than wall seconds on a busy machine. Needs Ray: pip install 'synthbench[ray]'.
"""

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from measure import cpu_seconds

from synthbench.base.runtime import Runtime
from synthbench.engine.jobs import Executor, StageJob
from synthbench.engine.local_executors import executor
from synthbench.engine.progress import PlainProgress
from synthbench.engine.ray_executor import ray_cluster
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace

SECONDS = 1.0


@dataclass(frozen=True)
class Sleep(Operation):
    """A stage that sleeps and writes one file."""

    kind: ClassVar[str] = "prepare"
    component: ClassVar[str] = "sleep"
    version: ClassVar[int] = 1
    number: int

    def config(self) -> Mapping[str, Any]:
        """Return the stage's number."""
        return {"number": self.number}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Sleep."""
        time.sleep(SECONDS)
        work.output.mkdir(parents=True, exist_ok=True)
        (work.output / "done").write_text("done", encoding="utf-8")


def seconds_of(stages: list[Stage], store: Store, workers: Executor) -> tuple[float, float]:
    """Return the executor's seconds for all stages, and the CPU seconds of all processes."""
    started, cpu = time.perf_counter(), cpu_seconds()
    waiting, num_done = list(stages), 0
    while num_done < len(stages):
        while waiting and workers.capacity:
            workers.submit(
                StageJob(store, [waiting.pop()], Runtime(device="cpu", threads=1), PlainProgress())
            )
        finished = workers.wait()
        assert all(len(outcome.executed) == 1 for _, outcome in finished), finished
        num_done += len(finished)
    return time.perf_counter() - started, cpu_seconds() - cpu


@contextmanager
def on_ray(at_once: int, store: Store, stages: list[Stage]) -> Iterator[Executor]:
    """Start a cluster of one node and connect to it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, connect=False, head_node_args={"num_cpus": at_once, "include_dashboard": False}
    )
    runtime = Runtime(executor="ray", address=cluster.address)
    try:
        with ray_cluster(runtime, stages, lambda *_: Needs(1, 0.0, 0.1), store.root, 1) as workers:
            yield workers
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


def main() -> None:
    """Measure both executors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stages", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    # Workers must find this module as an import of the driver's, not as its main module.
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    from ray_overhead import Sleep as Importable

    stages = [Stage(Importable(number)) for number in range(given.at_once + given.stages)]
    least = given.stages * SECONDS / given.at_once
    print(f"{given.stages} stages of {SECONDS:g} s, {given.at_once} at a time: {least:.1f} s at least")
    seconds, cpu = {}, {}
    for name in ("--jobs", "Ray"):
        with TemporaryDirectory() as folder, ExitStack() as stack, redirect_stderr(io.StringIO()):
            store = Store(Path(folder))
            store.prepare()
            started = time.perf_counter()
            opened = executor(given.at_once) if name == "--jobs" else on_ray(given.at_once, store, stages)
            workers = stack.enter_context(opened)
            seconds_of(stages[: given.at_once], store, workers)
            begun = time.perf_counter() - started
            seconds[name], cpu[name] = seconds_of(stages[given.at_once :], store, workers)
        overhead = 1000 * (seconds[name] - least) / given.stages * given.at_once
        print(
            f"{name}: {begun:.1f} s to begin, then {seconds[name]:.1f} s; {overhead:.0f} ms a stage on top,"
            f" {1000 * cpu[name] / given.stages:.0f} ms of CPU",
            flush=True,
        )
    more, more_cpu = (1000 * (each["Ray"] - each["--jobs"]) / given.stages for each in (seconds, cpu))
    print(
        f"Ray: {seconds['Ray'] / seconds['--jobs']:.2f}x the seconds of --jobs; {more * given.at_once:.0f} ms"
        f" a stage more, {more_cpu:.0f} ms of CPU"
    )


if __name__ == "__main__":
    main()
