"""New folders that are written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.data.exchange import check_target, replacing


@contextmanager
def new_folder(target: Path, *, force: bool | None = None) -> Iterator[Path]:
    """Yield an empty folder beside `target`, which takes its name when all went well.

    With `force` it replaces an earlier export. Raises UserError if `target` exists without it or is no
    export, or if it can't be written; nothing is then left behind. `force` None: there is no such option.
    """
    check_new_folder(target, force=force)
    with replacing(target, force=bool(force)) as temporary:
        temporary.mkdir()
        yield temporary


def check_new_folder(target: Path, *, force: bool | None = None) -> None:
    """Raise UserError as `new_folder` does, before any work."""
    if target.exists() and not force:
        instead = "name a new folder" + ("" if force is None else ", or give --force to replace an export")
        raise UserError(f"--to {target}: exists already, and is never overwritten; {instead}")
    check_target(target, force=bool(force))
