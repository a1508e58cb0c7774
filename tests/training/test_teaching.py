"""A teacher in the contrastive loss: soft labels and masks over false negatives, by the formulas."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from pydantic import ValidationError
from test_contrastive_loss import ANCHORS, NEGATIVES, POSITIVES, TEMPERATURE, cosine
from wording import refused

from synthbench.api import RecordKind, Runtime, SyntheticDataset, Triplet
from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.losses import CachedContrastiveLoss, ContrastiveLoss
from synthbench.training.objectives import SOFT_LABELS_UNSCORED, Objective, training_table
from synthbench.training.settings import OF_RECORD
from synthbench.training.simcse import SimCSE
from synthbench.training.teaching import (
    SCORES,
    FalseNegativeMask,
    FalseNegatives,
    TrainingRecords,
    training_records,
)

SCORES_OF_POSITIVES = [0.9, 0.25, 1.0]
COLUMNS = [torch.tensor(column) for column in (ANCHORS, POSITIVES, NEGATIVES)]
# The teacher's vectors: the third positive means the first anchor, the first negative its own anchor.
OF_TEACHER = [
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.01]],
    [[0.0, -1.0], [0.6, 0.8], [-1.0, 0.0]],
    [[-0.6, 0.8], [0.99, 0.1], [0.0, 1.0]],
]
RUNTIME = Runtime(device="cpu", threads=1)


def logits(row: int) -> list[float]:
    """Return the scaled cosines of an anchor with all positives, then all negatives."""
    return [cosine(ANCHORS[row], other) / TEMPERATURE for other in (*POSITIVES, *NEGATIVES)]


def by_hand(labels: Sequence[Sequence[float]], left: Sequence[Sequence[bool]]) -> float:
    """The mean over anchors of the sum of -label * log(share) over the candidates that are left."""
    losses = []
    for row in range(len(ANCHORS)):
        found = logits(row)
        total = sum(math.exp(each) for each, is_left in zip(found, left[row], strict=True) if is_left)
        terms = zip(labels[row], found, left[row], strict=True)
        losses.append(
            -sum(label * (each - math.log(total)) for label, each, is_left in terms if is_left and label)
        )
    return sum(losses) / len(losses)


def labels_of(soft: str, left: Sequence[Sequence[bool]]) -> list[list[float]]:
    found = []
    for row, score in enumerate(SCORES_OF_POSITIVES):
        rest = (1 - score) / max(1, sum(left[row]) - 1) if soft == "all" else 0.0
        found.append([score if column == row else rest for column in range(6)])
    return found


ALL = [[True] * 6] * 3


ROWS = torch.arange(3)


def taught(
    soft: Any = None,
    above: float | None = None,
    scores: Sequence[float] = SCORES_OF_POSITIVES,
    *,
    as_zero: bool = False,
    is_binary: bool = False,
) -> TrainingRecords:
    """Return three records with one negative each, the loss's temperature, and the teacher's scores."""
    vectors = torch.nn.functional.normalize(torch.tensor(OF_TEACHER).reshape(9, 2), dim=1)
    return TrainingRecords(
        torch.ones(3, dtype=torch.int64),
        torch.full((3,), math.nan),
        torch.tensor(scores) if soft else None,
        soft == "all",
        None if above is None else FalseNegativeMask(above, vectors, torch.arange(9).reshape(3, 3), as_zero),
        is_binary,
    )


@pytest.fixture
def model(bert: Path) -> torch.nn.Module:
    return build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()


def losses_of(model: Any, records: TrainingRecords) -> list[float]:
    """Return the loss, and the same with cached gradients."""
    plain = ContrastiveLoss(model, TEMPERATURE, records=records)
    cached = CachedContrastiveLoss(model, TEMPERATURE, 0.0, 2, records)
    chunks = [list(column.split(2)) for column in COLUMNS]
    return [
        plain.compute_loss_from_embeddings(COLUMNS, ROWS).item(),
        cached.calculate_loss(chunks, ROWS).item(),
    ]


@pytest.mark.parametrize("soft", ["positive", "all"])
def test_soft_labels_equal_the_teachers_scores(model: Any, soft: str) -> None:
    expected = by_hand(labels_of(soft, ALL), ALL)
    assert losses_of(model, taught(soft)) == pytest.approx([expected] * 2, abs=1e-6)


def test_scores_of_one_give_the_plain_loss(model: Any) -> None:
    plain = ContrastiveLoss(model, TEMPERATURE).compute_loss_from_embeddings(COLUMNS, None)
    for soft in ("positive", "all"):
        found = ContrastiveLoss(model, TEMPERATURE, records=taught(soft, scores=[1.0] * 3))
        assert found.compute_loss_from_embeddings(COLUMNS, ROWS).item() == pytest.approx(plain.item())


def masked(above: float) -> list[list[bool]]:
    """Return which candidates are left: the own positive, and whatever the teacher holds for different."""
    left = []
    for row, (anchor, _, _) in enumerate(OF_TEACHER):
        candidates = [record[column] for column in (1, 2) for record in OF_TEACHER]
        found = [cosine(anchor, each) <= above for each in candidates]
        found[row] = True
        left.append(found)
    return left


@pytest.mark.parametrize("above", [0.95, 0.5, -0.9])
def test_the_loss_leaves_out_false_negatives_but_not_the_own_positive(model: Any, above: float) -> None:
    left = masked(above)
    hard = [[float(column == row) for column in range(6)] for row in range(3)]
    expected = by_hand(hard, left)
    assert losses_of(model, taught(above=above)) == pytest.approx([expected] * 2, abs=1e-6)
    soft = by_hand(labels_of("all", left), left)
    assert losses_of(model, taught("all", above)) == pytest.approx([soft] * 2, abs=1e-6)


@pytest.mark.parametrize("above", [None, 0.95, -0.9])
def test_the_binary_loss_with_zeroed_candidates_equals_that_of_multicsrs_code(
    model: Any, above: float | None
) -> None:
    """Softmax of logits times 1 or 0; the mean of -log p of the positive and -log(1 - p) of all others."""
    left = ALL if above is None else masked(above)
    terms = []
    for row in range(3):
        found = [each if is_left else 0.0 for each, is_left in zip(logits(row), left[row], strict=True)]
        shares = [math.exp(each) / sum(map(math.exp, found)) for each in found]
        terms += [-math.log(share if column == row else 1 - share) for column, share in enumerate(shares)]
    expected = sum(terms) / len(terms)
    records = taught(above=above, as_zero=True, is_binary=True)
    assert losses_of(model, records) == pytest.approx([expected] * 2, abs=1e-6)


def test_the_binary_loss_is_finite_where_a_share_rounds_to_one(model: Any) -> None:
    columns = [torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])]
    columns[0].requires_grad_()
    records = TrainingRecords(torch.ones(2, dtype=torch.int64), torch.full((2,), 0.001), is_binary=True)
    loss = ContrastiveLoss(model, 0.001, records=records).compute_loss_from_embeddings(columns, ROWS[:2])
    loss.backward()
    assert math.isfinite(loss.item())
    assert columns[0].grad is not None and columns[0].grad.isfinite().all()


def test_absent_negatives_are_no_candidates_of_the_binary_loss(model: Any) -> None:
    """The first record has no hard negative of its own; whatever fills its row changes nothing."""
    found = []
    for filler in (5.0, -5.0):
        negatives = torch.tensor([[filler, 1.0], [0.5, -0.5], [-1.0, 2.0]])
        records = TrainingRecords(torch.tensor([0, 1, 1]), torch.full((3,), math.nan), is_binary=True)
        loss = ContrastiveLoss(model, TEMPERATURE, records=records)
        found.append(loss.compute_loss_from_embeddings([*COLUMNS[:2], negatives], ROWS).item())
    assert found[0] == found[1]


def test_at_the_papers_threshold_two_false_negatives_are_found() -> None:
    assert masked(0.95) == [
        # The third record's positive, and the record's own hard negative.
        [True, True, False, False, True, True],
        [True] * 6,
        [True] * 6,
    ]


def triplets(*scores: tuple[float, ...]) -> SyntheticDataset:
    records = [
        Triplet(anchor=f"a man plays {row}", positive=f"he plays {row}", negative="a dog", scores=each)
        for row, each in enumerate(scores)
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, records)


def table_of(*scores: tuple[float, ...]) -> pa.Table:
    objective = Objective(RecordKind.TRIPLET, None, True, SOFT_LABELS_UNSCORED)  # type: ignore[arg-type]
    return training_table([triplets(*scores)], objective)


def test_records_have_scores_and_rows_and_equal_texts_have_one_vector(bert: Path) -> None:
    section = FalseNegatives(teacher=Pretrained(model=str(bert)), above=0.5)
    table, records = training_records(table_of((0.5, 0.25), (1.0, 0.0)), "positive", section, RUNTIME)
    assert table.column_names == ["anchor", "positive", "negative", OF_RECORD]
    assert table[OF_RECORD].to_pylist() == [0, 1]
    assert table.schema.field(OF_RECORD).type == pa.int64()  # exact for any number of records
    assert records is not None and records.scores is not None and records.mask is not None
    assert records.scores.tolist() == [0.5, 1.0]
    assert records.mask.texts.tolist() == [[0, 2, 4], [1, 3, 4]]
    assert records.mask.vectors.norm(dim=1).tolist() == pytest.approx([1.0] * 5)


def test_without_a_teacher_the_training_table_is_unchanged() -> None:
    plain = table_of((0.5, 0.25)).drop_columns([SCORES])
    assert training_records(plain, None, None, RUNTIME) == (plain, None)


def test_triplets_without_scores_are_refused() -> None:
    with refused("soft_labels", "1 of 2 triplets", "score-triplets"):
        table_of((0.5, 0.25), ())


def test_scores_outside_0_to_1_are_refused_as_soft_labels() -> None:
    table = table_of((7.5, -2.0))
    assert SCORES in table.column_names
    with refused("soft_labels", "7.5", "[0, 1]"):
        training_records(table, "all", None, RUNTIME)


def test_soft_labels_need_triplets() -> None:
    with refused("soft_labels", "triplet", "pair", kind=ValidationError):
        SimCSE.model_validate({"base": {"model": "m"}, "learns_from": "pair", "soft_labels": "all"})


def test_the_binary_loss_takes_no_soft_labels() -> None:
    with refused("loss: binary", "soft_labels", kind=ValidationError):
        SimCSE.model_validate({"base": {"model": "m"}, "loss": "binary", "soft_labels": "all"})


def test_a_training_without_a_teacher_keeps_its_identity() -> None:
    settings = SimCSE.model_validate({"base": {"model": "m"}}).model_dump(mode="json")
    assert {"soft_labels", "false_negatives", "loss"}.isdisjoint(settings)
    masked_out = FalseNegatives(teacher=Pretrained(model="t")).model_dump(mode="json")
    assert "as_zero" not in masked_out
