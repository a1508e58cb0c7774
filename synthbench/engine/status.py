"""The state of a store's runs, from its leases and notes: who computes what, how fast, failures, costs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synthbench.engine.leases import RUN, HeldLease
from synthbench.engine.monitor import StageTask
from synthbench.engine.records import is_identity
from synthbench.engine.run_notes import RunNote, notes
from synthbench.engine.store import Store

MOST_CHARACTERS = 300


@dataclass(frozen=True)
class HeldStage:
    """A stage that a process computes; `since` in seconds since 1970, None if unknown.

    `task` is the stage's progress, None if no run reports it. `silent`: seconds since the lease was renewed.
    Unknown texts are "?".
    """

    label: str
    host: str
    pid: str
    since: float | None
    silent: float
    task: StageTask | None


@dataclass(frozen=True)
class StoreStatus:
    """A store's state: each run's note and whether the run goes on, oldest first; stages being computed."""

    runs: tuple[tuple[RunNote, bool], ...]
    stages: tuple[HeldStage, ...]


def status_of(store: Store) -> StoreStatus:
    """Return a store's state, from its leases and its runs' notes; writes nothing.

    Raises UserError if the store can't be read.
    """
    held, told = store.locks.held(), notes(store)
    running = {name for name, _, _ in held if name.startswith(RUN)}
    runs = sorted(told.items(), key=lambda each: each[1].began)
    tasks = {task.identity: task for name, note in runs if name in running for task in note.tasks}
    stages = [_stage(lease, tasks) for lease in held if is_identity(lease[0])]
    return StoreStatus(
        tuple((note, name in running and not note.end) for name, note in runs),
        tuple(sorted(stages, key=lambda each: (each.host, each.pid, each.label))),
    )


def _stage(lease: HeldLease, tasks: Mapping[str, StageTask]) -> HeldStage:
    """Parse a stage's lease, which may be invalid: others may write to the store."""
    identity, content, silent = lease
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    holder: Mapping[str, Any] = found if isinstance(found, dict) else {}
    label, host, pid = (_text(holder.get(key, "?")) for key in ("stage", "host", "pid"))
    since = holder.get("since")
    is_time = isinstance(since, int | float) and not isinstance(since, bool)
    return HeldStage(label, host, pid, since if is_time else None, silent, tasks.get(identity))


def _text(value: object) -> str:
    return " ".join(str(value)[:MOST_CHARACTERS].split())
