"""A precision that this machine's device lacks is refused before anything is computed."""

import pytest
from small_experiment import Project

from synthbench.models import precision

LINE = 16
REFUSED = "tf32: the device cpu can't compute in tf32; take fp32"


@pytest.fixture
def in_tf32(project: Project) -> Project:
    project.change("learning_rate: 0.02\n", "learning_rate: 0.02\n    precision: tf32\n")
    return project


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_an_unsupported_precision_is_reported_in_one_line_with_file_line_and_key(
    in_tf32: Project, command: str
) -> None:
    called = in_tf32.call(command, in_tf32.file)
    assert (called.code, called.out) == (2, "")
    assert called.errors == [f"{in_tf32.file}:{LINE}: train.precision: {REFUSED}"]
    assert not called.executed


def test_all_models_of_a_row_are_checked_including_its_methods(project: Project) -> None:
    project.change("num_layers: 1}", "num_layers: 1, precision: tf32}")
    called = project.call("validate", project.file)
    assert called.code == 2
    (line,) = called.errors
    assert "data.silver.cross_encoder.base.precision" in line
    assert line.endswith(REFUSED)
    assert project.call("validate", project.file, "--variant", "gold-only").code == 0


@pytest.mark.parametrize("half", ["bf16", "fp16"])
def test_every_cpu_computes_in_half_precision(half: str, in_tf32: Project) -> None:
    assert in_tf32.call("validate", in_tf32.file, "--set", f"train.precision={half}").code == 0


def test_devices_of_other_machines_are_not_checked(in_tf32: Project) -> None:
    assert in_tf32.call("plan", in_tf32.file, "--gpu", "h200").code == 0
    assert in_tf32.call("validate", in_tf32.file, "--set", "runtime.executor=ray").code == 0


def test_cached_stages_need_no_device(in_tf32: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ("run", in_tf32.file, "--variant", "gold-only", "--seeds", "0")
    with monkeypatch.context() as with_gpu:
        with_gpu.setattr(precision, "_has_tf32", lambda device: True)
        assert in_tf32.call(*run).code == 0
    again = in_tf32.call(*run)
    assert (again.code, again.executed) == (0, [])
    assert in_tf32.call("plan", *run[1:]).code == 0
