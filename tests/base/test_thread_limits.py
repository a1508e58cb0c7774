"""How many cores a process may use: what torch's threads are set to."""

import os
from pathlib import Path

import pytest

from synthbench.base import processes
from synthbench.base.processes import threads_each, usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with eight cores; the file for a container's quota, which is missing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(processes, "QUOTA", tmp_path / "cpu.max")
    return tmp_path / "cpu.max"


def test_all_available_cores_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5})
    assert usable_cores() == 2


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("200000 100000", 2), ("250000 100000", 2), ("50000 100000", 1), ("x", 8)],
)
def test_a_containers_quota_limits_the_cores(eight_cores: Path, quota: str, cores: int) -> None:
    eight_cores.write_text(f"{quota}\n", encoding="ascii")

    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("limit", "of_one", "of_four"),
    [("3", 3, 2), ("4,2", 4, 2), ("1", 1, 1), ("64", 8, 2), ("0", 1, 1), ("many", 8, 2), ("", 8, 2)],
)
def test_processes_share_the_cores_within_the_users_limit_on_each(
    monkeypatch: pytest.MonkeyPatch, limit: str, of_one: int, of_four: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", limit)

    assert (threads_each(1), threads_each(4), threads_each(16)) == (of_one, of_four, 1)


def test_a_system_without_affinity_counts_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)

    assert usable_cores() == 6
