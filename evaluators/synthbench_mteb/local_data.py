"""Data of tasks in local folders: a hash of their content, and a name by it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def folder_hash(folder: Path) -> str:
    """Return a SHA-256 of all files below a folder, by name and content; hidden ones are left out."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{name.as_posix()}\n{content}\n".encode())
    return digest.hexdigest()


@contextmanager
def named_by_content(folder: Path) -> Iterator[Path]:
    """Yield a link to a folder whose name has the hash of its content, for as long as it is read.

    The library `datasets` keeps what it has read by the folder's name, and with some layouts by nothing else:
    it would give another folder of that name, or the same one with other files, the data of the first.
    """
    with TemporaryDirectory() as place:
        link = Path(place) / f"{folder.name}-{folder_hash(folder)[:16]}"
        link.symlink_to(folder.resolve(), target_is_directory=True)
        yield link
