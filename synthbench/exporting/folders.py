"""New folders that are written completely or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.data.exchange import check_target, replacing


@contextmanager
def new_folder(target: Path, *, force: bool | None = None) -> Iterator[Path]:
    """Yield an empty folder, renamed to `target` on success.

    `force` True replaces an earlier export; None means that the command has no option --force.
    Raises UserError if `target` exists, has no parent folder or can't be written. With `force`, `target` may
    be an empty folder or one that synthbench wrote. After any error, nothing is left behind.
    """
    check_new_folder(target, force=force)
    with replacing(target, force=bool(force)) as temporary:
        temporary.mkdir()
        yield temporary


def check_new_folder(target: Path, *, force: bool | None = None) -> None:
    """Raise UserError as `new_folder` does, before any work; tries no writing."""
    if target.exists() and not force:
        instead = "name a new folder" + ("" if force is None else ", or give --force to replace an export")
        raise UserError(f"--to {target}: exists already, and is never overwritten; {instead}")
    if target.is_file():
        raise UserError(f"--to {target}: is a file; name a new folder")
    check_target(target, force=bool(force))
