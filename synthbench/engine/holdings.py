"""A store's content, for `clean`: artifacts, and leftovers of killed runs and removals."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

UNFINISHED = "unfinished"
DISCARDED = "discarded"


@dataclass(frozen=True)
class Holding:
    """An artifact in a store, or a leftover: unfinished work, a partial removal, a lost attempt.

    `kind` is the stage's kind, UNFINISHED, DISCARDED or "damaged". `folder`, on this machine, need not exist.
    `size` is in bytes, `last_used` in seconds since 1970. `inputs`: the identities of an artifact's inputs.
    """

    identity: str
    folder: Path
    kind: str
    size: int
    last_used: float
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoreEntry:
    """An artifact or unfinished work: last use in seconds since 1970, size in bytes (0: not measured)."""

    identity: str
    last_used: float
    size: int = 0


def files_in(folder: Path) -> tuple[int, float]:
    """Return the total size of the files below a folder, and their newest modification time (0: no files).

    Files that are deleted in the meantime don't count.
    """
    files = []
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                files.append(Path(parent, name).lstat())
    return sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0)
