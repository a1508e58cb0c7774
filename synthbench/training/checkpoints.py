"""The folder in which a training leaves what it needs to go on after a kill."""

import shutil
from pathlib import Path

_PREFIX = "checkpoint-"
_MARKER = "complete"


class Checkpoints:
    """Checkpoints by step; one counts only once its marker, which is written last, is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int) -> Path:
        """Return where the checkpoint of a step is, or would be; transformers writes to the same place."""
        return self.folder / f"{_PREFIX}{step}"

    def last(self) -> int | None:
        """Return the step of the last complete checkpoint."""
        return max(self._complete(), default=None)

    def complete(self, step: int) -> None:
        """Mark a checkpoint as complete."""
        (self.path(step) / _MARKER).touch()

    def keep_only(self, *steps: int) -> None:
        """Delete all other checkpoints, torn ones among them."""
        for path in self.folder.glob(f"{_PREFIX}*"):
            if path not in {self.path(step) for step in steps}:
                # Without its marker a half-deleted checkpoint is never taken for a complete one.
                (path / _MARKER).unlink(missing_ok=True)
                shutil.rmtree(path)

    def copy_to(self, folder: Path) -> None:
        """Copy the complete checkpoints into a folder that is not there yet."""
        self.delete_torn()
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def take_from(self, folder: Path) -> None:
        """Copy the checkpoints that another training left with `copy_to`, unless there are own ones."""
        if self.last() is not None:
            return
        others = Checkpoints(folder)
        for step in sorted(others._complete()):
            shutil.copytree(others.path(step), self.path(step), ignore=shutil.ignore_patterns(_MARKER))
            self.complete(step)

    def delete_torn(self) -> None:
        """Delete the checkpoints without a marker."""
        self.keep_only(*self._complete())

    def _complete(self) -> list[int]:
        markers = self.folder.glob(f"{_PREFIX}*/{_MARKER}")
        return [int(marker.parent.name.removeprefix(_PREFIX)) for marker in markers]
