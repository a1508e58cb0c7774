"""A stage's unfinished work, and its copy in a shared store (`shared_work` lists the copy's objects)."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthbench.base.durability import file_hash, is_stray, seal, write_atomically
from synthbench.engine.leases import this_process
from synthbench.engine.patience import Objects
from synthbench.engine.records import STAGE_FILE
from synthbench.engine.unfinished import CHECKPOINTS, JOURNAL

FOLDER = "unfinished/"
MOST_BYTES_OF_A_PART = 16_000_000
"""Maximum size of an uploaded part of the journal. Smaller parts are joined, so that there are few."""
MARK = "save"
"""The file in the work's folder that names the newest save of this work."""
_LEAVING = "leaving"
"""The folder in the work's folder with hard links to the files that are being uploaded."""
Version = tuple[int, int]
"""A file's size in bytes and modification time in nanoseconds: it changes with the content."""
Part = tuple[int, int, str]
"""A part of the journal: its first byte, the byte after its last, and its SHA-256."""


@dataclass(frozen=True, order=True)
class Save:
    """The name of a saved copy of unfinished work, as in the keys of its objects: epoch and unique id.

    Each process that takes over a stage begins the next epoch.
    """

    epoch: int
    name: str

    def __str__(self) -> str:
        return f"{self.epoch:08}-{self.name}"


@dataclass
class SavedStage:
    """A stage's unfinished work on this machine, and the parts of it that are in the store."""

    identity: str
    folder: Path
    save: Save
    former: list[str]
    """Keys of the objects of former saves; this process's first save deletes them."""
    came_with: object = None
    """`state` as another machine left it, if the work was downloaded; None for this machine's own work."""
    is_over: bool = False
    _uploaded: set[str] = field(default_factory=set)
    _hashes: dict[tuple[str, Version], str] = field(default_factory=dict)
    _parts: list[Part] = field(default_factory=list)
    _journal: int = 0
    """The inode of the uploaded journal; a journal that is another file is uploaded from its beginning."""
    _last: object = None

    @property
    def state(self) -> tuple[object, ...]:
        """The versions of checkpoints and journal, which change with new work; () without such files."""
        files = ((name, version_of(file)) for name, file in checkpoint_files(self.folder))
        journal = self.folder / JOURNAL
        return (*files, *((journal.stat().st_ino, journal.stat().st_size) if journal.is_file() else ()))

    @property
    def has_saved(self) -> bool:
        """Whether the store may hold work of this stage."""
        return bool(self.former or self._uploaded)

    def upload(self, objects: Objects) -> None:
        """Upload the work, if it changed since the last save; then delete the objects of former saves.

        Raises UserError if the store can't take it, OSError if files change meanwhile; a later call resumes.
        """
        state = self.state
        if state == self._last or not (state or self.has_saved):
            return
        leaving = self.folder / _LEAVING
        shutil.rmtree(leaving, ignore_errors=True)
        leaving.mkdir(parents=True)
        try:
            files = self._checkpoints(objects, leaving) | self._journal_parts(objects)
        finally:
            shutil.rmtree(leaving, ignore_errors=True)
        if self.is_over:
            return
        record = {"attempt": self.save.name, "files": files, "holder": this_process(self.identity)}
        objects.write(self._key(STAGE_FILE), seal(record).encode())
        write_atomically(self.folder / MARK, str(self.save))
        self._last = state
        kept = {str(entry["sha256"]) for entry in files.values()}
        objects.delete([*map(self._key, self._uploaded - kept), *self.former])
        self._uploaded &= kept
        self.former = []

    def _key(self, name: str) -> str:
        return f"{FOLDER}{self.identity}/{self.save}/{name}"

    def _checkpoints(self, objects: Objects, leaving: Path) -> dict[str, Any]:
        """Upload new checkpoint files; return name -> record (size, time, SHA-256) of all checkpoint files.

        Raises FileNotFoundError if a checkpoint is being written or deleted.
        """
        files = {name: (file, version_of(file)) for name, file in checkpoint_files(self.folder)}
        # Trainings delete former checkpoints: links keep them until they are uploaded.
        new = {
            name: _linked(file, leaving / str(number))
            for number, (name, (file, version)) in enumerate(files.items())
            if (name, version) not in self._hashes
        }
        if {name: version for name, (_, version) in files.items()} != {
            name: version_of(file) for name, file in checkpoint_files(self.folder)
        }:
            raise FileNotFoundError("a checkpoint is being written or deleted")
        for name, file in new.items():
            version = files[name][1]
            content = file_hash(file)
            self._send(objects, content, file)
            if version_of(file) != version:
                raise FileNotFoundError(f"{name} is being written")
            self._hashes[name, version] = content
        self._hashes = {(name, version): self._hashes[name, version] for name, (_, version) in files.items()}
        return {
            name: {"size": size, "mtime_ns": changed, "sha256": content}
            for (name, (size, changed)), content in self._hashes.items()
        }

    def _journal_parts(self, objects: Objects) -> dict[str, Any]:
        """Upload the journal's new end, merged with the last uploaded parts if these are small.

        Returns name -> record (size, SHA-256) of all parts; {} without a journal.
        """
        journal = self.folder / JOURNAL
        if not journal.is_file():
            self._parts = []
            return {}
        with journal.open("rb") as stream:
            status = os.fstat(stream.fileno())
            end = self._parts[-1][1] if self._parts else 0
            if status.st_ino != self._journal or status.st_size < end:
                self._parts, end = [], 0
            self._journal = status.st_ino
            while self._parts:
                first, last, _ = self._parts[-1]
                if last - first > status.st_size - end or status.st_size - first > MOST_BYTES_OF_A_PART:
                    break
                end = self._parts.pop()[0]
            while end < status.st_size and not self.is_over:
                stream.seek(end)
                part = stream.read(min(MOST_BYTES_OF_A_PART, status.st_size - end))
                content = hashlib.sha256(part).hexdigest()
                self._send(objects, content, part)
                self._parts.append((end, end + len(part), content))
                end += len(part)
        return {
            f"{JOURNAL}/{first:015}": {"size": last - first, "mtime_ns": 0, "sha256": content}
            for first, last, content in self._parts
        }

    def _send(self, objects: Objects, name: str, content: bytes | Path) -> None:
        if name not in self._uploaded and not self.is_over:
            objects.write(self._key(name), content)
            self._uploaded.add(name)


def checkpoint_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (path relative to the work's folder, file) for each checkpoint file."""
    for file in sorted((folder / CHECKPOINTS).rglob("*")):
        if not is_stray(file.name) and not file.is_symlink() and file.is_file():
            yield file.relative_to(folder).as_posix(), file


def version_of(file: Path) -> Version:
    """Return a file's size in bytes and modification time in nanoseconds."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _linked(file: Path, link: Path) -> Path:
    """Create a hard link to a file and return it; return the file if the file system has no hard links."""
    try:
        os.link(file, link)
    except FileNotFoundError:
        raise
    except OSError:
        return file
    return link
