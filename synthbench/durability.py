"""Files that survive a crash of the machine: content is on the disk before anybody finds it by name."""

import errno
import hashlib
import os
from pathlib import Path

NOT_OFFERED = (errno.EINVAL, errno.ENOTSUP)
"""What a file system answers that can't sync a folder: some network ones."""


def file_hash(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_file(file: Path) -> None:
    """Wait until a file's content is on the disk."""
    _sync(file)


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are on the disk: after a file was made, renamed or removed."""
    _sync(folder)


def sync_tree(folder: Path) -> None:
    """Wait until all that is below a folder is on the disk, with its names."""
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that no reader, and no crash, sees half of it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        sync_file(temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_OFFERED:
            raise
    finally:
        os.close(descriptor)
