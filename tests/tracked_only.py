"""Tests read files that git keeps, and folders of their own: results of runs in the clone decide no test.

A test that opens or lists an ignored path of the clone fails, in its own process; what its child processes
read, `make test-used` finds: it runs all tests in a clone in which the commands of the README were run.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[1])
_OWN = {".git", ".venv", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache"}
"""Files of test tools at the root of the clone."""
_EVENTS = {"open", "os.listdir", "os.scandir"}
_read: set[str] = set()
_kept: set[str] = set()


def ignored(paths: Iterable[str]) -> list[str]:
    """Return those of the clone's paths (from its root) which git ignores, but for what tools keep there."""
    asked = [path for path in paths if not _is_own(Path(path).parts)]
    if not asked:
        return []
    command = ["git", "check-ignore", "--stdin", "-z"]
    answer = subprocess.run(
        command, cwd=ROOT, input="\0".join(asked), capture_output=True, text=True, check=False
    )
    return sorted(filter(None, answer.stdout.split("\0")))


def _is_own(parts: Sequence[str]) -> bool:
    return parts[0] in _OWN or parts[0].startswith(".venv") or "__pycache__" in parts


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _EVENTS or not arguments or not isinstance(arguments[0], str | os.PathLike):
        return
    path = os.path.abspath(os.fspath(arguments[0]))  # noqa: PTH100 - no look at the disk, which would be an event
    if isinstance(path, str) and path.startswith(ROOT + os.sep) and path not in _kept:
        _read.add(path)


sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def only_tracked_files_are_read() -> Iterator[None]:
    """Fail a test that read an ignored path of the clone, or whose imports and fixtures did."""
    yield
    paths = {*_read}
    _read.clear()
    found = ignored(os.path.relpath(path, ROOT) for path in paths)
    if not found:
        _kept.update(paths)
    assert not found, f"git ignores these, so they are not there in a fresh clone: {found}"
