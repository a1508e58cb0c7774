"""What a named GPU would take: hours, dollars and gigabytes by arithmetic, without one."""

import dataclasses

import pytest
from wording import refused

from synthbench.estimates.estimator import predict
from synthbench.estimates.gpus import GPUS, REACHED, Gpu, named_gpu
from synthbench.estimates.machine import Machine
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, Writing, reading, shape_of_base
from synthbench.plugins.loading import component

ROUND = Gpu("round", memory_gb=10, terabytes=1.0, fp32=10.0, tf32=20.0, bf16=40.0)


def test_seconds_are_operations_by_half_the_rate_of_their_precision() -> None:
    seconds = {
        precision: ROUND.seconds(Work("m", 1e13, 1, precision))
        for precision in ("fp32", "tf32", "bf16", "fp16")
    }
    assert seconds == {"fp32": 2.0, "tf32": 1.0, "bf16": 0.5, "fp16": 0.5}


def test_writing_reads_the_weights_once_a_step_and_each_sequence_for_each_token() -> None:
    # 9 GB may be filled: 1 GB of weights and 8 of 1 GB each; 80 tokens are 10 steps
    writing = Writing(weights=1e9, sequence=1e9, tokens=80, most=100)
    assert writing.batch(9e9) == 8
    assert writing.bytes_read(9e9) == 10 * 1e9 + 80 * 1e9
    assert ROUND.seconds(Work("m", 0.0, 1, "bf16", writing)) == pytest.approx(90e9 / 1e12 / REACHED)


def test_a_batch_is_no_larger_than_asked_for_and_never_empty() -> None:
    writing = Writing(weights=1e9, sequence=1e6, tokens=10, most=4)
    assert writing.batch(9e9) == 4
    assert writing.batch(0.5e9) == 1


def test_a_machine_with_a_data_sheet_takes_fixed_times_too_and_unknown_stays_unknown() -> None:
    machine = Machine("round", 1, 0.0, is_measured=False, gpu=ROUND)
    assert predict("train", Work("m", 1e13, 100), machine) == pytest.approx(1.0 + 0.02 * 100 + 2.0)
    assert predict("train", Work("m", None, 100), machine) is None


def test_a_trainings_precision_counts() -> None:
    settings = {"base": {"model": "roberta-base"}, "epochs": 1, "batch_size": 32}
    fp32, bf16 = (
        component("trainers", "bi-encoder").model_validate({**settings, "precision": precision}).work(1000, 0)
        for precision in ("fp32", "bf16")
    )
    assert (fp32.precision, bf16.precision) == ("fp32", "bf16")
    assert dataclasses.replace(bf16, precision="fp32") == fp32
    assert ROUND.seconds(fp32) == pytest.approx(4 * ROUND.seconds(bf16))


def test_names_are_those_of_data_sheets_and_an_unknown_one_is_refused_with_them() -> None:
    assert named_gpu("H200") is GPUS["h200"]
    assert GPUS["h200"].memory_gb == 141
    for gpu in GPUS.values():
        assert gpu.fp32 <= gpu.tf32 <= gpu.bf16
    with refused("--gpu h300", "h200", "a100-40gb"):
        named_gpu("h300")


def test_a_larger_base_reads_longer_on_the_same_gpu() -> None:
    base, large = (reading(Pretrained(model=name), 1000) for name in ("roberta-base", "roberta-large"))
    shapes = [shape_of_base(Pretrained(model=name)) for name in ("roberta-base", "roberta-large")]
    ratio = shapes[1].layer_parameters / shapes[0].layer_parameters  # type: ignore[union-attr]
    assert ROUND.seconds(large) / ROUND.seconds(base) == pytest.approx(ratio)
