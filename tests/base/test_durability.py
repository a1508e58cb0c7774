"""Files are synced to the disk before they are renamed."""

import errno
import os
from pathlib import Path

import pytest
from disks import Disk
from wording import worded

from synthbench.base.durability import sync_folder, sync_tree, write_atomically


def test_an_atomic_write_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write_atomically(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "half \ud800")
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_an_atomic_write_is_synced_before_its_rename(tmp_path: Path, disk: Disk) -> None:
    write_atomically(tmp_path / "x.json", "new")
    assert disk.faults() == []


def test_the_watch_detects_a_rename_of_an_unsynced_file(tmp_path: Path, disk: Disk) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("x")
    (tmp_path / "a").rename(tmp_path / "b")
    assert len(disk.faults()) == 2
    sync_tree(tmp_path)
    worded(disk.faults(), "renamed")


def test_unsyncable_folders_are_accepted_but_a_broken_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, is_fault in ((errno.EINVAL, False), (errno.EIO, True)):

        def fail(_: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        if is_fault:
            with pytest.raises(OSError, match="Input/output error"):
                sync_folder(tmp_path)
        else:
            sync_folder(tmp_path)
