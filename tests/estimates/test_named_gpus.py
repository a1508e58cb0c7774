"""Estimates for a named GPU: hours, dollars and gigabytes, without having one."""

import dataclasses

import pytest
from wording import refused

from synthbench.estimates.figures import DATA_SHEETS, OF_A_GPU, REACHED, Device, arithmetic, named_gpu
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, reading, shape_of_base
from synthbench.plugins.loading import component

ROUND = Device("round", memory_gb=10, terabytes=1.0, fp32=10.0, tf32=20.0, bf16=40.0)


def seconds(work: Work) -> float:
    """Return the seconds of evaluating, without those that each stage and call takes."""
    return (arithmetic("evaluate", work, ROUND) or 0.0) - 0.15 - 2e-5 * work.calls


def test_seconds_are_operations_divided_by_half_the_precisions_rate() -> None:
    found = [seconds(Work("m", 1e13, 1, precision)) for precision in ("fp32", "tf32", "bf16", "fp16")]
    assert found == pytest.approx([2.0, 1.0, 0.5, 0.5])


def test_each_decoding_step_reads_the_weights_and_all_caches() -> None:
    work = Work("m", 0.0, 1, "bf16", weights=1e9, kept=8e9, read=90e9)
    assert seconds(work) == pytest.approx(90e9 / 1e12 / REACHED)
    assert seconds(work.share(0.5)) == pytest.approx(45e9 / 1e12 / REACHED)


def test_fixed_times_are_added_and_unknown_times_stay_unknown() -> None:
    work = Work("m", 1e13, 100, texts=10_000)
    assert arithmetic("train", work, ROUND) == pytest.approx(1.0 + 4.0 + 0.02 * 100 + 1.4 + 2.0)
    assert arithmetic("train", work.share(0.5), ROUND) == pytest.approx(1.0 + 4.0 + 0.02 * 50 + 0.7 + 1.0)
    on_a_cpu = dataclasses.replace(ROUND, name="CPU, 1 thread")
    assert arithmetic("train", work, on_a_cpu) == pytest.approx(1.0 + 0.02 * 100 + 2.0)
    assert arithmetic("train", Work("m", None, 100), ROUND) is None


def test_a_trainings_precision_changes_its_time() -> None:
    settings = {"base": {"model": "roberta-base"}, "epochs": 1, "batch_size": 32}
    fp32, bf16 = (
        component("trainers", "bi-encoder").model_validate({**settings, "precision": precision}).work(1000, 0)
        for precision in ("fp32", "bf16")
    )
    assert (fp32.precision, bf16.precision) == ("fp32", "bf16")
    assert dataclasses.replace(bf16, precision="fp32") == fp32
    assert seconds(fp32) == pytest.approx(4 * seconds(bf16))


@pytest.mark.parametrize(
    ("precision", "steps", "batch", "measured"),
    [
        ("fp32", 50, 512, 29.4),
        ("tf32", 50, 512, 16.5),
        ("bf16", 20, 512, 6.2),
        ("fp32", 40, 64, 9.0),
        ("tf32", 40, 64, 6.9),
        ("bf16", 40, 64, 7.7),
    ],
)
def test_a_training_takes_about_what_an_h100_took(
    precision: str, steps: int, batch: int, measured: float
) -> None:
    """Seconds of docs/gpu.md, SimCSE of a BERT-base; without loading and saving for batches of 512."""
    settings = {"base": {"model": "bert-base-uncased"}, "precision": precision, "batch_size": batch}
    work = component("trainers", "simcse").model_validate({**settings, "max_steps": steps}).work(None, None)
    found = (arithmetic("train", work, DATA_SHEETS["h100"]) or 0.0) - (OF_A_GPU if batch == 512 else 0.0)
    assert found == pytest.approx(measured, rel=0.15)


def test_an_unknown_gpu_is_refused_with_the_known_names() -> None:
    assert named_gpu("H200") is DATA_SHEETS["h200"]
    assert DATA_SHEETS["h200"].memory_gb == 141
    for gpu in DATA_SHEETS.values():
        assert gpu.fp32 <= gpu.tf32 <= gpu.bf16
    with refused("--gpu h300", "h200", "a100-40gb"):
        named_gpu("h300")


def test_a_larger_base_takes_longer_on_the_same_gpu() -> None:
    base, large = (reading(Pretrained(model=name), 1000) for name in ("roberta-base", "roberta-large"))
    shapes = [shape_of_base(Pretrained(model=name)) for name in ("roberta-base", "roberta-large")]
    ratio = shapes[1].layer_parameters / shapes[0].layer_parameters  # type: ignore[union-attr]
    assert seconds(large) / seconds(base) == pytest.approx(ratio)
