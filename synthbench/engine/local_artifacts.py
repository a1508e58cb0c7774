"""Artifacts in local folders: a local store's, or copies of a shared store's."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from synthbench.base.durability import PASSING, file_hash, not_now, sealed_bytes, sync_folder
from synthbench.engine.holdings import Holding, StoreEntry, files_in
from synthbench.engine.records import (
    STAGE_FILE,
    ArtifactDamagedError,
    artifact_key,
    check_size,
    is_identity,
)
from synthbench.engine.unfinished import Rubbish
from synthbench.llm.database import lock

SMALL = 1_000_000
"""Every check hashes files up to this many bytes, at negligible cost."""


class LocalArtifacts:
    """One folder per artifact, renamed into place when complete."""

    def __init__(self, root: Path, rubbish: Rubbish) -> None:
        self._root = root
        self._rubbish = rubbish

    def folder(self, identity: str) -> Path:
        """Return an artifact's folder, which need not exist.

        Raises ArtifactDamagedError for a malformed identity.
        """
        return self._root / artifact_key(identity)

    def alone(self) -> AbstractContextManager[object]:
        """Return a lock against this machine's other processes, for short operations; create the root."""
        self._root.mkdir(parents=True, exist_ok=True)
        return lock(self._root.parent / "copying")

    def listed(self, identities: Collection[str] | None = None) -> AbstractContextManager[object]:
        """Do nothing: folders need no listing."""
        return nullcontext()

    def has(self, identity: str) -> bool:
        """Return whether the artifact exists, whole or damaged."""
        return self.folder(identity).is_dir()

    def read(self, identity: str) -> bytes | None:
        """Return the record's bytes, None if there is no record; raises DamagedFileError if unreadable."""
        try:
            return sealed_bytes(self.folder(identity) / STAGE_FILE)
        except FileNotFoundError:
            return None

    def check(
        self, identity: str, record: Mapping[str, Any], names: Collection[str] | None, *, thorough: bool
    ) -> None:
        """Compare these files (None: all) with the record; raises ArtifactDamagedError.

        If not `thorough`, a large file is hashed only if its modification time differs from the record.
        """
        for name in record["files"] if names is None else names:
            self._check_file(identity, name, record["files"][name], thorough=thorough)

    def _check_file(self, identity: str, name: str, recorded: Any, *, thorough: bool) -> None:  # noqa: ANN401
        file = self.folder(identity) / name
        if any(path.is_symlink() for path in (file, *file.parents[: name.count("/")])):
            raise ArtifactDamagedError(identity, f"{name} is a link")
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ArtifactDamagedError(identity, f"{name} is not a regular file")
            check_size(identity, name, recorded, status.st_size)
            is_read = thorough or status.st_size <= SMALL or status.st_mtime_ns != recorded["mtime_ns"]
            if is_read and file_hash(file) != recorded["sha256"]:
                raise ArtifactDamagedError(identity, f"the checksum of {name} differs")
        except (FileNotFoundError, NotADirectoryError):
            raise ArtifactDamagedError(identity, f"{name} is missing") from None
        except PermissionError:
            raise
        except OSError as error:
            if error.errno in PASSING:
                raise not_now(file, error) from error
            raise ArtifactDamagedError(identity, f"{name} can't be read: {error.strerror}") from error

    def verify(self, identity: str, record: Mapping[str, Any]) -> None:
        """Hash all files and compare them with the record; raises ArtifactDamagedError."""
        self.check(identity, record, None, thorough=True)

    def fetch(self, identity: str, record: Mapping[str, Any]) -> None:
        """Do nothing: all files are local."""

    def begin(self, identity: str) -> None:
        """Do nothing: the caller holds the lock, so `publish` may replace any artifact."""

    def publish(self, identity: str, output: Path, record: Mapping[str, Any]) -> bool:
        """Move a finished output to the artifact's folder; an artifact that is there is replaced.

        Returns True: no other machine can be first.
        """
        self.discard(identity)
        folder = self.folder(identity)
        folder.parent.mkdir(parents=True, exist_ok=True)
        output.rename(folder)
        for parent in (folder.parent, folder.parent.parent):
            sync_folder(parent)
        return True

    def discard(self, identity: str) -> None:
        """Delete an artifact's folder, if it exists, atomically."""
        self._rubbish.discard(self.folder(identity))


class LocalContents:
    """All artifacts in local folders; a record's modification time is the artifact's last use."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def exists(self) -> bool:
        """Return whether the store's folder exists, even without artifacts."""
        return self._root.is_dir()

    def entries(self, beginning: str = "") -> Iterator[StoreEntry]:
        """Yield the artifacts whose identities start with `beginning`."""
        for folder in self._artifacts():
            if folder.name.startswith(beginning):
                yield StoreEntry(folder.name, _time(folder / STAGE_FILE))

    def measured(self) -> Iterator[StoreEntry]:
        """Yield all artifacts with their sizes, sorted by identity."""
        for folder in sorted(self._artifacts()):
            last_used = _time(folder / STAGE_FILE) or _time(folder)
            yield StoreEntry(folder.name, last_used, files_in(folder)[0])

    def strays(self) -> list[str]:
        """Return the paths of foreign files and folders among the artifacts, sorted."""
        artifacts = self._root / "artifacts"
        first = [path for path in artifacts.glob("*") if len(path.name) != 2 or not path.is_dir()]
        second = [
            path for path in artifacts.glob("*/*") if path.parent not in first and not self._is_own(path)
        ]
        return sorted(path.relative_to(self._root).as_posix() for path in (*first, *second))

    def mark_used(self, identities: Collection[str]) -> None:
        """Set the artifacts' last use to now; missing ones are ignored."""
        for identity in identities:
            with suppress(OSError):
                os.utime(self._root / artifact_key(identity) / STAGE_FILE)

    def unfinished(self) -> Iterator[StoreEntry]:
        """Yield nothing: only shared stores hold unfinished work; local work is in `Store.unfinished`."""
        return iter(())

    def lost(self) -> list[Holding]:
        """Return []: `Store.unfinished` and `Store.rubbish` list the leftovers of killed local runs."""
        return []

    def remove_lost(self) -> None:
        """Do nothing, since `lost` is always []."""

    def _artifacts(self) -> Iterator[Path]:
        return (folder for folder in (self._root / "artifacts").glob("*/*") if self._is_own(folder))

    def _is_own(self, folder: Path) -> bool:
        """Return whether this is an artifact's folder: named by an identity, at that identity's path."""
        is_there = is_identity(folder.name) and folder == self._root / artifact_key(folder.name)
        return is_there and folder.is_dir()


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
