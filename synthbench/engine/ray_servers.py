"""Servers of local models on a Ray cluster: actors that hold GPUs and start the program on their node.

The processes that ask say in a file of the run's folder that they want a server (`llm/server.py`). The
driver locks that file, starts the actors, and writes their addresses into it. It ends them when no stage that
asks is under way, so that other stages get the GPUs.
"""

import asyncio
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.engine.progress import PlainProgress
from synthbench.engine.ray_nodes import Needs, first_sentence, remote
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.server import SECONDS_BETWEEN_LOOKS, ServedBackend, server_file, servers
from synthbench.llm.server_programs import check_program

CORES = 1
MOST_STARTS = 20
"""Starts of a replica in a run: a server that ends by itself, or whose node is lost, starts again."""


class ModelServer:
    """An actor that serves a model on its node; its process sees the GPUs that Ray gave it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._stack = ExitStack()

    def serve(self) -> str:
        """Start the server, and return its base URL in the cluster once it is healthy; raises UserError."""
        import ray

        if self._endpoint.served is not None:
            check_program(self._endpoint.served, self._endpoint.section)
        door = self._stack.enter_context(servers(home() / "servers"))
        here = replace(self._endpoint, door=door)
        self._backend = ServedBackend(here, PlainProgress().say)
        while (address := self._backend.address_if_ready()) is None:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return f"http://{host}:{forwarded(host, urlsplit(address).port or 0)}/v1"

    def watch(self) -> None:
        """Return when the server has ended."""
        while self._backend.is_running():
            time.sleep(SECONDS_BETWEEN_LOOKS)


def forwarded(host: str, port: int) -> int:
    """Forward connections to a free port of `host` to a port of this machine's loopback; return the free one.

    Programs listen on the loopback alone. A thread forwards until the process ends.
    """
    found: list[int] = []
    is_open = threading.Event()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while part := await reader.read(1 << 16):
                writer.write(part)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def forward() -> None:
        listening = await asyncio.start_server(connect, host, 0)
        found.append(listening.sockets[0].getsockname()[1])
        is_open.set()
        await listening.serve_forever()

    threading.Thread(target=lambda: asyncio.run(forward()), daemon=True).start()
    is_open.wait()
    return found[0]


@dataclass
class _Replica:
    """An actor, the call that it has been asked, and its address once it is healthy."""

    actor: Any
    call: Any
    address: str = ""


@dataclass
class _Service:
    """An LLM that stages ask: how many of its stages are under way, and its servers."""

    endpoint: Endpoint
    num_stages: int = 0
    file: IO[str] | None = None
    """The locked file, while servers are wanted."""
    replicas: list[_Replica] = field(default_factory=list)
    num_starts: int = 0


class RayServers:
    """The servers of a run.

    `gpus_of` returns how many GPUs a server takes, `why_not` why no node can hold it, `options` further
    options of actors. Nothing here waits.
    """

    def __init__(
        self,
        gpus_of: Callable[[Endpoint], float],
        why_not: Callable[[Needs], str],
        options: Callable[[], dict[str, Any]],
        say: Callable[[str], None],
    ) -> None:
        self._gpus_of, self._why_not, self._options, self._say = gpus_of, why_not, options, say
        self._services: dict[Path, _Service] = {}

    def __bool__(self) -> bool:
        """Whether a stage that asks a served LLM is under way."""
        return bool(self._services)

    def begin(self, endpoint: Endpoint) -> None:
        """Note that a stage begins that may ask this LLM."""
        service = self._services.setdefault(server_file(endpoint), _Service(endpoint))
        service.num_stages += 1

    def end(self, endpoint: Endpoint) -> None:
        """Note that it has ended; the last one's end ends the servers."""
        file = server_file(endpoint)
        service = self._services[file]
        service.num_stages -= 1
        if not service.num_stages:
            self._close(file)

    def close(self) -> None:
        """End all servers."""
        for file in list(self._services):
            self._close(file)

    def tend(self) -> None:
        """Start servers that are wanted, and tell the addresses of those that are healthy."""
        for file, service in self._services.items():
            if service.file is None:
                self._start_if_wanted(file, service)
            elif service.replicas:
                self._look_after(service)

    def _start_if_wanted(self, file: Path, service: _Service) -> None:
        if not file.exists():
            return
        opened = file.open("r+", encoding="utf-8")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a process looks into it; the next time
            opened.close()
            return
        if '"wanted"' not in opened.read():
            opened.close()
            return
        service.file, served = opened, service.endpoint.served
        needs = Needs(CORES, self._gpus_of(service.endpoint), 0.0)
        if why_not := self._why_not(needs):
            _write(opened, {"error": f"{service.endpoint.section}: its server {why_not}"})
            return
        number = 1 if served is None else served.replicas
        self._say(
            f"{service.endpoint.section}: asking for {number} × {needs} to serve {service.endpoint.model}"
        )
        service.replicas = [self._started(service) for _ in range(number)]

    def _started(self, service: _Service) -> _Replica:
        service.num_starts += 1
        options = {"num_cpus": CORES, "num_gpus": self._gpus_of(service.endpoint), **self._options()}
        actor: Any = remote(ModelServer, **options)(replace(service.endpoint, door=None))
        return _Replica(actor, actor.serve.remote())

    def _look_after(self, service: _Service) -> None:
        import ray
        from ray.exceptions import RayError, RayTaskError

        calls = {replica.call: index for index, replica in enumerate(service.replicas)}
        for call in ray.wait(list(calls), num_returns=len(calls), timeout=0)[0]:
            index = calls[call]
            replica, section = service.replicas[index], service.endpoint.section
            try:
                address = ray.get(call)
            except RayTaskError as error:
                why = str(error.cause) if isinstance(error.cause, UserError) else first_sentence(error)
                _write(service.file, {"error": why})
                self._end_replicas(service)
                return
            except RayError as error:
                address = None
                self._say(f"{section}: a server is lost: {first_sentence(error)}")
            if address is not None and not replica.address:
                self._say(f"{section}: the server at {address} is ready")
                service.replicas[index] = _Replica(replica.actor, replica.actor.watch.remote(), address)
            elif service.num_starts < MOST_STARTS * len(service.replicas):
                _end(replica)
                service.replicas[index] = self._started(service)
            else:
                _write(
                    service.file, {"error": f"{section}: its servers were lost {service.num_starts} times"}
                )
                self._end_replicas(service)
                return
            addresses = [each.address for each in service.replicas if each.address]
            _write(
                service.file, {"addresses": addresses, "is_ready": True} if addresses else {"wanted": True}
            )

    def _close(self, file: Path) -> None:
        service = self._services.pop(file)
        self._end_replicas(service)
        if service.file is not None:
            file.unlink(missing_ok=True)
            service.file.close()

    def _end_replicas(self, service: _Service) -> None:
        for replica in service.replicas:
            _end(replica)
        service.replicas = []


def _write(file: IO[str] | None, state: dict[str, Any]) -> None:
    if file is not None:
        text = json.dumps(state).encode()
        os.ftruncate(file.fileno(), 0)
        os.pwrite(file.fileno(), text, 0)


def _end(replica: _Replica) -> None:
    """Kill an actor; the guard of its server ends the program with it."""
    import ray

    ray.kill(replica.actor)
