"""Servers of local models on a cluster: wanted, started, lost, ended; with a fake Ray.

tests/cluster has the same on a real one.
"""

import itertools
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Lines
from ray.exceptions import RayError, RayTaskError
from wording import refused

from synthbench.base.errors import UserError
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.ray_servers import MOST_STARTS, RayServers, forwarded
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.server import ServedBackend, server_file, servers


@dataclass(eq=False)
class Call:
    """A call to an actor; it has ended once it has a result."""

    result: Any = None


@dataclass(eq=False)
class Actor:
    """A server's actor."""

    options: dict[str, Any]
    calls: list[Call] = field(default_factory=list)
    is_killed: bool = False

    def __post_init__(self) -> None:
        self.serve = self.watch = SimpleNamespace(remote=self._call)

    def _call(self) -> Call:
        self.calls.append(Call())
        return self.calls[-1]

    def end(self, result: Any) -> None:
        self.calls[-1].result = result


class FakeRay:
    """The part of Ray that RayServers uses."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []

    def remote(self, _: type) -> Any:
        def create(options: dict[str, Any]) -> Actor:
            self.actors.append(Actor(options))
            return self.actors[-1]

        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda *_: create(options)))

    def wait(self, calls: list[Call], **_: Any) -> tuple[list[Call], list[Call]]:
        return [call for call in calls if call.result is not None], []

    def get(self, call: Call) -> Any:
        if isinstance(call.result, Exception):
            raise call.result
        return call.result

    def kill(self, actor: Actor) -> None:
        actor.is_killed = True

    @property
    def alive(self) -> list[Actor]:
        return [actor for actor in self.actors if not actor.is_killed]


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type] # as much of it as is used
    return fake


@contextmanager
def elsewhere(tmp_path: Path, **settings: Any) -> Iterator[Endpoint]:
    """Yield the endpoint of a model that the run serves on a cluster."""
    llm = ServedLLM(serve="server --port {port}", model="any", **settings)
    with servers(tmp_path / "logs", are_elsewhere=True) as door:
        yield llm.at(replace(llm.address(), door=door))


def of_a_run(why_not: str = "", gpus: Iterator[float] | None = None) -> RayServers:
    gpus = gpus or itertools.repeat(1.0)
    return RayServers(lambda _: next(gpus), lambda _: why_not, lambda: {"label_selector": "x"}, Lines().say)


@contextmanager
def wanted(
    tmp_path: Path, run: RayServers | None = None, **settings: Any
) -> Iterator[tuple[RayServers, ServedBackend]]:
    """Yield a run's servers, once a process has said that it wants them, and what this process asks."""
    run = of_a_run() if run is None else run  # false without a stage
    with elsewhere(tmp_path, **settings) as endpoint:
        backend = ServedBackend(endpoint, Lines().say)
        run.begin(endpoint)
        assert backend.address_if_ready() is None
        run.tend()
        yield run, backend
        run.close()


def test_a_server_starts_when_it_is_wanted_and_ends_with_the_last_stage(ray: FakeRay, tmp_path: Path) -> None:
    with elsewhere(tmp_path) as endpoint:
        run, backend = of_a_run(), ServedBackend(endpoint, Lines().say)
        run.begin(endpoint)
        run.begin(endpoint)
        run.tend()
        assert not ray.actors, "all answers may be cached"
        assert backend.address_if_ready() is None
        run.tend()
        (actor,) = ray.actors
        assert actor.options == {"num_cpus": 1, "num_gpus": 1.0, "label_selector": "x"}
        assert backend.address_if_ready() is None
        actor.end("http://10.0.0.3:4000/v1")
        run.tend()
        assert backend.address_if_ready() == "http://10.0.0.3:4000/v1"
        run.end(endpoint)
        assert ray.alive == [actor]
        run.end(endpoint)
        assert ray.alive == []
        assert not run
        run.begin(endpoint)
        assert backend.address_if_ready() is None
        run.tend()
        assert len(ray.alive) == 1
        run.close()


def test_requests_go_to_the_replicas_that_are_ready(ray: FakeRay, tmp_path: Path) -> None:
    with wanted(tmp_path, replicas=3, concurrency=4) as (run, backend):
        assert backend._endpoint.pacing.concurrency == 12
        for number in (0, 2):
            ray.actors[number].end(f"http://10.0.0.{number}:1/v1")
        run.tend()
        assert backend._addresses() == ["http://10.0.0.0:1/v1", "http://10.0.0.2:1/v1"]
        ray.actors[0].end(RayError("its node is gone"))
        run.tend()
        assert backend._addresses() == ["http://10.0.0.2:1/v1"]
        assert len(ray.alive) == 3, "another one starts"
        ray.actors[2].end("ended by itself")
        run.tend()
        assert backend._addresses() == []
        ray.actors[1].end("http://10.0.0.1:1/v1")
        run.tend()
        assert backend._addresses() == ["http://10.0.0.1:1/v1"]


@pytest.mark.parametrize(
    "cause",
    [
        UserError("llm: its server ended with exit code 1"),
        OSError("[Errno 99] Cannot assign requested address"),
    ],
)
def test_a_server_that_can_not_start_is_reported_in_one_line(
    ray: FakeRay, tmp_path: Path, cause: Exception
) -> None:
    with wanted(tmp_path) as (run, backend):
        ray.actors[0].end(RayTaskError("serve", "", cause, proctitle="ray", pid=1, ip="10.0.0.3"))
        run.tend()
        with refused("llm: ", str(cause).removeprefix("llm: ")):
            backend.address_if_ready()
        assert ray.alive == []


def test_a_server_that_no_node_can_hold_is_refused(ray: FakeRay, tmp_path: Path) -> None:
    none = of_a_run(f"needs {Needs(1, 4.0, 0.0)}, and no node has that much")
    with wanted(tmp_path, none, gpus=4) as (_, backend):
        with refused("its server needs 1 CPU core, 4 GPUs", "no node has that much"):
            backend.address_if_ready()
        assert not ray.actors


def test_a_server_that_no_node_could_hold_for_too_long_is_given_up(ray: FakeRay, tmp_path: Path) -> None:
    with wanted(tmp_path, replicas=2) as (run, backend):
        (needs,) = run.needs
        run.give_up(Needs(7, 0.0, 0.0), "needs other things")
        assert len(ray.alive) == 2
        run.give_up(needs, f"needs {needs}, and no node with that much was there")
        with refused("its server needs 1 CPU core, 1 GPU", "was there"):
            backend.address_if_ready()
        assert ray.alive == []
        assert not run.needs


def test_a_server_that_is_always_lost_is_given_up(ray: FakeRay, tmp_path: Path) -> None:
    with wanted(tmp_path) as (run, backend):
        for _ in range(MOST_STARTS):
            ray.actors[-1].end(RayError("lost"))
            run.tend()
        with refused(f"its servers were lost {MOST_STARTS} times"):
            backend.address_if_ready()


def test_a_server_waits_for_another_gpu_if_the_cluster_has_lost_the_last(
    ray: FakeRay, tmp_path: Path
) -> None:
    """Without a GPU, it would start on any node, and fail there."""
    with wanted(tmp_path, of_a_run(gpus=iter([1.0, 0.0]))) as (run, _):
        ray.actors[0].end(RayError("its node is gone"))
        run.tend()
        assert [actor.options["num_gpus"] for actor in ray.actors] == [1.0, 1.0]


def test_replicas_and_gpus_change_no_identity(tmp_path: Path) -> None:
    plain = ServedLLM(serve="server --port {port}", model="any")
    several = ServedLLM(serve="server --port {port}", model="any", replicas=8, gpus=2)
    assert plain.identity() == several.identity()
    assert plain.at(plain.address()).pacing.concurrency == several.at(several.address()).pacing.concurrency
    with elsewhere(tmp_path) as one, elsewhere(tmp_path, replicas=8) as other:
        assert server_file(one).name == server_file(other).name


def test_a_port_of_the_loopback_is_forwarded_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo() -> None:
            for _ in range(2):
                with listening.accept()[0] as connection:
                    while part := connection.recv(1 << 16):
                        connection.sendall(part.upper())

        threading.Thread(target=echo, daemon=True).start()
        port = forwarded("127.0.0.1", listening.getsockname()[1])
        assert port != listening.getsockname()[1]
        for text in (b"a" * 100_000, b"again"):
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                threading.Thread(target=connection.sendall, args=(text,)).start()
                received = b""
                while len(received) < len(text):
                    received += connection.recv(1 << 16)
                assert received == text.upper()


def test_an_address_of_another_machine_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match="assign"):
        forwarded("192.0.2.1", 1)
