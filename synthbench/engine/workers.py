"""Worker processes that compute stages: their start, and their reports to the parent."""

import io
import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synthbench.base.processes import follow_parent
from synthbench.engine.devices import VISIBLE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PRELOADED = "synthbench.pipeline.preloaded"
"""The module that preloads the stages' imports."""
Report = tuple[str, int, int]
"""A stage's identity, and its task's units: done and total."""


def tell_parent(identity: str, done: int, total: int) -> None:
    """Send a stage's progress (units done, units in total) to the parent process, if there is one."""
    if _Lines.parent is not None:
        _Lines.parent.send((identity, done, total))


def worker_context() -> "multiprocessing.context.BaseContext":
    """Return the context that starts workers: forks of a server process that has imported torch.

    Otherwise, each worker would import torch for seconds. The server process has computed nothing, so it has
    no threads and holds no GPU.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


class _Lines(io.TextIOBase):
    """A worker's standard error, sent to the parent in whole lines."""

    parent: ClassVar["Connection[str | Report, str | Report] | None"] = None

    def __init__(self, sender: "Connection[str | Report, str | Report]") -> None:
        _Lines.parent = self._sender = sender
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._sender.send(line)
        return len(text)


@dataclass(frozen=True)
class WorkerStart:
    """A worker's start parameters: parent process, pipe for its lines, visible GPUs, environment variables.

    `sees`: the visible GPUs; None keeps those of `variables`. The variables are passed because the fork
    server's own variables date from its start.
    """

    parent: int
    sender: "Connection[str | Report, str | Report]"
    sees: tuple[str, ...] | None
    variables: Mapping[str, str]


def start_worker(start: WorkerStart) -> None:
    """Set up a worker: set its environment variables, and send its standard error to the parent.

    The worker ignores Ctrl-C, which the parent handles, and ends when the parent is gone.
    """
    os.environ.clear()
    os.environ.update(start.variables)
    if start.sees is not None:
        os.environ[VISIBLE] = ",".join(start.sees)
    from tqdm import tqdm

    from synthbench.base.processes import disable_telemetry
    from synthbench.base.terminal import show_control_characters

    follow_parent(start.parent)
    disable_telemetry()
    sys.stderr = _Lines(start.sender)
    show_control_characters()
    # tqdm's own lock is a system semaphore; Python warns about it when a worker is terminated.
    tqdm.set_lock(threading.RLock())
