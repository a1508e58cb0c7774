"""`synthbench doctor --gpu`, tried on a CPU at tiny sizes; tests/gpu runs where there is a GPU."""

import pytest
from typer.testing import CliRunner

from synthbench.cli.diagnosis import Level
from synthbench.cli.gpu_diagnosis import Sizes, check_gpu, data_sheet, paced
from synthbench.cli.main import app

TINY = Sizes(writer=(1, 32, 2), encoder=(1, 32, 2), inputs=2, steps=1, rows=64)


def test_without_a_gpu_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synthbench.cli.diagnosis.diagnose", lambda home: iter(()))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = CliRunner().invoke(app, ["doctor", "--gpu"])
    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        "problem GPU: torch sees none",
        "        -> run this on the machine with the GPU",
        "problems: 1, notes: 0",
    ]


def test_each_part_is_measured_through_the_code_of_a_run() -> None:
    found = list(check_gpu("cpu", TINY))
    assert [each.subject for each in found if each.level is Level.OK] == [
        "memory",
        "products",
        "products",
        "generation",
        "training",
        "training",
    ]
    assert [each.text for each in found if each.level is Level.NOTE] == [
        "tf32: the device cpu can't compute in tf32; take fp32"
    ]
    (written,) = (each for each in found if each.subject == "generation")
    assert written.text.startswith("bf16, 1 layers of 32: ")
    assert "attention follows masks" in written.text


def test_a_part_that_fails_is_a_problem_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def generation(*_: object) -> None:
        raise RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr("synthbench.cli.gpu_diagnosis.generation", generation)
    found = list(check_gpu("cpu", TINY))
    (failed,) = (each for each in found if each.level is Level.PROBLEM)
    assert (failed.subject, failed.text) == ("generation", "CUDA error: out of memory")
    assert found[-1].subject == "training"


@pytest.mark.parametrize(
    ("product", "known"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10", "a10"),
        ("Tesla T4", None),
    ],
)
def test_products_are_known_by_their_driver_names(product: str, known: str | None) -> None:
    found = data_sheet(product)
    assert (found.name if found else None) == known


def test_work_that_takes_far_longer_than_planned_is_a_note() -> None:
    assert paced("training", "text", 2.9, 2.0).level is Level.OK
    assert paced("training", "text", 3.1, 2.0).level is Level.NOTE
    assert paced("training", "text", 3.1, None).text == "text; 3.1 s"
