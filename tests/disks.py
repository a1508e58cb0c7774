"""Disks without waits for their cache, one that tracks synced data, and functions that damage files."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_test_waits_for_the_disk() -> Iterator[None]:
    """Skip the disk's work at each sync: no test cuts the power, and `disk` says whether data are synced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


class Disk:
    """Watches renames: after a crash, a name must not lead to content that never reached the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._synced: dict[Path, tuple[int, int]] = {}
        self._unsynced_folders: dict[Path, None] = {}
        self._faults: list[str] = []
        monkeypatch.setattr("synthbench.base.durability._sync", self._sync)
        for name in ("rename", "replace"):
            monkeypatch.setattr(Path, name, self._watched(getattr(Path, name)))

    def faults(self) -> list[str]:
        """Return the files that a crash after the last step could have damaged."""
        lost = [f"{folder.name}: its new names are not synced" for folder in self._unsynced_folders]
        return [*self._faults, *lost]

    def _sync(self, path: Path) -> None:
        path = path.absolute()
        if path.is_dir():
            self._unsynced_folders.pop(path, None)
        else:
            self._synced[path] = _state(path)

    def _watched(self, original):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - a method of Path
        def renamed(source: Path, target: Path) -> Path:
            source, target = source.absolute(), Path(target).absolute()
            files = [source, *source.rglob("*")]
            for file in (each for each in files if each.is_file()):
                if self._synced.get(file) != _state(file):
                    self._faults.append(f"{file.name} was renamed to {target.name} before it was synced")
            moved: Path = original(source, target)
            for file in (each for each in files if each in self._synced):
                self._synced[target / file.relative_to(source)] = self._synced.pop(file)
            self._unsynced_folders[target.parent] = None
            return moved

        return renamed


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk, watched from now on."""
    return Disk(monkeypatch)


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def cut(file: Path) -> None:
    """Lose the second half of a file."""
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    """Lose the content of a file."""
    os.truncate(file, 0)


def flip(file: Path, at: float = 0.5) -> None:
    """Change one bit of a file somewhere in it, as bit rot does: size and time stay."""
    times = file.stat()
    content = bytearray(file.read_bytes())
    content[int(len(content) * at)] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a flipped bit": flip,
    "a cut": cut,
    "emptied": empty,
    "removed": Path.unlink,
}
