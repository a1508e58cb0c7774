"""What reading a source gives, before it becomes a data set."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synthbench.data.records import Record
from synthbench.given_files import check_file

NO_GOLD_SCORE = "no gold score"


@dataclass
class Content:
    """Records in the order of the source, how many lines were left out and why, and remarks for people."""

    records: list[Record] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str) -> None:
        """Count one line that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by the same names."""
    found = {}
    for name, path in files.items():
        check_file(path)
        with path.open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def missing(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are no files."""
    return [path for path in paths if not path.is_file()]
