"""Folders, disk space, and the data that is found."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from huggingface_hub import constants

from synthbench.cli import diagnosis
from synthbench.cli.diagnosis import Level

Usage = namedtuple("Usage", "total used free")


def test_a_missing_home_is_fine_and_is_not_created(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    folder, _ = diagnosis.home_folder(home)
    assert (folder.level, folder.text) == (Level.OK, f"{home}; made by the first run")
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_can_not_be_written_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (problem,) = diagnosis.home_folder(tmp_path / "file" / "home")
    assert (problem.level, "is no folder" in problem.text) == (Level.PROBLEM, True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (problem,) = diagnosis.home_folder(tmp_path)
    assert "can't be written to" in problem.text
    assert "SYNTHBENCH_HOME" in problem.advice


@pytest.mark.parametrize(("free", "level"), [(2e10, Level.OK), (5e9, Level.NOTE), (5e8, Level.PROBLEM)])
def test_scarce_space_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, level: Level
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, int(free)))
    assert list(diagnosis.home_folder(tmp_path))[1].level == level


def test_the_hub_cache_and_offline_mode_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    cache, offline = diagnosis.hub()
    assert (cache.level, cache.text) == (Level.OK, str(tmp_path))
    assert (offline.level, "HF_HUB_OFFLINE" in offline.advice) == (Level.NOTE, True)


def test_the_data_folder_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    assert diagnosis.data().level == Level.NOTE
    monkeypatch.setenv("SYNTHBENCH_DATA", str(tmp_path))
    assert diagnosis.data().level == Level.OK
    monkeypatch.setenv("SYNTHBENCH_DATA", str(tmp_path / "nowhere"))
    assert diagnosis.data().level == Level.PROBLEM
