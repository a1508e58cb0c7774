"""The folder in which a stage works until its artifact is committed, and its journal."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.durability import sync_file
from synthbench.base.errors import UserError
from synthbench.base.runtime import Progress, Runtime, not_shared
from synthbench.engine.unfinished import CHECKPOINTS, JOURNAL
from synthbench.llm.endpoint import Account, ChatModel

_PREFIX, _SUFFIX = b'{"check": "%b", "entry": ', b"}\n"
_ANY = b"0" * 16
"""Placeholder as long as a checksum."""


@dataclass(frozen=True)
class ChatAccess:
    """A stage's access to an LLM: address, folder of all LLM answers, and the account that pays.

    `share` sends new answers and costs to other machines of a shared store.
    """

    model: ChatModel
    answers: Path
    account: Account
    share: Callable[[], None] = not_shared


@dataclass(frozen=True)
class Workspace:
    """A stage's work folder: `output` becomes the artifact; the rest is deleted at the commit."""

    folder: Path
    runtime: Runtime
    progress: Progress
    llm: ChatAccess | None = None
    trusted: tuple[Any, ...] = ()
    """The models whose own Python code the experiment allows to run in the stage."""
    save: Callable[[], None] = not_shared
    """Copies checkpoints and journal to a shared store; returns once that has succeeded or failed."""

    @property
    def output(self) -> Path:
        """Folder whose content becomes the artifact."""
        return self.folder / "output"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints, for resuming."""
        return self.folder / CHECKPOINTS

    @property
    def scratch(self) -> Path:
        """Folder of temporary data that may not fit into memory; need not exist."""
        return self.folder / "scratch"

    @property
    def journal(self) -> "Journal":
        """The stage's journal of finished work."""
        return Journal(self.folder / JOURNAL)


class Journal:
    """Journal of finished units of work, each a line of JSON with a checksum, written immediately.

    A kill may truncate the last line, a bad disk may damage any line: call `repair` first. Reading a damaged
    entry raises UserError.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def repair(self) -> int:
        """Drop damaged entries and return their number, not counting a truncated last line."""
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
        repaired = self.file.with_suffix(".repaired")
        with self.file.open("rb") as stream, repaired.open("wb") as kept:
            kept.writelines(line for line in stream if is_whole(line))
        sync_file(repaired)
        repaired.replace(self.file)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the journal's entries, oldest first."""
        return (entry for _, entry in self.located())

    def located(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the entries, each with its byte offset in the file."""
        if not self.file.exists():
            return
        end = 0
        with self.file.open("rb") as stream:
            for line in stream:
                yield end, self._entry(line)
                end += len(line)

    def at(self, offsets: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield the entries at these byte offsets, in this order, reading one at a time.

        Yields nothing if there is no journal.
        """
        if not self.file.exists():
            return
        with self.file.open("rb") as stream:
            for offset in offsets:
                stream.seek(offset)
                yield self._entry(stream.readline())

    def copy_from(self, files: Iterable[Path]) -> None:
        """Replace the journal by these files, joined in order: files from `write`, or parts of a journal."""
        copied = self.file.with_suffix(".copied")
        with copied.open("wb") as stream:
            for file in files:
                with file.open("rb") as source:
                    shutil.copyfileobj(source, stream)
        copied.replace(self.file)

    def write(self, offsets: Iterable[int], file: Path) -> None:
        """Write the entries at these byte offsets, in this order, to a file for `copy_from`."""
        with file.open("wb") as copy:
            copy.writelines(map(_as_entry, self.at(offsets)))

    def discard(self) -> None:
        """Delete all entries."""
        self.file.unlink(missing_ok=True)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append one entry and flush it."""
        with self.file.open("ab") as stream:
            stream.write(_as_entry(entry))

    def _entry(self, line: bytes) -> dict[str, Any]:
        if not is_whole(line):
            raise UserError(f"{self.file}: damaged while it was read; run the same command again")
        entry: dict[str, Any] = json.loads(line)["entry"]
        return entry


def _as_entry(entry: Mapping[str, Any]) -> bytes:
    content = as_line(entry).rstrip().encode()
    return _PREFIX % checksum(content) + content + _SUFFIX


def checksum(content: bytes) -> bytes:
    """Return a short hash that detects accidental damage."""
    return hashlib.blake2b(content, digest_size=8).hexdigest().encode()


def is_whole(line: bytes) -> bool:
    """Return whether a journal's line matches its checksum."""
    content = line[len(_PREFIX % _ANY) : -len(_SUFFIX)]
    return line == _PREFIX % checksum(content) + content + _SUFFIX


def as_line(entry: Mapping[str, Any]) -> str:
    """Return an entry as a line of JSON, in ASCII."""
    return json.dumps(entry, default=_number) + "\n"


def _number(value: Any) -> Any:  # noqa: ANN401
    """Convert a numpy number to a Python number."""
    if not hasattr(value, "item"):
        raise TypeError(f"{value!r} can't be journalled")
    return value.item()
