"""The nodes of a Ray cluster as they come and go, and checks of their code and access to the store."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.engine.elsewhere import own_code
from synthbench.engine.ray_nodes import INSTALL, Node, first_sentence, nodes_alive, remote

SECONDS_TO_ANSWER = 120.0
"""Time limit of a node's answer: a fresh one has to start a Python process and import synthbench."""
SECONDS_BETWEEN_LOOKS = 5.0
RETRIES_TO_LOOK = 3


class LiveNodes:
    """The nodes that are alive now, each checked once for its code and for access to `marker`'s folder.

    The checks run in parallel. `refused`: ids of nodes with a fault; `usable`: all other nodes alive.
    """

    def __init__(self, marker: Path | None, say: Callable[[str], None]) -> None:
        self._marker = marker
        self._say = say
        self._asked: dict[Any, tuple[Node, float]] = {}  # by Ray's reference, with the time of the question
        self._known: set[str] = set()
        self._looked = 0.0
        self.alive: list[Node] = []
        self.refused: set[str] = set()

    @property
    def usable(self) -> list[Node]:
        """The nodes that are alive and not refused, even if their check has not ended."""
        return [node for node in self.alive if node.identity not in self.refused]

    def check(self) -> None:
        """Ask all nodes for their code and folder, and wait for the answers.

        Raises UserError with a line for each fault: other code, no access to the folder, useless locks, or no
        answer in time.
        """
        self._look()
        problems: list[str] = []
        while self._asked:
            problems += self._answers(wait_s=1.0)
        if problems:
            raise UserError(*problems)

    def look(self) -> bool:
        """List the nodes anew, every few seconds at most; report changes, and refuse nodes with a fault.

        Returns whether it listed them.
        """
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return False
        before = {node.identity: node for node in self.alive}
        self._look()
        now = {node.identity: node for node in self.alive}
        for identity in now.keys() - before.keys():
            self._say(f"node joined: {now[identity]}")
        for identity in before.keys() - now.keys():
            self._say(f"node gone: {before[identity].name}")
        for problem in self._answers(wait_s=0.0):
            self._say(f"not used: {problem}")
        return True

    def refuse(self, identity: str, problem: str) -> None:
        """Send nothing more to a node, and say why."""
        if identity not in self.refused:
            self.refused.add(identity)
            self._say(f"not used: {problem}")

    def _look(self) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._looked, self.alive = time.monotonic(), nodes_alive()
        for node in self.alive:
            if node.identity not in self._known:
                self._known.add(node.identity)
                there = NodeAffinitySchedulingStrategy(node.identity, soft=False)
                ask = remote(look, num_cpus=0, max_retries=RETRIES_TO_LOOK, scheduling_strategy=there)
                self._asked[ask(self._marker, own_code())] = (node, self._looked)

    def _answers(self, wait_s: float) -> list[str]:
        """Wait at most `wait_s` seconds for answers, refuse nodes with a fault, and return the faults."""
        import ray

        if not self._asked:
            return []
        done, _ = ray.wait(list(self._asked), num_returns=len(self._asked), timeout=wait_s)
        late = [
            reference
            for reference, (_, asked) in self._asked.items()
            if reference not in done and time.monotonic() - asked > SECONDS_TO_ANSWER
        ]
        problems: list[str] = []
        for reference in (*done, *late):
            node, _ = self._asked.pop(reference)
            found = self._problems(node, None if reference in late else reference)
            if found:
                self.refused.add(node.identity)
                problems += found
        return problems

    def _problems(self, node: Node, reference: Any) -> list[str]:  # noqa: ANN401 - Ray's
        """Return a node's faults; `reference` is its answer, None if it gave none in time."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        if reference is None:
            return [f"node {node.name}: no answer within {SECONDS_TO_ANSWER:g} s"]
        try:
            found: list[str] = ray.get(reference)
        except RayTaskError as error:
            return [
                f"node {node.name}: synthbench can't be used there ({first_sentence(error.cause)});"
                f" install synthbench {version('synthbench')} there: {INSTALL}"
            ]
        except RayError as error:
            # Ignore nodes that were lost during the check.
            is_alive = node.identity in {other.identity for other in nodes_alive()}
            return [f"node {node.name}: no answer ({first_sentence(error)})"] if is_alive else []
        return [f"node {node.name}: {fault}" for fault in found]


@contextmanager
def marker_in(folder: Path | None) -> Iterator[Path | None]:
    """Yield a new file in the folder, locked by this process; None without a folder."""
    if folder is None:
        yield None
        return
    from filelock import FileLock, Timeout

    for left in folder.glob(".seen-*"):  # a killed run's
        with suppress(Timeout), FileLock(left, timeout=0):
            left.unlink(missing_ok=True)
    marker = folder / f".seen-{socket.gethostname()}-{os.getpid()}"
    try:
        with FileLock(marker):
            yield marker
    finally:
        marker.unlink(missing_ok=True)


def look(marker: Path | None, ours: str) -> list[str]:
    """Return the faults of the node that this runs on: other code, no access to the folder, or useless locks.

    `marker` is a file that the driver has locked; `ours` is the driver's `own_code`.
    """
    found = []
    if own_code() != ours:
        found.append(f"has synthbench {own_code()}, this machine {ours}; install the same")
    if marker is not None and not marker.is_file():
        found.append(f"does not see {marker.parent}; set SYNTHBENCH_HOME to a folder that all nodes share")
    elif marker is not None:
        from filelock import FileLock, Timeout

        with suppress(Timeout), FileLock(marker, timeout=0):
            found.append(
                f"got a lock in {marker.parent} that this machine holds, so two runs could compute one"
                " stage at once; set SYNTHBENCH_STORE to a folder or bucket, which needs no locks"
            )
    return found
