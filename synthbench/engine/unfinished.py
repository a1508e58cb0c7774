"""Unfinished work, and folders that are being deleted; both on this machine alone."""

import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from synthbench.engine.holdings import DISCARDED, UNFINISHED, Holding, files_in
from synthbench.engine.records import STAGE_FILE

CHECKPOINTS, JOURNAL = "checkpoints", "journal.jsonl"
"""The folder and the file, in a stage's work folder, that a resumed run reads."""


class UnfinishedWork:
    """The folders of stages that have no artifact yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, identity: str) -> Path:
        """Return the stage's work folder on this machine, which need not exist."""
        return self._folder / identity

    def identities(self) -> list[str]:
        """Return the identities of stages with unfinished work."""
        return sorted(path.name for path in self._folder.glob("*") if path.is_dir())

    def output(self, identity: str) -> Path:
        """Return the folder whose content becomes the stage's artifact."""
        return self.folder(identity) / "output"

    def begin(self, identity: str) -> Path:
        """Create the folder of a stage's unfinished work and return it, with an empty `output`.

        Other files of earlier work stay.
        """
        folder = self.folder(identity)
        shutil.rmtree(folder / "output", ignore_errors=True)
        for name in ("output", CHECKPOINTS):
            (folder / name).mkdir(parents=True, exist_ok=True)
        return folder

    def clear_output(self, identity: str) -> None:
        """Remove a stage's unfinished output, which no resumed run reads, to make room on the disk.

        A finished output stays: the next run commits it.
        """
        output = self.output(identity)
        if not (output / STAGE_FILE).is_file():
            shutil.rmtree(output, ignore_errors=True)

    def forget(self, identity: str) -> None:
        """Remove a stage's unfinished work."""
        shutil.rmtree(self.folder(identity), ignore_errors=True)

    def mark_used(self, identities: Iterable[str]) -> None:
        """Set the last use of these stages' work to now; stages without work are ignored."""
        for identity in identities:
            with suppress(OSError):
                os.utime(self.folder(identity))

    def holdings(self) -> list[Holding]:
        """Return all unfinished work, with size and last use."""
        found = []
        for folder in map(self.folder, self.identities()):
            with suppress(FileNotFoundError):  # its stage has ended by now
                # The age is that of the newest file: the folder's own time is that of its start.
                size, youngest = files_in(folder)
                last_used = max(folder.stat().st_mtime, youngest)
                found.append(Holding(folder.name, folder, UNFINISHED, size, last_used))
        return found

    def remove_empty(self) -> None:
        """Remove the empty folders of killed runs; call it while no run is active."""
        for folder in self._folder.glob("*"):
            if folder.is_dir() and not any(path.is_file() for path in folder.rglob("*")):
                shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.rmdir()


class Rubbish:
    """Folders that are being deleted. They are moved here first, so a kill leaves no partial artifact."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def discard(self, folder: Path) -> None:
        """Delete a folder, atomically for other processes."""
        if folder.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            aside = folder.rename(self._folder / f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}")
            shutil.rmtree(aside, ignore_errors=True)

    def holdings(self) -> list[Holding]:
        """Return the folders that interrupted deletions left behind."""
        folders = sorted(self._folder.glob("*"))
        return [Holding(each.name, each, DISCARDED, files_in(each)[0], last_used=0.0) for each in folders]

    def empty(self) -> None:
        """Delete the folders that interrupted deletions left behind."""
        for folder in self._folder.glob("*"):
            shutil.rmtree(folder, ignore_errors=True)
