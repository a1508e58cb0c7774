"""What lies in a store, as `clean` sees it."""

from dataclasses import dataclass
from pathlib import Path

UNFINISHED = "unfinished"
DISCARDED = "discarded"


@dataclass(frozen=True)
class Holding:
    """An artifact, unfinished work or the rest of a removal; size in bytes, last use in seconds since 1970.

    `kind` is the stage's, or UNFINISHED, DISCARDED or "damaged". `folder` is where it lies, or would lie, on
    this machine; `inputs` are the identities of an artifact's inputs.
    """

    identity: str
    folder: Path
    kind: str
    size: int
    last_used: float
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoreEntry:
    """An artifact in a store: its last use in seconds since 1970, and, if it was measured, its bytes."""

    identity: str
    last_used: float
    size: int = 0


def files_in(folder: Path) -> tuple[int, float]:
    """Return the size of all files below a folder, and when the youngest was written."""
    files = [file.lstat() for file in folder.rglob("*") if file.is_file()]
    return sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0)
