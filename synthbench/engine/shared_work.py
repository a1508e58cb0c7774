"""Unfinished work in a shared store: another machine can resume from a lost machine's last save.

    unfinished/<identity>/<epoch>-<save>/stage.json    the work's files, each with its checksum: written last
    unfinished/<identity>/<epoch>-<save>/<SHA-256>     the content of a file, or of a part of the journal

A process that takes over a stage begins the next epoch, below a prefix of its own: a slow former worker
overwrites nothing. The newest epoch counts. If two saves have the same epoch, since the store could not be
reached, the larger one counts.
"""

import hashlib
import json
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from synthbench.base.durability import (
    DamagedFileError,
    seal,
    sync_tree,
    write_atomically,
)
from synthbench.base.errors import PendingError, UserError
from synthbench.base.patterns import linear_pattern
from synthbench.engine.leases import described
from synthbench.engine.listing import at_once
from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, ArtifactDamagedError, parsed_record
from synthbench.engine.saved_stage import FOLDER, MARK, Save, SavedStage, checkpoint_files, version_of
from synthbench.engine.shared_artifacts import download
from synthbench.engine.unfinished import CHECKPOINTS, JOURNAL, UnfinishedWork
from synthbench.engine.workspace import Journal

LOOKS_PER_LEASE = 12
"""How often per lease lifetime (60 s) new work is looked for and saved: every 5 s."""
_COMING = "coming"
"""The folder in the work's folder with the files that are being downloaded."""
_SAVE = linear_pattern(r"unfinished/([0-9a-f]{64})/([0-9]{8,12})-([0-9a-f]{32})/([0-9a-z.]{1,64})")
_FILE = linear_pattern(rf"(?:{CHECKPOINTS}/.+|{re.escape(JOURNAL)}/[0-9]{{15}})", re.DOTALL)
NO_SAVE = Save(-1, "")


class SharedWork:
    """The unfinished work in a shared store. A failed save delays no stage, and is tried again later.

    `seconds` is the lifetime of a lease without renewal; changed work is saved 12 times in this time.
    """

    def __init__(self, objects: PatientObjects, here: UnfinishedWork, seconds: float) -> None:
        self._objects = objects
        self._here = here
        self._seconds = seconds
        self._stages: dict[str, SavedStage] = {}
        self._one_at_a_time = threading.Lock()

    def entries(self) -> Iterator[tuple[str, ListedObject]]:
        """Yield the objects of unfinished work, each with the identity of its stage."""
        for entry in self._objects.list(FOLDER):
            if found := _SAVE.fullmatch(entry.key):
                yield found[1], entry

    def bring(self, identity: str, check: Callable[[Path], object]) -> None:
        """Replace this machine's unfinished work by the store's, if another machine has gone further.

        Without a call of `bring`, a stage's work is not saved. `check` gets the folder of downloaded work; if
        `check` raises UserError, an older save is tried.
        """
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
            is_rival = save != here and here.epoch in (save.epoch, NO_SAVE.epoch)
            if is_rival and _size(record) <= _size_here(folder):
                return
            if self._download(identity, save, record, check):
                stage.came_with = stage.state
                holder = described(json.dumps(record.get("holder")).encode())
                self._objects.say(f"going on with the unfinished work that {holder} saved")
                return

    @contextmanager
    def saving(self, identities: Collection[str]) -> Iterator[None]:
        """Within the block, save the stages' work at intervals; at the block's end, save unfinished stages.

        If the block fails, work taken over from another machine is dropped if it may be the cause.
        """
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

    def save(self, identity: str) -> None:
        """Save the stage's work if it changed; ignores store errors and files that change meanwhile."""
        if (stage := self._stages.get(identity)) is None:
            return
        with self._one_at_a_time, suppress(UserError, OSError):
            stage.upload(self._objects.inner)
        if stage.is_over:  # committed meanwhile
            self._delete(f"{FOLDER}{identity}/{stage.save}/")

    def forget(self, identity: str) -> None:
        """Remove a stage's work from the store; if the store fails, `synthbench clean` removes it later."""
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
            self.save(identity)

    def _drop_what_nobody_can_use(self, identities: Collection[str], error: Exception) -> None:
        """Drop work taken over from another machine, if the stage failed before adding to this work.

        A UserError, pending batch, damaged artifact or lack of memory drops nothing: the work is not the
        cause.
        """
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
        """Return the complete saves among a stage's objects, with their records."""
        found: dict[Save, Mapping[str, Any]] = {}
        for entry in entries:
            parts = _SAVE.fullmatch(entry.key)
            if parts and parts[4] == STAGE_FILE:
                with suppress(FileNotFoundError, DamagedFileError):
                    record = self._objects.checked(entry.key, partial(parsed_record, is_shared=True))
                    if all(map(_FILE.fullmatch, record["files"])):
                        found[Save(int(parts[2]), parts[3])] = record
        return found

    def _download(
        self, identity: str, save: Save, record: Mapping[str, Any], check: Callable[[Path], object]
    ) -> bool:
        """Replace this machine's work by a save; if the save is unusable, change nothing and return False."""
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
            try:
                check(coming)
            except UserError as fault:
                self._objects.say(f"the unfinished work of another machine can't be used: {fault}")
                return False
            sync_tree(coming)
            for name in (CHECKPOINTS, JOURNAL):
                _replace(folder / name, coming / name)
            write_atomically(folder / MARK, f"{save} {_fingerprint(record)}")
        finally:
            shutil.rmtree(coming, ignore_errors=True)
        return True

    def _get(self, prefix: str, coming: Path, files: Mapping[str, Any], name: str) -> str:
        return download(self._objects, f"{prefix}{files[name]['sha256']}", coming / name, name, files[name])


def _join_journal(folder: Path) -> None:
    """Replace the folder of the journal's parts by the journal."""
    parts = folder / JOURNAL
    if not parts.is_dir():
        return
    joined = folder / "joined"
    Journal(joined).copy_from(sorted(parts.iterdir()))
    shutil.rmtree(parts)
    joined.rename(parts)


def _replace(here: Path, new: Path) -> None:
    """Replace the file or folder `here` by `new`; if there is no `new`, only remove `here`."""
    if here.is_dir():
        shutil.rmtree(here)
    here.unlink(missing_ok=True)
    if new.exists():
        new.rename(here)


def _mark(folder: Path) -> tuple[Save, str]:
    """Return the last save of this machine's work, and the save's fingerprint if downloaded, else "".

    Returns NO_SAVE and "" if the work was never saved.
    """
    try:
        save, _, fingerprint = (folder / MARK).read_text(encoding="utf-8").partition(" ")
        epoch, _, name = save.partition("-")
        return Save(int(epoch), name), fingerprint
    except (OSError, ValueError):
        return NO_SAVE, ""


def _fingerprint(record: Mapping[str, Any]) -> str:
    """Return a hash of a save's record, which changes when its writer saves again."""
    return hashlib.sha256(seal(record).encode()).hexdigest()


def _size(record: Mapping[str, Any]) -> int:
    return sum(entry["size"] for entry in record["files"].values())


def _size_here(folder: Path) -> int:
    journal = folder / JOURNAL
    sizes = [version_of(file)[0] for _, file in checkpoint_files(folder)]
    return sum(sizes) + (journal.stat().st_size if journal.is_file() else 0)
