"""Locks of a store on one machine: advisory file locks, which the kernel drops with their process."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.base.escaping import shown

CLEANING = "cleaning"
RUN = "run-"
MOST_OF_A_NAME = 100
Say = Callable[[str], None]


class StageBusyError(Exception):
    """Another process is computing the stage; the message says which."""


@contextmanager
def stage_lock(folder: Path, identity: str, label: str) -> Iterator[str]:
    """Hold a stage's lock; yield the dead process whose work is taken over, "" if none.

    Raises StageBusyError if another process holds it.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    holder_file = folder / f"{identity}.json"
    lock = FileLock(folder / f"{identity}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StageBusyError(describe_holder(holder_file)) from None
    try:
        left_behind = describe_holder(holder_file) if holder_file.exists() else ""
        write_holder(holder_file, label)
        try:
            yield left_behind
        finally:
            holder_file.unlink(missing_ok=True)
    finally:
        lock.release()


@contextmanager
def run_lock(folder: Path, label: str, begin: Callable[[], None], say: Say) -> Iterator[None]:
    """Keep clean-ups away while a run works; waits for a clean-up that has begun, then calls `begin`.

    `say` hears whom the run waits for.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    name = f"{RUN}{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
    with FileLock(folder / f"{name}.lock"):
        write_holder(folder / f"{name}.json", label)
        try:
            cleaning = FileLock(folder / f"{CLEANING}.lock")
            try:
                cleaning.acquire(timeout=0)
            except Timeout:
                say(waiting_for_clean(describe_holder(folder / f"{CLEANING}.json")))
                cleaning.acquire()
            try:
                for other in folder.glob(f"{RUN}*.lock"):
                    if other.stem != name:
                        with suppress(Timeout):
                            _find_free(other)
                begin()
            finally:
                cleaning.release()
            yield
        finally:
            (folder / f"{name}.json").unlink(missing_ok=True)
            (folder / f"{name}.lock").unlink(missing_ok=True)


@contextmanager
def exclusive_lock(folder: Path, store: object) -> Iterator[None]:
    """Make new runs wait; raises UserError, which names the store, if a run or a clean-up is at work."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(folder / f"{CLEANING}.lock", timeout=0))
        except Timeout:
            raise UserError(f"{store}: another `clean` is running; nothing was removed") from None
        write_holder(folder / f"{CLEANING}.json", "clean")
        held.callback((folder / f"{CLEANING}.json").unlink, missing_ok=True)
        for lock in sorted(folder.glob("[!.]*.lock")):
            if lock.stem == CLEANING:
                continue
            try:
                _find_free(lock)
            except Timeout:
                holder = describe_holder(lock.with_suffix(".json"))
                raise UserError(f"{store}: {holder} works there; nothing was removed") from None
        yield


def _find_free(lock: Path) -> None:
    """Raise Timeout if a lock is held; remove that of a run that was killed: no other will have its name."""
    from filelock import FileLock

    with FileLock(lock, timeout=0):
        if lock.stem.startswith(RUN):
            lock.with_suffix(".json").unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def waiting_for_clean(holder: str) -> str:
    """Return what a run says that waits for a clean-up."""
    return f"waiting for `clean`: {holder} removes what no experiment uses"


def this_process(label: str) -> dict[str, object]:
    """Return what a lock says of its holder."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "stage": label, "since": time.time()}


def write_holder(file: Path, label: str) -> None:
    """Write beside a lock which process holds it, and for which stage."""
    write_atomically(file, json.dumps(this_process(label)))


def describe_holder(file: Path) -> str:
    """Return which process holds a lock, according to the file beside it."""
    try:
        return described(file.read_bytes())
    except OSError:
        return described(b"")


def described(holder: bytes) -> str:
    """Return which process holds a lock, and since when, according to what it wrote."""
    try:
        found = json.loads(holder)
        process, host = int(found["pid"]), str(found["host"])[:MOST_OF_A_NAME]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
    return f"process {process} on {shown(host)}{_since(found.get('since'))}"


def _since(began: object) -> str:
    """Return " (since 14:03)", with the date if that is another day; "" if nobody says."""
    if not isinstance(began, int | float):
        return ""
    try:
        moment = time.localtime(began)
    except (ValueError, OverflowError, OSError):
        return ""
    is_today = moment[:3] == time.localtime()[:3]
    return time.strftime(" (since %H:%M)" if is_today else " (since %Y-%m-%d %H:%M)", moment)
