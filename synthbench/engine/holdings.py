"""What a store holds, for `clean`: artifacts, and leftovers of killed runs and removals."""

from dataclasses import dataclass
from pathlib import Path

UNFINISHED = "unfinished"
DISCARDED = "discarded"


@dataclass(frozen=True)
class Holding:
    """An artifact or a leftover (unfinished work, partial removal); bytes, last use in seconds since 1970.

    `kind` is the stage's kind, UNFINISHED, DISCARDED or "damaged". `folder` is its path on this machine,
    which need not exist. `inputs` are the identities of an artifact's inputs.
    """

    identity: str
    folder: Path
    kind: str
    size: int
    last_used: float
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoreEntry:
    """An artifact in a store: its last use in seconds since 1970, and its size in bytes if measured."""

    identity: str
    last_used: float
    size: int = 0


def files_in(folder: Path) -> tuple[int, float]:
    """Return the total size of the files below a folder, and the newest modification time."""
    files = [file.lstat() for file in folder.rglob("*") if file.is_file()]
    return sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0)
