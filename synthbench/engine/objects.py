"""Objects that several machines share: bytes by key; and the kind that lies in a network folder."""

import errno
import hashlib
import os
import shutil
import stat
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from synthbench.base.durability import MOST_BYTES, PASSING, open_file, sync_file, sync_folder
from synthbench.base.errors import UserError

TEMPORARY = ".new-"
"""Begins the names of files that are being written."""
_PASSING = PASSING | {errno.EIO}
"""Errors of network file systems whose server is away for a while; some say EIO then."""


class UnavailableError(UserError):
    """A store did not answer, or said to ask again: the same request may succeed later."""


@dataclass(frozen=True)
class ListedObject:
    """An object in a listing; `modified` in seconds since 1970 by the store's clock, size in bytes."""

    key: str
    size: int
    modified: float


class Objects(ABC):
    """Where a shared store keeps its objects.

    Methods raise UserError if it refuses, UnavailableError if it can't be reached. All may be called again
    after that: what was done, with its reply lost, is not done twice.
    """

    @abstractmethod
    def __str__(self) -> str:
        """Return what people call it: a folder or a URL, without secrets."""

    @abstractmethod
    def create(self, key: str, content: bytes) -> bool:
        """Write an object, whole or not at all; False if there is one already, which stays as it is."""

    @abstractmethod
    def write(self, key: str, content: bytes) -> None:
        """Write an object, or replace it."""

    @abstractmethod
    def upload(self, key: str, file: Path) -> None:
        """Write a file's content as an object."""

    @abstractmethod
    def read(self, key: str) -> bytes:
        """Return an object's content, at most a byte more than MOST_BYTES; raises FileNotFoundError."""

    @abstractmethod
    def download(self, key: str, file: Path, size: int) -> None:
        """Write an object's content to a file, little more than `size` bytes; raises FileNotFoundError."""

    @abstractmethod
    def digest(self, key: str) -> str:
        """Return the SHA-256 of an object's content, in hex; raises FileNotFoundError."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix, which ends with "/"; each object is there when it is yielded."""

    @abstractmethod
    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already make no difference."""


class FolderObjects(Objects):
    """Objects as files below a folder of a network file system.

    A file is written under another name first. A hard link to the final name creates it, which fails if the
    name is taken: NFS has this without any lock.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def create(self, key: str, content: bytes) -> bool:
        """Write an object, whole or not at all; False if there is one already."""
        with self._errors(), self._written(key, content) as new:
            try:
                os.link(new, self._file(key))
            except FileExistsError:
                # A server may have made the link, and its reply been lost: then the file has two names. Or
                # this is a second attempt after such a first one.
                return new.stat().st_nlink == 2 or self._holds(key, content)
            sync_folder(new.parent)
        return True

    def _holds(self, key: str, content: bytes) -> bool:
        try:
            with self._opened(key) as stream:
                return stream.read(len(content) + 1) == content
        except FileNotFoundError:
            return False

    def write(self, key: str, content: bytes) -> None:
        """Write an object, or replace it."""
        with self._errors(), self._written(key, content) as new:
            new.replace(self._file(key))
            sync_folder(new.parent)

    def upload(self, key: str, file: Path) -> None:
        """Write a file's content as an object."""
        with self._errors(), self._new(key) as new:
            shutil.copyfile(file, new)
            sync_file(new)
            new.replace(self._file(key))
            sync_folder(new.parent)

    def read(self, key: str) -> bytes:
        """Return an object's content; raises FileNotFoundError."""
        with self._errors(), self._opened(key) as stream:
            return stream.read(MOST_BYTES + 1)

    def download(self, key: str, file: Path, size: int) -> None:
        """Write an object's content to a file, at most a byte more than `size`; raises FileNotFoundError."""
        with file.open("wb") as copy:  # whose disk, when it is full, is not the store's
            copy.writelines(self._parts(key, size + 1))

    def _parts(self, key: str, most: int) -> Iterator[bytes]:
        with self._errors(), self._opened(key) as stream:
            while most and (part := stream.read(min(most, 1 << 20))):
                yield part
                most -= len(part)

    def digest(self, key: str) -> str:
        """Return the SHA-256 of an object's content; raises FileNotFoundError."""
        with self._errors(), self._opened(key) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix."""
        waiting = [self.root / prefix]
        while waiting:
            with self._errors():
                found = _paths(waiting.pop())
            for path in found:
                with self._errors():
                    status = _status(path)
                if status is None:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                elif stat.S_ISREG(status.st_mode) and not path.name.startswith(TEMPORARY):
                    yield ListedObject(
                        path.relative_to(self.root).as_posix(), status.st_size, status.st_mtime
                    )

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        with self._errors():
            for key in keys:
                file = self._file(key)
                file.unlink(missing_ok=True)
                # A folder that another process fills or removes meanwhile makes no difference.
                with suppress(OSError):
                    while file.parent != self.root:
                        file = file.parent
                        file.rmdir()

    def _file(self, key: str) -> Path:
        """Return the file of an object; raises UserError where a link would lead out of the store."""
        file = self.root / key
        if not self._is_inside(file):
            raise UserError(f"{file.parent}: a link leads out of the store there; remove it")
        return file

    def _is_inside(self, file: Path) -> bool:
        folder = file.parent.relative_to(self.root)
        return os.path.realpath(file.parent) == os.path.normpath(os.path.realpath(self.root) / folder)

    @contextmanager
    def _opened(self, key: str) -> Iterator[BufferedReader]:
        """Open an object for reading; what is no regular file, such as a link or a pipe, is no object."""
        file = self.root / key
        status = _status(file) if self._is_inside(file) else None
        if status is None or not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is not a regular file", str(file))
        with open_file(file) as stream:
            yield stream

    @contextmanager
    def _new(self, key: str) -> Iterator[Path]:
        """Yield the name of a new file beside the object; it is removed at the end if it is still there."""
        folder = self._file(key).parent
        new = folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has removed the empty folder
                new.touch(exist_ok=False)
                break
        try:
            yield new
        finally:
            new.unlink(missing_ok=True)

    @contextmanager
    def _written(self, key: str, content: bytes) -> Iterator[Path]:
        with self._new(key) as new:
            new.write_bytes(content)
            sync_file(new)
            yield new

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in one line what the file system refuses."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            kind = UnavailableError if error.errno in _PASSING else UserError
            raise kind(f"{self.root}: the shared store's folder: {error.strerror or error}") from error


def _paths(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _status(path: Path) -> os.stat_result | None:
    """Return what the file system says of a path; None if nothing is there."""
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def probe(objects: Objects) -> None:
    """Check that objects can be written, listed and read, and that what exists is never created again.

    Raises UserError: leases and commits rest on this.
    """
    key = f"probe/{uuid.uuid4().hex}"
    is_new, is_new_again = objects.create(key, b"first"), objects.create(key, b"second")
    try:
        found = objects.read(key)
        listed = [entry.key for entry in objects.list("probe/")]
    except FileNotFoundError:
        raise UserError(f"{objects}: what was just written there is not found; it can't be a store") from None
    finally:
        objects.delete([key])
    if not is_new or is_new_again or found != b"first" or key not in listed:
        raise UserError(
            f"{objects}: what exists there can be created a second time, or is not listed, so two "
            "machines would take the same stage; use a file system with hard links (NFS, Lustre) or an "
            "object store that knows If-None-Match"
        )
