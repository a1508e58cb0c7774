from pathlib import Path
from typing import Any

import pytest
from experiment_files import ExperimentFile
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from wording import refused

from synthbench.data.records import RecordKind
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.settings import TrainingSettings
from synthbench.training.simcse import SimCSE

BASE = {"model": "org/name"}


def test_the_defaults_are_those_of_the_paper() -> None:
    bi_encoder, cross_encoder = BiEncoder(base=BASE), CrossEncoder(base=BASE)
    assert (bi_encoder.batch_size, bi_encoder.learning_rate) == (16, 2e-5)
    assert (bi_encoder.scheduler, bi_encoder.warmup_ratio) == ("constant", 0.0)
    assert (cross_encoder.batch_size, cross_encoder.learning_rate) == (16, 1e-5)


def test_one_epoch_is_the_default_and_does_not_change_the_identity() -> None:
    assert BiEncoder(base=BASE) == BiEncoder(base=BASE, epochs=1, max_steps=None)


def test_a_training_without_least_steps_keeps_its_identity() -> None:
    assert "least_steps" not in BiEncoder(base=BASE).model_dump(mode="json")


@pytest.mark.parametrize(
    ("fields", "num_steps"),
    [
        ({}, 7),
        ({"epochs": 2}, 14),
        ({"epochs": 0.5}, 4),
        ({"epochs": 0.01}, 1),
        ({"max_steps": 3}, 3),
        ({"least_steps": 60}, 60),
        ({"epochs": 10, "least_steps": 60}, 70),
    ],
)
def test_a_hundred_records_give_the_expected_number_of_steps(fields: dict[str, Any], num_steps: int) -> None:
    assert BiEncoder(base=BASE, **fields).num_steps(100) == num_steps


@given(num_steps=st.integers(1, 10_000), evaluations=st.integers(1, 1000))
def test_evaluations_are_evenly_spread_and_the_last_is_at_the_end(num_steps: int, evaluations: int) -> None:
    steps = BiEncoder(base=BASE, evaluations=evaluations).evaluation_steps(num_steps)
    assert steps[-1] == num_steps
    assert steps[0] >= 1
    assert len(steps) == min(num_steps, evaluations)
    gaps = [later - earlier for earlier, later in zip((0, *steps), steps, strict=False)]
    assert max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize(
    ("num_steps", "steps"), [(350, (100, 200, 300, 350)), (200, (100, 200)), (100, (100,)), (7, (7,))]
)
def test_evaluations_may_have_a_fixed_interval(num_steps: int, steps: tuple[int, ...]) -> None:
    settings = BiEncoder(base=BASE, evaluations={"every": 100})
    assert settings.evaluation_steps(num_steps) == steps
    assert settings.model_dump(mode="json")["evaluations"] == {"every": 100}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"epochs": 1, "max_steps": 10}, "either epochs or max_steps"),
        ({"least_steps": 5, "max_steps": 10}, "least_steps goes with epochs"),
        ({"epochs": 0}, "greater than 0"),
        ({"max_steps": 0}, "greater than or equal to 1"),
        ({"batch_size": 0}, "greater than or equal to 1"),
        ({"batch_size": "16"}, "valid integer"),
        ({"learning_rate": float("nan")}, "finite"),
        ({"learning_rate": 2}, "less than or equal to 1"),
        ({"warmup_ratio": 1.0}, "less than 1"),
        ({"scheduler": "step"}, "'constant', 'linear' or 'cosine'"),
        ({"precision": "fp8"}, "'fp32', 'tf32', 'bf16' or 'fp16'"),
        ({"evaluations": 0}, "greater than or equal to 1"),
        ({"evaluations": {"every": 0}}, "greater than or equal to 1"),
        ({"evaluations": {"each": 100}}, "Extra inputs"),
        ({"learning_rat": 1e-5}, "Extra inputs"),
    ],
)
def test_a_wrong_value_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        BiEncoder(base=BASE, **fields)


def test_a_cross_encoder_without_a_hidden_layer_keeps_its_identity() -> None:
    assert "hidden_size" not in CrossEncoder(base=BASE).model_dump(mode="json")
    assert CrossEncoder(base=BASE, hidden_size=200).model_dump(mode="json")["hidden_size"] == 200


@pytest.mark.parametrize("trainer", [BiEncoder, CrossEncoder])
def test_both_orders_is_only_in_the_identity_if_set(
    trainer: type[TrainingSettings],
) -> None:
    assert trainer(base=BASE) == trainer(base=BASE, both_orders=False)
    assert "both_orders" not in trainer(base=BASE).model_dump(mode="json")
    assert trainer(base=BASE, both_orders=True).model_dump(mode="json")["both_orders"] is True


@pytest.mark.parametrize("field", [{"static": True}, {"pooling": "cls"}])
def test_a_cross_encoder_needs_a_base_that_reads_pairs(field: dict[str, Any]) -> None:
    with refused("pooling", kind=ValidationError):
        CrossEncoder(base={**BASE, **field})


@pytest.mark.parametrize(
    ("trainer", "fitting", "unfit"),
    [
        (BiEncoder, RecordKind.TRIPLET, RecordKind.SENTENCE),
        (CrossEncoder, RecordKind.RANKING, RecordKind.SENTENCE),
        (SimCSE, RecordKind.SCORED_PAIR, RecordKind.PAIR),
    ],
)
def test_a_trainer_says_which_records_its_default_loss_can_not_take(
    trainer: type[TrainingSettings], fitting: RecordKind, unfit: RecordKind
) -> None:
    default = trainer.model_validate({"base": {"model": "a/b"}})
    assert default.obstacle(fitting) == ""
    assert f"{unfit} records can't become" in default.obstacle(unfit)


@pytest.mark.parametrize("trainer", ["bi-encoder", "cross-encoder", "simcse"])
def test_a_file_whose_records_the_default_loss_can_not_take_is_refused(tmp_path: Path, trainer: str) -> None:
    experiment = ExperimentFile(tmp_path)
    experiment.change("trainer: fake", f"trainer: {trainer}").change("    strength: 0.5\n", "")
    experiment.change("gold: {file: gold.tsv, kind: scored_pair}", "gold: {file: gold.txt}")
    (tmp_path / "gold.txt").write_text("A dog.\n")
    assert [fault for fault in experiment.faults() if "data.gold: sentence records can't become" in fault]
