"""Processes that compute stages for this one: how they start, and what they tell it."""

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
"""The module that imports what stages import."""
Report = tuple[str, int, int]
"""A stage's identity, and the units of its task that are done, and all."""


def tell_parent(identity: str, done: int, total: int) -> None:
    """Send a stage's report to the process that this one works for, if there is one."""
    if _Lines.parent is not None:
        _Lines.parent.send((identity, done, total))


def worker_context() -> "multiprocessing.context.BaseContext":
    """Return how processes that run stages are started: as copies of one that has imported what they need.

    Importing torch and its companions takes each process seconds otherwise. The copied process has imported
    and computed nothing, so it has no threads and no GPU.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


class _Lines(io.TextIOBase):
    """A worker's standard error, sent as whole lines to the process that shows them."""

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
    """What a worker starts with: the process that it works for, whom it tells lines, its GPUs, variables.

    Without variables of its own it would have those of the time when the copied process started.
    """

    parent: int
    sender: "Connection[str | Report, str | Report]"
    sees: tuple[str, ...] | None
    variables: Mapping[str, str]


def start_worker(start: WorkerStart) -> None:
    """Leave Ctrl-C to the parent, and end when it is gone."""
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
