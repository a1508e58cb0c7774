"""Local data of tasks: the hash of a folder's content, and a link with the hash in its name."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def folder_hash(folder: Path) -> str:
    """Return a SHA-256 of all files below a folder, by name and content; hidden files are left out."""
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
    """Yield a temporary link to a folder, named by the hash of its content.

    The library `datasets` caches data in some layouts by the folder's name alone. It would return cached data
    for another folder of that name, or after the folder's files have changed.
    """
    with TemporaryDirectory() as place:
        link = Path(place) / f"{folder.name}-{folder_hash(folder)[:16]}"
        link.symlink_to(folder.resolve(), target_is_directory=True)
        yield link
