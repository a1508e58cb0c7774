"""CPU, accelerators, and drivers that do not fit."""

import warnings

import pytest
import torch
from wording import worded

from synthbench.cli.diagnosis import Level, devices


@pytest.fixture(autouse=True)
def without_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a machine that has none, whatever this one has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr("shutil.which", lambda _: None)


def test_a_machine_without_accelerators_is_fine() -> None:
    cpu, accelerator = devices()
    assert "torch computes with" in cpu.text
    assert (accelerator.level, accelerator.text) == (Level.OK, "none: models compute on the CPU")


def test_few_threads_are_noted_with_their_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    cpu, _ = devices()
    assert (cpu.level, cpu.text) == (Level.NOTE, "torch computes with 1 of 8 cores: OMP_NUM_THREADS=1")


def test_a_driver_that_does_not_fit_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_available() -> bool:
        warnings.warn("CUDA initialization: the driver is too old\nmore", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    problem = list(devices())[1]
    assert (problem.level, problem.text) == (Level.PROBLEM, "CUDA initialization: the driver is too old")


def test_a_torch_without_cuda_is_noted_where_there_is_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/nvidia-smi")
    assert "built without CUDA" in list(devices())[1].text


def test_an_accelerator_that_can_not_compute_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch, "ones", _no_kernel)
    problem = list(devices())[1]
    assert (problem.level, problem.subject) == (Level.PROBLEM, "cuda:0")
    worded(problem.text, "available")


def _no_kernel(*_: object, **__: object) -> None:
    raise RuntimeError("no kernel image is available\nfor execution")
