"""Estimates for a named GPU: hours, dollars and gigabytes, without having one."""

import dataclasses

import pytest
from wording import refused

from synthbench.estimates.figures import DATA_SHEETS, REACHED, Device, arithmetic, named_gpu
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
    assert arithmetic("train", Work("m", 1e13, 100), ROUND) == pytest.approx(1.0 + 0.02 * 100 + 2.0)
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
