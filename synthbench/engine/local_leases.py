"""Leases on one machine: advisory file locks, which the kernel releases when their process ends."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synthbench.base.durability import write_atomically
from synthbench.engine.leases import CLEANING, RUN, HeldLease, StageBusyError, described, this_process

SECONDS_OF_A_SEARCH = 0.5
"""A lock that is held for longer is held by another clean-up, not by a search."""


class LocalLeases:
    """File locks in a folder; a file beside each lock describes its holder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def hold(self, name: str, label: str) -> Iterator[str]:
        """Hold a name; yield a description of the dead process that held it before, "" if none.

        Raises StageBusyError if another process holds it.
        """
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        file, lock = self._file(name), self.folder / f"{name}.lock"
        # Run names are unique, but a search for dead runs or clean-ups may lock one for a moment.
        most = -1 if name.startswith(RUN) else SECONDS_OF_A_SEARCH if name == CLEANING else 0
        held = FileLock(lock, timeout=most)
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
        """Return a description of the holder of a name, "" if free.

        Overlooks a holder that has the lock but has not written its description yet. This is safe: a clean-up
        looks for runs only after it has written its description.
        """
        file = self._file(name)
        return _described(file) if file.exists() and self._is_held(self.folder / f"{name}.lock") else ""

    def worker(self, say: Callable[[str], None]) -> str:
        """Return a description of the holder of any lease but CLEANING, "" if there is none."""
        locks = (lock for lock in sorted(self.folder.glob("[!.]*.lock")) if lock.stem != CLEANING)
        return next((_described(self._file(lock.stem)) for lock in locks if self._is_held(lock)), "")

    def held(self) -> list[HeldLease]:
        """Return all leases, none of them expired: the kernel ends those of dead processes."""
        found = []
        for lock in sorted(self.folder.glob("[!.]*.lock")):
            with suppress(OSError):  # gone by now, or not ours to look into
                if self._is_held(lock):
                    found.append((lock.stem, self._file(lock.stem).read_bytes(), 0.0))
        return found

    def remove_dead(self) -> None:
        """Remove the leases of killed runs; stages' lock files stay, since their next holder reuses them."""
        for lock in self.folder.glob(f"{RUN}*.lock"):
            self._is_held(lock)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _is_held(self, lock: Path) -> bool:
        """Return whether a lock is held; remove the lock of a killed run."""
        from filelock import FileLock, Timeout

        with suppress(Timeout), FileLock(lock, timeout=0):
            if lock.stem.startswith(RUN):
                self._file(lock.stem).unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
            return False
        return True


def _described(file: Path) -> str:
    """Describe a lock's holder from the file beside the lock; "another process" if unreadable."""
    try:
        return described(file.read_bytes())
    except OSError:
        return described(b"")
