"""Servers of local models on a Ray cluster: actors that hold GPUs and start server programs.

A process that asks a local model requests its server in a file of the run's folder (`llm/server.py`). The
driver locks that file, starts the actors, and writes their addresses into the file. The driver ends the
actors when no running stage asks the model any more, so that other stages get the GPUs.
"""

import asyncio
import fcntl
import socket
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
from synthbench.engine.ray_workers import end
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.server import SECONDS_BETWEEN_LOOKS, ServedBackend, server_file, servers, write_state
from synthbench.llm.server_programs import check_program

CORES = 1
MOST_STARTS = 20
"""Maximum starts per replica in a run: a server that ends by itself, or loses its node, starts again."""


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
        """Wait until the server has ended."""
        while self._backend.is_running():
            time.sleep(SECONDS_BETWEEN_LOOKS)


def forwarded(host: str, port: int) -> int:
    """Forward connections from a free port of `host` to this machine's loopback; return the free port.

    Server programs listen only on the loopback, at `port`. A thread forwards until the process ends.
    Raises OSError if `host` is no address of this machine.
    """
    listening = socket.create_server((host, 0))

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
        server = await asyncio.start_server(connect, sock=listening)
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(forward()), daemon=True).start()
    return int(listening.getsockname()[1])


@dataclass
class _Replica:
    """A `ModelServer` actor, its pending call (`serve`, then `watch`), and its address once healthy."""

    actor: Any
    call: Any
    address: str = ""


@dataclass
class _Servers:
    """The requested servers of an LLM; `needs` are the resources of each.

    The driver keeps `file` locked, and writes the addresses into it for the processes that need them.
    """

    file: IO[str]
    needs: Needs
    replicas: list[_Replica] = field(default_factory=list)
    num_starts: int = 0

    def tell_addresses(self) -> None:
        addresses = [each.address for each in self.replicas if each.address]
        write_state(self.file, {"addresses": addresses, "is_ready": True} if addresses else {"wanted": True})

    def fail(self, why: str) -> None:
        """End the servers, and write the reason for the processes that requested them."""
        write_state(self.file, {"error": why})
        self.end()

    def end(self) -> None:
        for replica in self.replicas:
            end(replica.actor)  # the guard of its server ends the program with it
        self.replicas = []


@dataclass
class _Service:
    """An LLM that stages ask: how many of these stages run now, and its servers once requested."""

    endpoint: Endpoint
    num_stages: int = 0
    servers: _Servers | None = None


class RayServers:
    """The model servers of a run. No method blocks.

    `gpus_of` returns how many GPUs a server takes. `why_not` returns why no node can hold a server ("" if a
    node can). `options` returns further Ray options for the actors.
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
        """Whether a stage that asks a served LLM is running."""
        return bool(self._services)

    def begin(self, endpoint: Endpoint) -> None:
        """Note the start of a stage that may ask this LLM."""
        service = self._services.setdefault(server_file(endpoint), _Service(endpoint))
        service.num_stages += 1

    def end(self, endpoint: Endpoint) -> None:
        """Note the end of a stage that may ask this LLM; after the last one, end the servers."""
        file = server_file(endpoint)
        service = self._services[file]
        service.num_stages -= 1
        if not service.num_stages:
            self._close(file)

    def close(self) -> None:
        """End all servers."""
        for file in list(self._services):
            self._close(file)

    @property
    def needs(self) -> set[Needs]:
        """The resources of the requested servers, without those that failed."""
        found = (service.servers for service in self._services.values())
        return {servers.needs for servers in found if servers is not None and servers.replicas}

    def give_up(self, needs: Needs, why: str) -> None:
        """End the servers with these resources, and write the reason for the processes that ask them."""
        for service in self._services.values():
            if service.servers is not None and service.servers.needs == needs:
                service.servers.fail(f"{service.endpoint.section}: its server {why}")

    def tend(self) -> None:
        """Start requested servers, restart lost ones, and write the addresses of healthy ones."""
        for file, service in self._services.items():
            if service.servers is None:
                self._start_if_wanted(file, service)
            elif service.servers.replicas:
                self._look_after(service.endpoint, service.servers)

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
        endpoint = service.endpoint
        needs = Needs(CORES, self._gpus_of(endpoint), 0.0)
        service.servers = servers = _Servers(opened, needs)
        if why_not := self._why_not(needs):
            servers.fail(f"{endpoint.section}: its server {why_not}")
            return
        number = 1 if endpoint.served is None else endpoint.served.replicas
        self._say(f"{endpoint.section}: asking for {number} × {needs} to serve {endpoint.model}")
        servers.replicas = [self._started(endpoint, servers) for _ in range(number)]

    def _started(self, endpoint: Endpoint, servers: _Servers) -> _Replica:
        servers.num_starts += 1
        options = {"num_cpus": servers.needs.cpus, "num_gpus": servers.needs.gpus, **self._options()}
        actor: Any = remote(ModelServer, **options)(replace(endpoint, door=None))
        return _Replica(actor, actor.serve.remote())

    def _look_after(self, endpoint: Endpoint, servers: _Servers) -> None:
        import ray
        from ray.exceptions import RayError, RayTaskError

        section, replicas = endpoint.section, servers.replicas
        calls = {replica.call: index for index, replica in enumerate(replicas)}
        for call in ray.wait(list(calls), num_returns=len(calls), timeout=0)[0]:
            index = calls[call]
            replica = replicas[index]
            try:
                address = ray.get(call)
            except RayTaskError as error:
                own = isinstance(error.cause, UserError)
                servers.fail(str(error.cause) if own else f"{section}: {first_sentence(error.cause)}")
                return
            except RayError as error:
                address = None
                self._say(f"{section}: a server is lost: {first_sentence(error)}")
            if address is not None and not replica.address:
                self._say(f"{section}: the server at {address} is ready")
                replicas[index] = _Replica(replica.actor, replica.actor.watch.remote(), address)
            elif servers.num_starts < MOST_STARTS * len(replicas):
                end(replica.actor)
                replicas[index] = self._started(endpoint, servers)
            else:
                servers.fail(f"{section}: its servers were lost {servers.num_starts} times")
                return
            servers.tell_addresses()

    def _close(self, file: Path) -> None:
        if (servers := self._services.pop(file).servers) is not None:
            servers.end()
            file.unlink(missing_ok=True)
            servers.file.close()
