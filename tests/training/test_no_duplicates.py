"""Every loss with negatives of the batch gets batches without duplicates; the others get all records."""

import inspect
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from toy_training import context_in, toy_pairs

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training import loop
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.library_losses import CLASSES, OF_NEGATIVES, LossName
from synthbench.training.trainers import DistinctBatches, ShuffledBatches

BASE = {"model": "sandbox/encoder"}
EXTRAS: dict[str, dict[str, Any]] = {
    "gist": {"guide": BASE},
    "cached-gist": {"guide": BASE},
    "distillation": {"teacher": BASE},
}


def settings(name: str | None, **fields: Any) -> BiEncoder:
    loss = {} if name is None else {"loss": {"name": name, **EXTRAS.get(name, {})}}
    return BiEncoder.model_validate({"base": BASE, **loss, **fields})


def test_no_duplicates_is_the_default_for_losses_as_the_library_recommends() -> None:
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    recommended = inspect.getdoc(NoDuplicatesBatchSampler.__init__) or ""
    found = {name for name, kind in CLASSES.items() if f".{kind}`" in recommended}
    assert found == set(OF_NEGATIVES)


@pytest.mark.parametrize("name", [None, *get_args(LossName)])
def test_no_duplicates_is_only_in_the_identity_of_losses_with_in_batch_negatives(name: str | None) -> None:
    dumped = settings(name).model_dump(mode="json")
    assert dumped.get("no_duplicates") is (True if name in OF_NEGATIVES else None)
    assert ("no_duplicates" in dumped) == (name in OF_NEGATIVES)
    assert BiEncoder.model_validate_json(settings(name).model_dump_json()) == settings(name)


@pytest.mark.parametrize("name", OF_NEGATIVES)
def test_no_duplicates_can_be_turned_off(name: str) -> None:
    assert settings(name, no_duplicates=False).no_duplicates is False


@pytest.mark.parametrize("name", [None, "cosent", "distillation"])
def test_a_loss_without_in_batch_negatives_refuses_no_duplicates(name: str | None) -> None:
    with pytest.raises(ValueError, match="no_duplicates"):
        settings(name, no_duplicates=True)


def test_an_experiment_file_may_list_dimensions() -> None:
    given = {"base": BASE, "loss": {"name": "multiple-negatives", "dimensions": [16, 8]}}
    trainer = BiEncoder.model_validate_json(json.dumps(given))
    assert trainer.loss is not None
    assert (trainer.loss.dimensions, trainer.no_duplicates) == ((16, 8), True)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"loss": {"name": "multiple-negatives"}}, DistinctBatches),
        ({"loss": {"name": "multiple-negatives"}, "no_duplicates": False}, ShuffledBatches),
        ({}, ShuffledBatches),
    ],
)
def test_the_training_uses_batches_without_duplicates(
    bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    kind: type[ShuffledBatches],
) -> None:
    used: list[type[ShuffledBatches]] = []

    def fit(job: loop.TrainingJob, settings: BiEncoder, context: TrainingContext) -> TrainingSummary:
        used.append(job.batches)
        return TrainingSummary()

    monkeypatch.setattr(loop, "fit", fit)
    trainer = BiEncoder.model_validate({"base": {"model": str(bert)}, **fields})
    trainer.train([toy_pairs(12)], context_in(tmp_path))
    assert used == [kind]


def test_records_left_out_of_an_epoch_are_reported(bert: Path, tmp_path: Path) -> None:
    pairs = [Pair(anchor="fish0 fish1", positive=f"ship{number % 6} star{number % 5}") for number in range(8)]
    data = SyntheticDataset.create(RecordKind.PAIR, pairs)
    fields = {"loss": {"name": "multiple-negatives"}, "batch_size": 4, "max_steps": 1}
    context = context_in(tmp_path)
    BiEncoder.model_validate({"base": {"model": str(bert)}, **fields}).train([data], context)
    (said,) = [line for line in context.progress.said if "no_duplicates" in line]  # type: ignore[attr-defined]
    assert "6 of 8 records" in said
