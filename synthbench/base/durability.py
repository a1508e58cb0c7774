"""Crash-safe files: content is synced to the disk before the file gets its name."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError

SYNC_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)
"""Errors of `fsync` on file systems that can't sync a folder, such as some network file systems."""
PASSING = frozenset(
    {
        *(errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT),
        *(errno.ENOTCONN, errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    }
)
"""Errors of a read that may succeed later: a file server is away, or this machine lacks memory or handles.
"""
CHECKSUM = "checksum"
"""The last key of a sealed file (JSON with a checksum); its value is the checksum of all other keys."""
MOST_BYTES = 64_000_000
"""Size limit of a sealed file, in bytes."""


class NotNowError(UserError):
    """A file can't be read now; a later read may succeed."""


def not_now(file: Path, error: OSError) -> NotNowError:
    """Return the error for a file that can't be read now."""
    return NotNowError(f"{file}: can't be read now: {error.strerror}; run the same command again later")


class DamagedFileError(Exception):
    """A sealed file is unreadable, too large, or has no checksum or a wrong one.

    The message does not name the file.
    """


def is_stray(name: str) -> bool:
    """Return whether a file has a name that file managers or network file systems use: .DS_Store, .nfs..."""
    return name == ".DS_Store" or name.startswith((".nfs", "._"))


def open_file(file: Path) -> BufferedReader:
    """Open a regular file for reading; raise OSError for a pipe, socket or device without waiting for it."""
    if not stat.S_ISREG(file.stat().st_mode):  # opening a device may change it
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    stream = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    return stream


def file_hash(file: Path) -> str:
    """Return the SHA-256 of a file's bytes; raises OSError as `open_file` does."""
    with open_file(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_file(file: Path) -> None:
    """Wait until a file's content is on the disk."""
    _sync(file)


def sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on the disk; call it after a file was created, renamed or removed."""
    _sync(folder)


def sync_tree(folder: Path) -> None:
    """Wait until all files and folders below a folder are on the disk, with their names."""
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write a file in one step: no reader sees it half written, and no crash leaves it half written."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        sync_file(temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


def write_sealed(file: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON mapping with a checksum of its content, atomically."""
    write_atomically(file, seal(value))


def seal(value: Mapping[str, Any]) -> str:
    """Return a JSON mapping as text, with a checksum of its content."""
    return json.dumps({**value, CHECKSUM: _checksum(value)}, indent=1) + "\n"


def read_sealed(
    file: Path, *, is_of_earlier_version: Callable[[dict[str, Any]], bool] = lambda _: False
) -> dict[str, Any]:
    """Return the mapping that `write_sealed` wrote.

    `is_of_earlier_version` returns True for content written before checksums existed; other content without a
    checksum counts as damaged. Raises FileNotFoundError, DamagedFileError, or UserError if the file can't be
    read now.
    """
    return unseal(sealed_bytes(file), is_of_earlier_version=is_of_earlier_version)


def sealed_bytes(file: Path) -> bytes:
    """Return at most the first MOST_BYTES + 1 bytes of a sealed file; raises as `read_sealed` does."""
    try:
        with open_file(file) as stream:
            return stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in PASSING:
            raise not_now(file, error) from error
        raise DamagedFileError("is unreadable") from error


def unseal(
    content: bytes, *, is_of_earlier_version: Callable[[dict[str, Any]], bool] = lambda _: False
) -> dict[str, Any]:
    """Return the mapping in the bytes of a sealed file; raises DamagedFileError."""
    if len(content) > MOST_BYTES:
        raise DamagedFileError("is too large")
    try:
        value: dict[str, Any] = json.loads(content)
        written = _checksum({key: each for key, each in value.items() if key != CHECKSUM})
    except (ValueError, RecursionError, AttributeError) as error:
        raise DamagedFileError("is unreadable") from error
    if not value:
        raise DamagedFileError("is unreadable")
    if list(value)[-1] == CHECKSUM:
        if value.pop(CHECKSUM) != written:
            raise DamagedFileError("does not match its checksum")
    elif not is_of_earlier_version(value):
        raise DamagedFileError("has no checksum")
    return value


def _checksum(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
