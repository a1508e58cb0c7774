"""Hundreds of kills at random moments, in each kind of store: every home ends with an undisturbed run's
bytes."""

import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from s3 import BUCKET, SECRET, make_bucket, s3_server
from small_experiment import new_project
from tqdm import tqdm

from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.engine.cleaning import clean, discard_damaged
from synthbench.engine.holdings import DISCARDED
from synthbench.engine.local_executors import executor
from synthbench.engine.progress import PlainProgress
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, open_store
from synthbench.pipeline.planning import make_plan

pytestmark = pytest.mark.experiments

KILLS = 70
"""Number of kills per kind of store."""
MOST_IN_A_HOME = 8
STEP = "      sampler: {name: bm25, k: 1}\n"
SELECT = "    select:\n      over: {data.silver.sampler.k: [1, 2]}\n"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Start an S3 server with a bucket in a new process; return its environment variables."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(sender,))
    server.start()
    address = receiver.recv()
    yield {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }
    server.kill()
    server.join()


def _serve(sender) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - a connection
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with s3_server() as address:
        make_bucket(address)
        sender.send(address)
        time.sleep(100_000)


@dataclass(frozen=True)
class Machine:
    """A machine with the experiment, and the environment variables of its store and cache."""

    file: Path
    variables: Mapping[str, str]

    def run(self) -> None:
        """Compute the experiment like the command `run`, without tracking and report."""
        plan = make_plan(load_experiment(self.file, Overrides(variants=("augsbert",), seeds=(0,))))
        store = open_store()
        store.prepare()
        runtime = plan.experiment.runtime
        with store.locks.run("experiment small", plan.stages), executor(1) as workers:
            report = Runner(store, workers, runtime, PlainProgress()).run(plan)
        assert not report.failed, report.failure_lines
        store.addresses.remember(plan.experiment.name, plan.addresses)

    def check(self, expected: Path) -> None:
        """Compare every byte of the store with the file `expected`; write that file if it is missing."""
        store = open_store()
        found = contents(store)
        if not expected.exists():
            expected.write_text(json.dumps(found))
        assert found == json.loads(expected.read_text())
        assert {holding.kind for holding in clean(store, 1000)} <= {DISCARDED}
        assert left(store) == []


def in_a_process(machine: Machine, do: Callable[[], None], seconds: float | None = None) -> bool:
    """Call `do` in a new process; kill it after `seconds`; return whether it ended by itself."""
    # A fork of this process has already loaded all libraries.
    process = multiprocessing.get_context("fork").Process(target=_do, args=(machine, do))
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def _do(machine: Machine, do: Callable[[], None]) -> None:
    # Forks share tqdm's lock, which a killed one may hold for ever.
    tqdm.set_lock(threading.RLock())
    os.environ |= machine.variables
    do()


def contents(store: Store) -> dict[str, str]:
    """Return the hash of each file of each artifact, after reading them all."""
    _, damage = discard_damaged(store, PlainProgress())
    assert damage == []
    return {
        f"{identity}/{name}": file["sha256"]
        for identity in store.find()
        for name, file in store.record(identity)["files"].items()
    }


def left(store: Store) -> list[str]:
    """Return the remains of killed runs in a store or its cache, after a clean-up.

    Stage leases are not counted: one stays, expired, if its holder is killed after the commit.
    """
    lost = [holding.identity for holding in (*store.contents.lost(), *store.rubbish.holdings())]
    leases = [entry.key for entry in store.shared.objects.list("leases/")] if store.shared else []
    leases = [key for key in leases if key.startswith("leases/run-")]
    runs = [path.name for path in (store.root / "locks").glob("run-*")]
    return [*lost, *leases, *runs]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> Path:
    """An experiment that generates, prepares, trains and evaluates."""
    made = new_project(tmp_path_factory.mktemp("project"), bert)
    made.change(SELECT, "")
    made.change(STEP, f"{STEP}      prepare: [{{step: sample, size: 40, seed: 0}}]\n")
    return made.file


def variables(kind: str, folder: Path, s3: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Return the environment variables of an empty store of this kind."""
    home = {"SYNTHBENCH_HOME": str(folder / "home")}
    if kind == "local":
        return home
    if kind.startswith("s3"):
        return {
            **home,
            **s3(),
            LEASE_VARIABLE: "1",
            VARIABLE: f"s3://{BUCKET}/{folder.parent.name}-{folder.name}",
        }
    (folder / "network").mkdir()
    return {**home, LEASE_VARIABLE: "1", VARIABLE: str(folder / "network")}


@pytest.mark.parametrize("kind", ["local", "folder", "s3", "folder, spot machines", "s3, spot machines"])
def test_runs_killed_at_random_moments_end_with_the_same_bytes(
    kind: str, file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two machines use a shared store in turn, each with its own unfinished work and copies.

    A spot machine is gone when it was killed, with all that only its disk held.
    """
    expected, seconds = tmp_path / "expected.json", 0.0
    with pytest.MonkeyPatch.context() as patch:  # which loads all libraries
        patch.setenv("SYNTHBENCH_HOME", str(tmp_path / "first"))
        Machine(file, {}).run()
    for name in ("whole", "again"):
        whole = Machine(file, {"SYNTHBENCH_HOME": str(tmp_path / name)})
        began = time.monotonic()
        assert in_a_process(whole, whole.run)
        seconds = time.monotonic() - began
        assert in_a_process(whole, partial(whole.check, expected))
    draw, num_kills, num_homes = random.Random(kind), 0, 0
    while num_kills < KILLS:
        num_homes += 1
        folder = tmp_path / str(num_homes)
        folder.mkdir()
        common = variables(kind, folder, lambda: request.getfixturevalue("s3"))
        caches = ("one",) if kind == "local" else ("one", "other")
        machines = [Machine(file, {**common, CACHE_VARIABLE: str(folder / name)}) for name in caches]
        for number in range(MOST_IN_A_HOME):
            machine = draw.choice(machines)
            if "spot" in kind:
                machine = Machine(file, {**common, CACHE_VARIABLE: str(folder / f"spot{number}")})
            if in_a_process(machine, machine.run, draw.uniform(0.0, seconds)):
                break
            num_kills += 1
            shutil.rmtree(folder / f"spot{number}", ignore_errors=True)
        machine = draw.choice(machines)
        assert in_a_process(machine, machine.run)
        assert in_a_process(machine, partial(machine.check, expected))
        shutil.rmtree(folder)
        print(f"{kind}: {num_kills} kills in {num_homes} homes", flush=True)
    num_files = len(json.loads(expected.read_text()))
    print(f"{kind}: {num_kills} kills in {num_homes} homes; {num_files} files of each are equal", flush=True)
