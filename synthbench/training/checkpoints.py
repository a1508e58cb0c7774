"""Checkpoints from which a training resumes after a kill."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthbench.base.durability import file_hash, is_stray, sync_folder, sync_tree, write_atomically

DEV_SCORE, LOSS = "dev_score", "loss"
History = list[dict[str, Any]]
"""The log of a training as transformers stores it: each entry has a step and figures."""
_PREFIX = "checkpoint-"
_MARKER = "complete"
_STATE_FILE = "trainer_state.json"


class Checkpoints:
    """Checkpoints by step; a checkpoint is valid only if its marker, written last, matches its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int) -> Path:
        """Return the path for a step's checkpoint, where transformers writes it."""
        return self.folder / f"{_PREFIX}{step}"

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, valid or not, in ascending order."""
        found = (path.name.removeprefix(_PREFIX) for path in self.folder.glob(f"{_PREFIX}*"))
        return sorted(int(step) for step in found if step.isdecimal())

    def complete(self, step: int) -> None:
        """Flush a checkpoint's files to the disk, then mark it as complete with their checksums."""
        sync_tree(self.path(step))
        sync_folder(self.folder)
        write_atomically(self.path(step) / _MARKER, json.dumps(self._checksums(step), indent=1) + "\n")

    def fault(self, step: int) -> str:
        """Return what is wrong with a checkpoint, "" if its files match their checksums."""
        marker = self.path(step) / _MARKER
        if not marker.is_file():
            return "it is incomplete"
        try:
            expected = json.loads(marker.read_text(encoding="utf-8"))
        except ValueError:
            expected = None
        if not isinstance(expected, dict):
            return "there are no checksums to verify it by"
        found = self._checksums(step)
        for name in sorted(expected.keys() | found.keys()):
            if name not in found:
                return f"{name} is missing"
            if found[name] != expected.get(name):
                return f"the checksum of {name} differs"
        return ""

    def history(self, step: int) -> History:
        """Return the log of a training up to a checkpoint."""
        state = json.loads((self.path(step) / _STATE_FILE).read_text(encoding="utf-8"))
        history: History = state["log_history"]
        return history

    def curves_so_far(self) -> tuple[tuple[int, str, float], ...]:
        """Return the points of `curves` up to the newest complete checkpoint; () before the first.

        Another process may write and delete checkpoints meanwhile; deleted ones are skipped.
        """
        for step in reversed(self.steps()):
            try:
                if (self.path(step) / _MARKER).is_file():
                    return tuple(curves(self.history(step)))
            except (OSError, ValueError):
                continue
        return ()

    def keep_only(self, *steps: int) -> None:
        """Delete all checkpoints except these steps'."""
        for step in set(self.steps()) - set(steps):
            # Without its marker, a half-deleted checkpoint is never valid.
            (self.path(step) / _MARKER).unlink(missing_ok=True)
            shutil.rmtree(self.path(step), ignore_errors=True)

    def drop_faulty(self) -> Iterator[str]:
        """Delete invalid checkpoints, and yield a message on each."""
        faults = {step: self.fault(step) for step in self.steps()}
        self.keep_only(*(step for step, fault in faults.items() if not fault))
        for step, fault in faults.items():
            if fault:
                yield f"the checkpoint of step {step} can't be used and was dropped: {fault}"

    def copy_to(self, folder: Path) -> None:
        """Copy all checkpoints into a folder; checksums reveal incomplete copies."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        sync_tree(folder)

    def _checksums(self, step: int) -> dict[str, str]:
        files = sorted(
            file for file in self.path(step).rglob("*") if file.is_file() and not is_stray(file.name)
        )
        return {
            file.relative_to(self.path(step)).as_posix(): file_hash(file)
            for file in files
            if file.name != _MARKER
        }


def curves(history: History) -> Iterator[tuple[int, str, float]]:
    """Yield the points (step, name, value) of a training's curves: loss and dev score."""
    for entry in history:
        for name in (LOSS, DEV_SCORE):
            if name in entry:
                yield entry["step"], name, float(entry[name])
