"""Leases of one machine: advisory file locks, which the kernel drops with their process."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synthbench.base.durability import write_atomically
from synthbench.engine.leases import CLEANING, RUN, StageBusyError, described, this_process


class LocalLeases:
    """Locks in a folder; beside each lies a file that says who holds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def hold(self, name: str, label: str) -> Iterator[str]:
        """Hold a name; yield the dead process that it was taken over from, "" if none.

        Raises StageBusyError if another process holds it.
        """
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        file, lock = self._file(name), self.folder / f"{name}.lock"
        # Nobody else wants the name of a run, but who looks for dead ones may lock it for a moment.
        held = FileLock(lock, timeout=-1 if name.startswith(RUN) else 0)
        try:
            held.acquire()
        except Timeout:
            raise StageBusyError(_described(file)) from None
        try:
            left_behind = _described(file) if file.exists() else ""
            write_atomically(file, json.dumps(this_process(label)))
            try:
                yield left_behind
            finally:
                file.unlink(missing_ok=True)
                if name.startswith(RUN):
                    lock.unlink(missing_ok=True)
        finally:
            held.release()

    def holder(self, name: str) -> str:
        """Return who holds a name, "" if nobody does.

        Who has just locked it, and not said so yet, counts as nobody: a clean-up looks for runs after that.
        """
        file = self._file(name)
        return _described(file) if file.exists() and self._is_held(self.folder / f"{name}.lock") else ""

    def worker(self, say: Callable[[str], None]) -> str:
        """Return who holds any name but CLEANING, "" if nobody does."""
        locks = (lock for lock in sorted(self.folder.glob("[!.]*.lock")) if lock.stem != CLEANING)
        return next((_described(self._file(lock.stem)) for lock in locks if self._is_held(lock)), "")

    def remove_dead_runs(self) -> None:
        """Remove what killed runs left."""
        for lock in self.folder.glob(f"{RUN}*.lock"):
            self._is_held(lock)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _is_held(self, lock: Path) -> bool:
        """Tell whether a lock is held; one that a killed run left is removed."""
        from filelock import FileLock, Timeout

        with suppress(Timeout), FileLock(lock, timeout=0):
            if lock.stem.startswith(RUN):
                self._file(lock.stem).unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
            return False
        return True


def _described(file: Path) -> str:
    """Return which process holds a lock, according to the file beside it."""
    try:
        return described(file.read_bytes())
    except OSError:
        return described(b"")
