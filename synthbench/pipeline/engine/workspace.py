"""Where a stage works until its artifact is committed; survives a kill."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.durability import sync_file
from synthbench.errors import UserError
from synthbench.llm.endpoint import Account
from synthbench.plugins import ChatModel
from synthbench.runtime import Progress, Runtime

_PREFIX, _SUFFIX = b'{"check": "%b", "entry": ', b"}\n"
_ANY = b"0" * 16
"""Stands for a checksum where only its length matters."""


@dataclass(frozen=True)
class ChatAccess:
    """Where the LLM is, in which folder its answers are kept, and on whose account they are paid."""

    model: ChatModel
    answers: Path
    account: Account


@dataclass(frozen=True)
class Workspace:
    """A stage's folder: `output` becomes the artifact, everything else is kept only until then."""

    folder: Path
    runtime: Runtime
    progress: Progress
    llm: ChatAccess | None = None

    @property
    def output(self) -> Path:
        """Folder whose content becomes the artifact."""
        return self.folder / "output"

    @property
    def checkpoints(self) -> Path:
        """Folder for what is needed to resume."""
        return self.folder / "checkpoints"

    @property
    def journal(self) -> "Journal":
        """The stage's journal of finished work."""
        return Journal(self.folder / "journal.jsonl")


class Journal:
    """Finished pieces of work, appended at once, one line of JSON each with a checksum.

    A kill tears the last line and a bad disk any: `mend` comes before everything else.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def mend(self) -> int:
        """Drop every entry that is not as it was written; return how many, a torn last one not counted."""
        if not self.file.exists():
            return 0
        num_damaged, end = 0, 0
        with self.file.open("r+b") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    num_damaged += not is_whole(line)
                    end += len(line)
            stream.truncate(end)
        if num_damaged:
            self._keep_whole_entries()
        return num_damaged

    def _keep_whole_entries(self) -> None:
        mended = self.file.with_suffix(".mended")
        with self.file.open("rb") as stream, mended.open("wb") as kept:
            kept.writelines(line for line in stream if is_whole(line))
        sync_file(mended)
        mended.replace(self.file)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the entries."""
        return (entry for _, entry in self.located())

    def located(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the entries, each with its place in the file."""
        if not self.file.exists():
            return
        end = 0
        with self.file.open("rb") as stream:
            for line in stream:
                yield end, self._entry(line)
                end += len(line)

    def at(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield the entries at these places, in their order, one at a time."""
        if not self.file.exists():
            return
        with self.file.open("rb") as stream:
            for place in places:
                stream.seek(place)
                yield self._entry(stream.readline())

    def discard(self) -> None:
        """Forget all entries."""
        self.file.unlink(missing_ok=True)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one entry through to the file."""
        content = as_line(entry).rstrip().encode()
        with self.file.open("ab") as stream:
            stream.write(_PREFIX % checksum(content) + content + _SUFFIX)

    def _entry(self, line: bytes) -> dict[str, Any]:
        if not is_whole(line):
            raise UserError(f"{self.file}: damaged while it was read; run the same command again to mend it")
        entry: dict[str, Any] = json.loads(line)["entry"]
        return entry


def checksum(content: bytes) -> bytes:
    """Return a short hash: no accident gives two contents the same."""
    return hashlib.blake2b(content, digest_size=8).hexdigest().encode()


def is_whole(line: bytes) -> bool:
    """Tell whether a line of a journal is as it was written."""
    content = line[len(_PREFIX % _ANY) : -len(_SUFFIX)]
    return line == _PREFIX % checksum(content) + content + _SUFFIX


def as_line(entry: Mapping[str, Any]) -> str:
    """Return an entry as a line of JSON, in ASCII."""
    return json.dumps(entry, default=_number) + "\n"


def _number(value: Any) -> Any:  # noqa: ANN401
    """Return a numpy number as Python's own."""
    if not hasattr(value, "item"):
        raise TypeError(f"{value!r} can't be journalled")
    return value.item()
