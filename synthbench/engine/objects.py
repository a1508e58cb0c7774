"""Objects that machines share (bytes by key), and their implementation in a network folder."""

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.durability import PASSING, is_stray, open_file, sync_file, sync_folder
from synthbench.base.errors import UserError

TEMPORARY = ".new-"
"""Prefix of incomplete files' names; listings leave them out."""
TRIES = 3
"""How often an object is read before its content counts as damaged: a network may truncate replies."""
_GONE = (FileNotFoundError, NotADirectoryError)
_PASSING = PASSING | {errno.EIO}
"""Errors of a network file system whose server is temporarily unreachable; some report EIO."""


class UnavailableError(UserError):
    """A store did not respond, or requested a retry: the same request may succeed later."""


class ExpiredError(UnavailableError):
    """The credentials of a store expired: the same request may succeed once they are renewed."""


@dataclass(frozen=True)
class ListedObject:
    """An object in a listing; `modified` in seconds since 1970 by the store's clock, size in bytes."""

    key: str
    size: int
    modified: float


def first_bytes(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the first `most` bytes of these parts."""
    for part in parts:
        yield part[:most]
        most -= len(part)
        if most <= 0:
            return


class FolderObjects:
    """Objects as files below a folder of a network file system; `PatientObjects` documents the methods.

    A file is first written under a temporary name. `write` then renames the file. `create` makes a hard link
    of the final name, which fails if the name exists. Both are atomic on NFS without locks.

    Methods raise UserError if the store refuses, UnavailableError if it can't be reached. All may be retried:
    a repeated request has no second effect, even if only its reply was lost.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    @property
    def quick(self) -> "FolderObjects":
        """The same objects: a file system sets its own time-outs."""
        return self

    def create(self, key: str, content: bytes) -> bool:
        """Create an object; False if the key exists with other content."""
        with self._errors(), self._new(key, content) as new:
            try:
                os.link(new, self._file(key))
            except FileExistsError:
                # If the server made the link, but its reply was lost, the file has two names. Or this is the
                # retry of such a request.
                with suppress(FileNotFoundError):
                    return new.stat().st_nlink == 2 or self._has(key, content)
                return False
            sync_folder(new.parent)
        return True

    def _has(self, key: str, content: bytes) -> bool:
        return b"".join(first_bytes(self.parts(key), len(content) + 1)) == content

    def write(self, key: str, content: bytes | Path) -> None:
        """Write or overwrite an object."""
        with self._errors(), self._new(key, content) as new:
            new.replace(self._file(key))
            with suppress(FileNotFoundError):  # deleted by another process since, with its empty folder
                sync_folder(new.parent)

    def parts(self, key: str) -> Iterator[bytes]:
        """Yield an object's content; raises FileNotFoundError. Links and pipes are no objects."""
        file = self.root / key
        with self._errors():
            if not self._is_inside(file) or not _is_regular(file):
                raise FileNotFoundError(errno.ENOENT, "is not a regular file", str(file))
            with open_file(file) as stream:
                while part := stream.read(1 << 20):
                    yield part

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix, in no order."""
        waiting = [self.root / prefix]
        while waiting:
            with self._errors(), suppress(*_GONE):
                for path in waiting.pop().iterdir():
                    with suppress(*_GONE):
                        status = path.lstat()
                        if stat.S_ISDIR(status.st_mode):
                            waiting.append(path)
                        elif stat.S_ISREG(status.st_mode) and not path.name.startswith(TEMPORARY):
                            key = path.relative_to(self.root).as_posix()
                            yield ListedObject(key, status.st_size, status.st_mtime)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects and emptied folders; skip the files of file managers and NFS (`is_stray`)."""
        with self._errors():
            for key in keys:
                file = self._file(key)
                if is_stray(file.name):
                    continue
                file.unlink(missing_ok=True)
                # Another process may fill or remove the folder at the same time; both are harmless.
                with suppress(OSError):
                    while file.parent != self.root:
                        file = file.parent
                        file.rmdir()

    def _file(self, key: str) -> Path:
        """Return an object's file; raises UserError if a link points out of the store."""
        file = self.root / key
        if not self._is_inside(file):
            raise UserError(f"{file.parent}: a link leads out of the store there; remove it")
        return file

    def _is_inside(self, file: Path) -> bool:
        folder = file.parent.relative_to(self.root)
        return os.path.realpath(file.parent) == os.path.normpath(os.path.realpath(self.root) / folder)

    @contextmanager
    def _new(self, key: str, content: bytes | Path) -> Iterator[Path]:
        """Yield a temporary file with the content beside the object, synced to disk; delete it in the end."""
        folder = self._file(key).parent
        new = folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has removed the empty folder
                new.touch(exist_ok=False)
                break
        try:
            if isinstance(content, Path):
                shutil.copyfile(content, new)
            else:
                new.write_bytes(content)
            sync_file(new)
            yield new
        finally:
            new.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the file system's errors into UserErrors of one line, except FileNotFoundError."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            kind = UnavailableError if error.errno in _PASSING else UserError
            raise kind(f"{self.root}: the shared store's folder: {error.strerror or error}") from error


def _is_regular(file: Path) -> bool:
    with suppress(*_GONE):
        return stat.S_ISREG(file.lstat().st_mode)
    return False
