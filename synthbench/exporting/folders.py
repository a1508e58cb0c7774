"""New folders that are written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synthbench.data.exchange import replacing
from synthbench.errors import UserError


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target`, which takes its name when all went well.

    Raises UserError if `target` exists, or can't be written; nothing is then left behind.
    """
    if target.exists():
        raise UserError(f"--to {target}: exists already, and is never overwritten; name a new folder")
    with replacing(target) as temporary:
        temporary.mkdir()
        yield temporary
