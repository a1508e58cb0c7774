"""Servers of a local model on a Ray cluster: several replicas, each with its GPU; one is lost."""

import asyncio
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import small_server
from fakes import Lines
from ray_nodes import NODE, fake_cluster

from synthbench.base.runtime import Runtime
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.ray_executor import RayCluster, ray_cluster
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.store import Store
from synthbench.llm.answers import Answer
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server import ServedBackend, servers

pytestmark = pytest.mark.experiments

SECONDS = 120.0
REPLICAS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without cores, and a node that claims to have two GPUs."""
    with fake_cluster(1, 0) as nodes:
        nodes.add_node(**NODE, num_cpus=4, num_gpus=REPLICAS)
        nodes.wait_for_nodes()
        yield nodes


def command(notes: Path) -> str:
    own = shlex.join([sys.executable, str(Path(small_server.__file__)), "--notes", str(notes)])
    return f"{own} --port {{port}} --model {{model}}"


def started(notes: Path) -> list[int]:
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("started ")]


def living(notes: Path) -> list[int]:
    found = [pid for pid in started(notes) if psutil.pid_exists(pid)]
    return [pid for pid in found if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def tend_until(executor: RayCluster, is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until
        executor._servers.tend()
        time.sleep(0.1)


def asked(endpoint: Endpoint, number: int) -> list[Answer]:
    """Ask all requests at once."""

    async def ask() -> list[Answer]:
        async with ServedBackend(endpoint, Lines().say) as backend:
            requests = [
                ChatRequest(str(index), ({"role": "user", "content": "x" * index},), {}, 0)
                for index in range(number)
            ]
            return await asyncio.gather(
                *(backend.ask(each, str(index)) for index, each in enumerate(requests))
            )

    return asyncio.run(ask())


def test_replicas_have_a_gpu_each_and_are_replaced_when_lost(
    cluster: Any, store: Store, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    llm = ServedLLM(serve=command(notes), model="any", replicas=REPLICAS)
    runtime, lines = Runtime(executor="ray", address=cluster.address), Lines()
    with (
        servers(tmp_path / "logs", are_elsewhere=True) as door,
        ray_cluster(runtime, [], lambda *_: Needs(1, 0.0, 0.1), store.root, 1, lines.say) as executor,
    ):
        endpoint = llm.at(replace(llm.address(), door=door))
        backend = ServedBackend(endpoint, lines.say)
        executor._servers.begin(endpoint)
        tend_until(executor, lambda: len(backend._addresses()) == REPLICAS)
        seen = {psutil.Process(pid).environ().get("CUDA_VISIBLE_DEVICES") for pid in living(notes)}
        assert seen == {"0", "1"}
        answers = asked(endpoint, 20)
        assert [answer.text for answer in answers] == [f"{index} letters by any" for index in range(20)]
        first = backend._addresses()
        os.kill(living(notes)[0], signal.SIGKILL)
        tend_until(
            executor,
            lambda: len(set(backend._addresses()) - set(first)) == 1 and len(living(notes)) == REPLICAS,
        )
        assert len(asked(endpoint, 4)) == 4
        executor._servers.end(endpoint)
        tend_until(executor, lambda: not living(notes))
    assert len(started(notes)) == REPLICAS + 1
