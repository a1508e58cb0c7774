"""A run's note in its store: progress, failures and costs, which `status` shows on any machine.

A note is an object `runs/<name of the run's lease>.json`. The run rewrites its note about every 20 s. Nothing
depends on a note: it may be missing, old or damaged. Readers validate notes: others may write to the store.
"""

import os
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synthbench.base.errors import UserError
from synthbench.engine.monitor import RunMonitor, StageTask
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import Objects
from synthbench.engine.progress import repeating
from synthbench.engine.store import Store

FOLDER = "runs/"
SECONDS_BETWEEN_NOTES = 20.0
SECONDS_TO_FIRST_NOTE = 2.0
MOST_FAILURES, MOST_TASKS = 20, 1_000
MOST_BYTES = 1_000_000
MOST_CHARACTERS = 300


class RunNote(BaseModel):
    """A run's report on itself. Times are in seconds since 1970, by the clock of the run's machine.

    `told` is the time of the report. `done` and `total` count stages. `left` is the time left, in words.
    `failures` has a line for each of the first 20 failed stages. `usd` and `tokens` are the experiment's
    spending on LLMs so far (0 if unreadable); requests in flight count with their expected maximum. `end` is
    "ended", "stopped" after an error or Ctrl-C, or "" while the run goes on or after a kill.
    """

    model_config = ConfigDict(frozen=True)

    experiment: str = Field(max_length=MOST_CHARACTERS)
    host: str = Field(max_length=MOST_CHARACTERS)
    pid: int
    began: float = Field(allow_inf_nan=False)
    told: float = Field(allow_inf_nan=False)
    done: int
    total: int
    left: str = Field(max_length=MOST_CHARACTERS)
    tasks: tuple[StageTask, ...] = Field((), max_length=MOST_TASKS)
    num_failed: int = 0
    failures: tuple[str, ...] = Field((), max_length=MOST_FAILURES)
    usd: float = Field(0.0, allow_inf_nan=False)
    tokens: int = 0
    end: str = Field("", max_length=MOST_CHARACTERS)


Spent = tuple[float, int]
"""US dollars and tokens."""


@contextmanager
def telling(
    store: Store, name: str, experiment: str, monitor: RunMonitor, spent: Callable[[], Spent]
) -> Iterator[None]:
    """Keep the note of the run `name` up to date within the block; at its end, note how the run ended.

    A run that computes nothing leaves all notes as they are. The first note replaces the notes of the
    experiment's earlier runs, unless these still go on. Neither a store that refuses notes nor an invalid
    note disturbs the run.
    """
    objects, began = objects_of(store), time.time()
    has_told = False

    def tell(end: str = "") -> None:
        nonlocal has_told
        done, total = monitor.counts
        if not total:
            return
        if not has_told:
            has_told = True
            _remove_earlier(store, experiment)
        failures, usd, tokens = monitor.failures, 0.0, 0
        with suppress(UserError):
            usd, tokens = spent()
        with suppress(UserError, ValidationError):
            note = RunNote(
                experiment=experiment[:MOST_CHARACTERS],
                host=socket.gethostname()[:MOST_CHARACTERS],
                pid=os.getpid(),
                began=began,
                told=time.time(),
                done=done,
                total=total,
                left=str(monitor.left),
                tasks=tuple(monitor.tasks[:MOST_TASKS]),
                num_failed=len(failures),
                failures=tuple(line[:MOST_CHARACTERS] for line in failures[:MOST_FAILURES]),
                usd=usd,
                tokens=tokens,
                end=end,
            )
            objects.write(f"{FOLDER}{name}.json", note.model_dump_json().encode())

    def pause() -> float:
        return SECONDS_BETWEEN_NOTES if monitor.counts[1] else SECONDS_TO_FIRST_NOTE

    end = "stopped"
    try:
        with repeating(tell, pause):
            yield
        end = "ended"
    finally:
        tell(end)


def notes(store: Store) -> dict[str, RunNote]:
    """Return the readable notes of a store: name of the run's lease -> note.

    Raises UserError if the store can't be listed.
    """
    objects = objects_of(store)
    found: dict[str, RunNote] = {}
    for entry in sorted(objects.list(FOLDER), key=lambda entry: entry.key):
        name = entry.key.removeprefix(FOLDER).removesuffix(".json")
        with suppress(FileNotFoundError, ValidationError):
            if entry.key == f"{FOLDER}{name}.json" and "/" not in name and entry.size <= MOST_BYTES:
                found[name] = RunNote.model_validate_json(b"".join(objects.parts(entry.key))[:MOST_BYTES])
    return found


def forget(store: Store, experiments: Collection[str]) -> None:
    """Remove all notes of these experiments; raises UserError if the store can't be used."""
    _remove(store, [name for name, note in notes(store).items() if note.experiment in experiments])


def objects_of(store: Store) -> Objects:
    """Return access to a store's objects, without retries; in a local store, to the files below its root."""
    return FolderObjects(store.root) if store.shared is None else store.shared.objects.inner


def _remove_earlier(store: Store, experiment: str) -> None:
    """Remove the notes of the experiment's runs that have ended or hold no lease; ignores store errors."""
    with suppress(UserError):
        running = {name for name, _, _ in store.locks.held()}
        found = {name: note for name, note in notes(store).items() if note.experiment == experiment}
        _remove(store, [name for name, note in found.items() if note.end or name not in running])


def _remove(store: Store, names: Collection[str]) -> None:
    objects_of(store).delete([f"{FOLDER}{name}.json" for name in names])
