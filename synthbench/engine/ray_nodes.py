"""A Ray cluster: how to connect to it, and the resources of its nodes and of stages."""

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.processes import OPT_OUTS

INSTALL = "pip install 'synthbench[ray]'"
SECONDS_TO_CONNECT = 10.0
GB = 1e9
PASSED_ON = ("SYNTHBENCH_", "HF_HUB_OFFLINE", "HF_HOME", "OMP_", "GOMP_", "MKL_", "TOKENIZERS_")
"""Prefixes of the variables that workers inherit. None holds a secret: nodes have their own credentials."""


@dataclass(frozen=True)
class Needs:
    """A stage's resources: CPU cores, GPUs or a share of one, gigabytes of main memory."""

    cpus: int
    gpus: float
    memory_gb: float

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        return f"{self.cpus} CPU core{'s' * (self.cpus > 1)}{gpus}, {self.memory_gb:g} GB of memory"

    def fit(self, node: "Node") -> bool:
        """Return whether the node, when idle, has these resources."""
        return self.cpus <= node.cpus and self.gpus <= node.gpus and self.memory_gb <= node.memory_gb


@dataclass(frozen=True)
class Node:
    """A node of the cluster, with its total resources, free or not."""

    identity: str
    name: str
    cpus: float
    gpus: float
    memory_gb: float

    def __str__(self) -> str:
        return f"{self.name}: {Needs(int(self.cpus), self.gpus, round(self.memory_gb, 1))}"


def connect(address: str) -> None:
    """Connect to the cluster at `address` ("": start one here); raises UserError if that fails."""
    import ray

    if address.startswith("ray://"):
        raise UserError(
            f"runtime.address {address}: Ray's client protocol carries no workers' output; run the command on"
            " a machine of the cluster, with `--address auto`"
        )
    if ":" in address:
        _check_cluster(address)
    # Workers of a cluster that is started here inherit these; a running one passes them on, below.
    for name, value in {
        "RAY_DEDUP_LOGS": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        # Within `ray job submit`, the job's variables and ours may have the same names.
        "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",
    }.items():
        os.environ.setdefault(name, value)
    variables = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    try:
        with _raw_lines_dropped():
            ray.init(
                address=address or "local",
                runtime_env={"env_vars": {**OPT_OUTS, **variables}},
                logging_level=logging.ERROR,
                include_dashboard=None if address else False,
                log_to_driver=True,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"no Ray cluster at '{address}': {first_sentence(error)}. {_HOW_TO_START}") from None


_HOW_TO_START = "Start one by `ray start --head`, or leave out the address to use this machine alone"


@contextmanager
def _raw_lines_dropped() -> Iterator[None]:
    """Hide the lines that Ray's C++ code writes to standard error while connecting.

    Ray's exception contains these lines, and Python's logging can't filter them.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


_HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""A gRPC client's opening: HTTP/2's preface and empty settings. The server replies with its settings."""
_SETTINGS = 4


def _check_cluster(address: str) -> None:
    """Raise UserError unless a gRPC server such as Ray's listens; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT) as connection:
            connection.sendall(_HTTP_2)
            frame = connection.makefile("rb").read(4)
    except (OSError, ValueError) as error:
        raise UserError(f"no Ray cluster at '{address}': {error}. {_HOW_TO_START}") from None
    if len(frame) <= 3 or frame[3] != _SETTINGS:
        raise UserError(f"no Ray cluster at '{address}': something else answers there. {_HOW_TO_START}")


def nodes_alive() -> list[Node]:
    """Return the nodes that are alive."""
    import ray

    found = []
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            has: Mapping[str, float] = node["Resources"]
            found.append(
                Node(
                    node["NodeID"],
                    f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})",
                    has.get("CPU", 0.0),
                    has.get("GPU", 0.0),
                    has.get("memory", 0.0) / GB,
                )
            )
    return found


def remote(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - Ray's
    """Return a callable that starts `function` as a Ray task, or if it is a class, as an actor.

    `options` are Ray's. Workers import the function or class by name.
    """
    import ray

    called: Callable[..., Any] = ray.remote(function).options(**options).remote
    return called


def first_sentence(error: BaseException) -> str:
    """Return the kind of an error and the first sentence of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = type(error).__name__
    return f"{kind}: {lines[0].partition('. ')[0].rstrip('.')}" if lines else kind
