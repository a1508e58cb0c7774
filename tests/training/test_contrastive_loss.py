import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import contrastive_processes
import pytest
import torch
from contrastive_processes import BATCH, CHUNK_SIZES, gradients
from torch import Tensor

from synthbench.data.records import RecordKind
from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.losses import CachedContrastiveLoss, ContrastiveLoss
from synthbench.training.objectives import contrastive
from synthbench.training.teaching import TrainingRecords

Vectors = Sequence[Sequence[float]]
ANCHORS = [[1.0, 0.0], [0.6, 0.8], [-2.0, 1.0]]
POSITIVES = [[3.0, 1.0], [0.0, 5.0], [-1.0, 0.2]]
NEGATIVES = [[1.0, 1.0], [0.5, -0.5], [-1.0, 2.0]]
TEMPERATURE = 0.25


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / (math.hypot(*first) * math.hypot(*second))


def by_hand(anchors: Vectors, positives: Vectors, negatives: Vectors, weight: float) -> float:
    """The paper's formula, the hard negative of the anchor itself weighed by `weight`."""
    losses = []
    for row, anchor in enumerate(anchors):
        attraction = math.exp(cosine(anchor, positives[row]) / TEMPERATURE)
        total = sum(math.exp(cosine(anchor, other) / TEMPERATURE) for other in positives)
        for other_row, other in enumerate(negatives):
            own = weight if other_row == row else 1.0
            total += own * math.exp(cosine(anchor, other) / TEMPERATURE)
        losses.append(-math.log(attraction / total))
    return sum(losses) / len(losses)


def largest_difference(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> float:
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)


@pytest.fixture
def model(bert: Path) -> torch.nn.Module:
    """A BERT without dropout."""
    return build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.3])
@pytest.mark.parametrize("negatives", [NEGATIVES, []], ids=["triplets", "pairs"])
def test_the_loss_equals_that_of_the_paper(model: torch.nn.Module, negatives: Vectors, weight: float) -> None:
    columns = [torch.tensor(column) for column in (ANCHORS, POSITIVES, negatives) if column]
    expected = by_hand(ANCHORS, POSITIVES, negatives, weight)
    plain = ContrastiveLoss(model, TEMPERATURE, math.log(weight))
    assert plain.compute_loss_from_embeddings(columns, None).item() == pytest.approx(expected, abs=1e-6)
    cached = CachedContrastiveLoss(model, TEMPERATURE, math.log(weight), chunk_size=2)
    chunks = [list(column.split(2)) for column in columns]
    assert cached.calculate_loss(chunks).item() == pytest.approx(expected, abs=1e-6)


def test_without_a_weight_the_loss_equals_that_of_sentence_transformers(model: torch.nn.Module) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    columns = [torch.tensor(column) for column in (ANCHORS, POSITIVES, NEGATIVES)]
    stock = MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE)
    ours = ContrastiveLoss(model, TEMPERATURE)
    expected = stock.compute_loss_from_embeddings(columns, None).item()
    assert ours.compute_loss_from_embeddings(columns, None).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 100])
def test_cached_gradients_are_equal_to_ordinary_ones(bert: Path, chunk_size: int) -> None:
    plain, cached = gradients(bert, None), gradients(bert, chunk_size)
    assert max(float(value.abs().max()) for value in plain.values()) > 0.01
    assert largest_difference(plain, cached) < 1e-5


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_a_sentence_is_its_own_positive_under_other_dropout(bert: Path, chunk_size: int | None) -> None:
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").train()
    once = contrastive(RecordKind.SENTENCE, 0.05, chunk_size=chunk_size).loss(model)
    losses: dict[str, float] = {}
    for name, times in {"once": 1, "twice": 2}.items():
        torch.manual_seed(0)
        features = [model.preprocess(BATCH[0]) for _ in range(times)]
        losses[name] = once(features, None).item()
    assert losses["once"] == losses["twice"]
    model.eval()
    assert abs(losses["once"] - once([model.preprocess(BATCH[0])], None).item()) > 1e-4


@pytest.mark.experiments
def test_two_processes_together_have_the_gradients_of_the_whole_batch(bert: Path, tmp_path: Path) -> None:
    command = [sys.executable, contrastive_processes.__file__, str(bert), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [subprocess.Popen([*command, str(rank), "2"], env=environment) for rank in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    expected = gradients(bert, None)
    for name in (f"{rank} {chunk_size}.pt" for rank in range(2) for chunk_size in CHUNK_SIZES):
        assert largest_difference(expected, torch.load(tmp_path / name)) < 1e-5


def test_a_batch_with_two_temperatures_has_the_loss_worked_out_by_hand(model: torch.nn.Module) -> None:
    """Cosines are 1 with the own positive and 0 with the other: log(1 + exp(-1 / temperature)) a row."""
    unit, rows = torch.eye(2), torch.arange(2)
    records = TrainingRecords(torch.tensor([1, 1]), torch.tensor([1.0, 0.5]))
    expected = pytest.approx((0.313262 + 0.126928) / 2, abs=1e-5)
    plain = ContrastiveLoss(model, 0.05, records=records)
    assert plain.compute_loss_from_embeddings([unit, unit], rows).item() == expected
    cached = CachedContrastiveLoss(model, 0.05, 0.0, chunk_size=1, records=records)
    assert cached.calculate_loss([list(unit.split(1)), list(unit.split(1))], rows).item() == expected


MORE_NEGATIVES = [[0.2, 2.0], [9.0, 9.0], [1.0, -3.0]]
"""The second record has no such negative: what is there must not matter."""


@pytest.mark.parametrize("weight", [1.0, 2.0])
@pytest.mark.parametrize("second", [math.nan, 0.5], ids=["one temperature", "two temperatures"])
def test_the_loss_includes_all_negatives_and_ignores_missing_ones(
    model: torch.nn.Module, weight: float, second: float
) -> None:
    """`second` is the temperature of the second record's loss; NaN is the loss's own."""
    expected = 0.0
    for row, anchor in enumerate(ANCHORS):
        temperature = second if row == 1 and not math.isnan(second) else TEMPERATURE
        attraction = math.exp(cosine(anchor, POSITIVES[row]) / temperature)
        total = sum(math.exp(cosine(anchor, other) / temperature) for other in POSITIVES)
        for column in (NEGATIVES, MORE_NEGATIVES):
            for other_row, other in enumerate(column):
                if column is MORE_NEGATIVES and other_row == 1:
                    continue
                own = weight if other_row == row else 1.0
                total += own * math.exp(cosine(anchor, other) / temperature)
        expected -= math.log(attraction / total) / len(ANCHORS)
    columns = [torch.tensor(column) for column in (ANCHORS, POSITIVES, NEGATIVES, MORE_NEGATIVES)]
    # The batch has three of four records, in another order.
    records = TrainingRecords(
        torch.tensor([1, 2, 9, 2]), torch.tensor([second, TEMPERATURE, 7.0, math.nan], dtype=torch.float32)
    )
    rows = torch.tensor([3, 0, 1])
    plain = ContrastiveLoss(model, TEMPERATURE, math.log(weight), records)
    assert plain.compute_loss_from_embeddings(columns, rows).item() == pytest.approx(expected, abs=1e-6)
    cached = CachedContrastiveLoss(model, TEMPERATURE, math.log(weight), 2, records)
    chunks = [list(column.split(2)) for column in columns]
    assert cached.calculate_loss(chunks, rows).item() == pytest.approx(expected, abs=1e-6)
