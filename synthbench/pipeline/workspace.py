"""Where a stage works until its artifact is committed; survives a kill."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.generation.chat.endpoint import Account
from synthbench.plugins import ChatModel
from synthbench.runtime import Progress, Runtime


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
    """Finished pieces of work, one JSON line each, appended at once; a torn last line is dropped."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the complete entries, and cut off what a kill left of an incomplete one."""
        return (entry for _, entry in self.located())

    def located(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the entries as `read` does, each with its place in the file."""
        if not self.file.exists():
            return
        with self.file.open("r+b") as stream:
            end = 0
            for line in stream:
                entry = _entry(line)
                if entry is None:
                    break
                yield end, entry
                end += len(line)
            stream.truncate(end)

    def at(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield the entries at these places, in their order, one at a time."""
        if not self.file.exists():
            return
        with self.file.open("rb") as stream:
            for place in places:
                stream.seek(place)
                yield json.loads(stream.readline())

    def discard(self) -> None:
        """Forget all entries."""
        self.file.unlink(missing_ok=True)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one entry through to the file."""
        with self.file.open("ab") as stream:
            stream.write(as_line(entry).encode())


def as_line(entry: Mapping[str, Any]) -> str:
    """Return an entry as a line of JSON, in ASCII."""
    return json.dumps(entry, default=_number) + "\n"


def _number(value: Any) -> Any:  # noqa: ANN401
    """Return a numpy number as Python's own."""
    if not hasattr(value, "item"):
        raise TypeError(f"{value!r} can't be journalled")
    return value.item()


def _entry(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
