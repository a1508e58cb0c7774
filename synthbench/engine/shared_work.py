"""Unfinished work in a shared store: when a machine is lost, another one goes on from what it had saved.

    unfinished/<identity>/<epoch>-<save>/stage.json    the work's files, each with its checksum: written last
    unfinished/<identity>/<epoch>-<save>/<SHA-256>     the content of a file, or of a part of the journal

Who takes a stage over begins the next epoch, below a prefix of its own: a slow former worker overwrites
nothing. The newest epoch counts; of equal ones, begun while the store was away, the largest.
"""

import hashlib
import json
import os
import re
import shutil
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from synthbench.base.durability import (
    DamagedFileError,
    file_hash,
    is_stray,
    seal,
    sync_tree,
    write_atomically,
)
from synthbench.base.errors import PendingError, UserError
from synthbench.base.patterns import linear_pattern
from synthbench.engine.leases import described, this_process
from synthbench.engine.listing import at_once
from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import Objects, PatientObjects
from synthbench.engine.records import STAGE_FILE, ArtifactDamagedError, parsed_record
from synthbench.engine.shared_artifacts import download
from synthbench.engine.unfinished import CHECKPOINTS, JOURNAL, UnfinishedWork

FOLDER = "unfinished/"
LOOKS_PER_LEASE = 12
"""How often new work is looked for while a lease without renewal would expire: every 5 s."""
MOST_BYTES_OF_A_PART = 16_000_000
"""Limit of a part of the journal. Smaller parts are joined, so that their number grows slowly."""
_MARK, _COMING, _LEAVING = "save", "coming", "leaving"
"""In the work's folder: the newest save here, files that are coming, and links to files that leave."""
_SAVE = linear_pattern(r"unfinished/([0-9a-f]{64})/([0-9]{8})-([0-9a-f]{32})/([0-9a-z.]{1,64})")
_FILE = linear_pattern(rf"(?:{CHECKPOINTS}/.+|{re.escape(JOURNAL)}/[0-9]{{15}})", re.DOTALL)
Version = tuple[int, int]
"""A file's size in bytes and modification time in nanoseconds: it changes with the content."""
Part = tuple[int, int, str]
"""A part of the journal: its first byte, the byte after its last, and its SHA-256."""


@dataclass(frozen=True, order=True)
class Save:
    """A prefix with unfinished work: its epoch, and a unique id."""

    epoch: int = -1
    name: str = ""

    def __str__(self) -> str:
        return f"{self.epoch:08}-{self.name}"


@dataclass
class SavedStage:
    """A stage's work on this machine, and what of it is in the store."""

    identity: str
    folder: Path
    save: Save
    former: list[str]
    """Keys of former saves, which the first one of this process replaces."""
    came_with: object = None
    """The state of the work as another machine had left it; None if it is this machine's."""
    is_over: bool = False
    _uploaded: set[str] = field(default_factory=set)
    _hashes: dict[tuple[str, Version], str] = field(default_factory=dict)
    _parts: list[Part] = field(default_factory=list)
    _journal: int = 0
    """The inode of the journal: another file is uploaded anew."""
    _last: object = None

    @property
    def state(self) -> tuple[object, ...]:
        """What changes with each checkpoint and each finished unit; empty before the first."""
        files = ((name, _version(file)) for name, file in _checkpoint_files(self.folder))
        journal = self.folder / JOURNAL
        return (*files, *((journal.stat().st_ino, journal.stat().st_size) if journal.is_file() else ()))

    @property
    def has_saved(self) -> bool:
        """Whether the store may hold work of this stage."""
        return bool(self.former or self._uploaded)

    def upload(self, objects: Objects) -> None:
        """Save the work, if it changed.

        Raises UserError if the store can't take it, OSError if files change meanwhile; a later call goes on.
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
        write_atomically(self.folder / _MARK, str(self.save))
        self._last = state
        kept = {str(entry["sha256"]) for entry in files.values()}
        objects.delete([*map(self._key, self._uploaded - kept), *self.former])
        self._uploaded &= kept
        self.former = []

    def _key(self, name: str) -> str:
        return f"{FOLDER}{self.identity}/{self.save}/{name}"

    def _checkpoints(self, objects: Objects, leaving: Path) -> dict[str, Any]:
        """Upload new files of checkpoints; return the records of all."""
        files = {name: (file, _version(file)) for name, file in _checkpoint_files(self.folder)}
        # Trainings delete former checkpoints: links keep them until they are uploaded.
        new = {
            name: _linked(file, leaving / str(number))
            for number, (name, (file, version)) in enumerate(files.items())
            if (name, version) not in self._hashes
        }
        if {name: version for name, (_, version) in files.items()} != {
            name: _version(file) for name, file in _checkpoint_files(self.folder)
        }:
            raise FileNotFoundError("a checkpoint is being written or deleted")
        for name, file in new.items():
            version = files[name][1]
            content = file_hash(file)
            self._send(objects, content, file)
            if _version(file) != version:
                raise FileNotFoundError(f"{name} is being written")
            self._hashes[name, version] = content
        self._hashes = {(name, version): self._hashes[name, version] for name, (_, version) in files.items()}
        return {
            name: {"size": size, "mtime_ns": changed, "sha256": content}
            for (name, (size, changed)), content in self._hashes.items()
        }

    def _journal_parts(self, objects: Objects) -> dict[str, Any]:
        """Upload the journal's new end; return the records of its parts."""
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


class SharedWork:
    """The unfinished work in a shared store. Saving never delays a stage; what fails is repeated later.

    A lease that is not renewed for `seconds` expires.
    """

    def __init__(self, objects: PatientObjects, here: UnfinishedWork, seconds: float) -> None:
        self._objects = objects
        self._here = here
        self._seconds = seconds
        self._stages: dict[str, SavedStage] = {}

    def entries(self) -> Iterator[tuple[str, ListedObject]]:
        """Yield the objects of unfinished work, each with the identity of its stage."""
        for entry in self._objects.list(FOLDER):
            if found := _SAVE.fullmatch(entry.key):
                yield found[1], entry

    def bring(self, identity: str) -> None:
        """Replace this machine's work by that of the store if another machine went on since."""
        folder = self._here.folder(identity)
        entries = self._objects.list(f"{FOLDER}{identity}/")
        saves = self._saves(entries)
        newest = max((save.epoch for save in saves), default=-1)
        here, seen = _mark(folder)
        following = Save(max(newest, here.epoch) + 1, uuid.uuid4().hex)
        stage = SavedStage(identity, folder, following, [entry.key for entry in entries])
        self._stages[identity] = stage
        for save in sorted(saves, key=lambda each: (each.epoch, _size(saves[each])), reverse=True):
            record = saves[save]
            if save.epoch < here.epoch or (save == here and seen in ("", _fingerprint(record))):
                return
            if save != here and save.epoch == here.epoch and _size(record) <= _size_here(folder):
                return
            if self._download(identity, save, record):
                stage.came_with = stage.state
                holder = described(json.dumps(record.get("holder")).encode())
                self._objects.say(f"going on with the unfinished work that {holder} saved")
                return

    @contextmanager
    def saving(self, identities: Collection[str]) -> Iterator[None]:
        """Save the stages' work while they are computed, and once more if they stop before they are done."""
        stop = threading.Event()
        saver = threading.Thread(target=self._save_until, args=(stop, identities), daemon=True)
        saver.start()
        try:
            yield
        except Exception as error:
            self._drop_what_nobody_can_use(identities, error)
            raise
        finally:
            stop.set()
            if any(identity in self._stages for identity in identities):
                saver.join(self._seconds)
                if not saver.is_alive():
                    self._save(identities)

    def forget(self, identity: str) -> None:
        """Remove a stage's work from the store; `clean` removes what can't be removed now."""
        stage = self._stages.pop(identity, None)
        if stage is not None:
            stage.is_over = True
            if not stage.has_saved:
                return
        self._delete(f"{FOLDER}{identity}/")

    def _delete(self, prefix: str) -> None:
        objects = self._objects.inner
        with suppress(UserError):
            objects.delete([entry.key for entry in objects.list(prefix)])

    def _save_until(self, stop: threading.Event, identities: Collection[str]) -> None:
        while not stop.wait(self._seconds / LOOKS_PER_LEASE):
            self._save(identities)

    def _save(self, identities: Collection[str]) -> None:
        for identity in identities:
            if (stage := self._stages.get(identity)) is not None:
                with suppress(UserError, OSError):
                    stage.upload(self._objects.inner)
                if stage.is_over:  # committed meanwhile
                    self._delete(f"{FOLDER}{identity}/{stage.save}/")

    def _drop_what_nobody_can_use(self, identities: Collection[str], error: Exception) -> None:
        """Drop work of another machine with which a stage failed before it had done anything itself."""
        is_short_of_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if is_short_of_memory or isinstance(error, UserError | PendingError | ArtifactDamagedError):
            return
        for identity in identities:
            stage = self._stages.get(identity)
            if stage is not None and stage.came_with is not None and stage.came_with == stage.state:
                self._here.forget(identity)
                self.forget(identity)
                self._objects.say(
                    "the unfinished work of another machine can't be used; the stage begins anew"
                )

    def _saves(self, entries: Collection[ListedObject]) -> dict[Save, Mapping[str, Any]]:
        """Return the whole saves among a stage's objects, with their records."""
        found: dict[Save, Mapping[str, Any]] = {}
        for entry in entries:
            parts = _SAVE.fullmatch(entry.key)
            if parts and parts[4] == STAGE_FILE:
                with suppress(FileNotFoundError, DamagedFileError):
                    record = parsed_record(self._objects.read(entry.key), is_shared=True)
                    if all(map(_FILE.fullmatch, record["files"])):
                        found[Save(int(parts[2]), parts[3])] = record
        return found

    def _download(self, identity: str, save: Save, record: Mapping[str, Any]) -> bool:
        """Replace the work here by a save; False, and no change, if it is not whole."""
        folder = self._here.folder(identity)
        coming = folder / _COMING
        shutil.rmtree(coming, ignore_errors=True)
        coming.mkdir(parents=True)
        prefix, files = f"{FOLDER}{identity}/{save}/", record["files"]
        get = partial(self._get, prefix, coming, files)
        try:
            if any(fault for _, fault in at_once(get, files)):
                return False
            _join_journal(coming)
            sync_tree(coming)
            for name in (CHECKPOINTS, JOURNAL):
                _replace(folder / name, coming / name)
            write_atomically(folder / _MARK, f"{save} {_fingerprint(record)}")
        finally:
            shutil.rmtree(coming, ignore_errors=True)
        return True

    def _get(self, prefix: str, coming: Path, files: Mapping[str, Any], name: str) -> str:
        return download(self._objects, f"{prefix}{files[name]['sha256']}", coming / name, name, files[name])


def _checkpoint_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of checkpoints with their names in the work's folder; raises FileNotFoundError."""
    for file in sorted((folder / CHECKPOINTS).rglob("*")):
        if not is_stray(file.name) and not file.is_symlink() and file.is_file():
            yield file.relative_to(folder).as_posix(), file


def _version(file: Path) -> Version:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _linked(file: Path, link: Path) -> Path:
    """Return a second name of a file; the file itself where the file system knows none."""
    try:
        os.link(file, link)
    except FileNotFoundError:
        raise
    except OSError:
        return file
    return link


def _join_journal(folder: Path) -> None:
    """Replace the folder of the journal's parts by the journal."""
    parts = folder / JOURNAL
    if not parts.is_dir():
        return
    with (folder / _LEAVING).open("wb") as whole:
        for part in sorted(parts.iterdir()):
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, whole)
    shutil.rmtree(parts)
    (folder / _LEAVING).rename(parts)


def _replace(here: Path, new: Path) -> None:
    """Move a file or folder to its final name, where it replaces what is there; it need not exist."""
    if here.is_dir():
        shutil.rmtree(here)
    here.unlink(missing_ok=True)
    if new.exists():
        new.rename(here)


def _mark(folder: Path) -> tuple[Save, str]:
    """Return the newest save of the work here, and its fingerprint if another process wrote it."""
    try:
        save, _, fingerprint = (folder / _MARK).read_text(encoding="utf-8").partition(" ")
        epoch, _, name = save.partition("-")
        return Save(int(epoch), name), fingerprint
    except (OSError, ValueError):
        return Save(), ""


def _fingerprint(record: Mapping[str, Any]) -> str:
    """Return a hash of a save's record: who wrote the save may go on."""
    return hashlib.sha256(seal(record).encode()).hexdigest()


def _size(record: Mapping[str, Any]) -> int:
    return sum(entry["size"] for entry in record["files"].values())


def _size_here(folder: Path) -> int:
    journal = folder / JOURNAL
    sizes = [_version(file)[0] for _, file in _checkpoint_files(folder)]
    return sum(sizes) + (journal.stat().st_size if journal.is_file() else 0)
