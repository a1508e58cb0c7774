"""Cross-encoders on graded lists: each loss's value by its formula, a training, and what is refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experiment_files import ExperimentFile
from pydantic import ValidationError
from toy_training import TOPICS, context_in
from wording import refused, worded

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, RecordKind
from synthbench.models.artifact import load
from synthbench.models.building import build_cross_encoder
from synthbench.models.interfaces import PairScorer
from synthbench.models.pretrained import Pretrained
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.list_losses import CLASSES, ListLoss
from synthbench.training.objectives import training_table

Floats = np.ndarray[Any, np.dtype[np.float64]]


def lists(*grades: Sequence[float], **fields: Any) -> SyntheticDataset:
    """Return a query of the first topic with candidates that have the grade's share of its words."""
    records = [
        Ranking(
            query=" ".join(TOPICS[row % 5][:3]),
            candidates=tuple(
                " ".join([*TOPICS[row % 5][: round(3 * grade)], *TOPICS[(row + place + 1) % 5][:3]][:3])
                + f" {TOPICS[place][5]}"
                for place, grade in enumerate(each)
            ),
            grades=tuple(each),
            **fields,
        )
        for row, each in enumerate(grades)
    ]
    return SyntheticDataset.create(RecordKind.RANKING, records)


def log_softmax(scores: Floats) -> Floats:
    return np.asarray(scores - scores.max() - np.log(np.exp(scores - scores.max()).sum()))


def list_net(scores: Floats, grades: Floats) -> float:
    return float(-(np.exp(log_softmax(grades)) * log_softmax(scores)).sum())


def of_order(scores: Floats, weights: Floats) -> float:
    """Return the weighted -log-likelihood of the scores' order, by Plackett and Luce's model."""
    parts = [-log_softmax(scores[place:])[0] for place in range(len(scores))]
    return float((weights * np.array(parts)).sum())


def by_places(number: int) -> Floats:
    weights = 2.0 ** np.arange(number - 1, -1, -1) - 1
    return np.asarray(weights / weights.sum())


def adr_mse(scores: Floats, grades: Floats) -> float:
    """Return the discounted squared errors of approximate ranks, summed; equal grades share their rank."""
    total = 0.0
    for row, own in enumerate(scores):
        rank = 1 + sum(grades > grades[row]) + (sum(grades == grades[row]) - 1) / 2
        near = 1 + sum(1 / (1 + np.exp(own - other)) for place, other in enumerate(scores) if place != row)
        total += (rank - near) ** 2 / np.log2(rank + 1)
    return float(total)


def of_pairs(scores: Floats, grades: Floats, *, is_weighted: bool) -> list[float]:
    """Return the logistic loss in bits of each pair of unequal grades; weights are those of NDCG-Loss2++."""
    order = np.argsort(-scores)
    scores, grades = scores[order], grades[order]
    number = len(scores)
    discounts = 1 / np.log2(1 + np.arange(1, number + 1))
    gains = (2**grades - 1) / ((2 ** np.sort(grades)[::-1] - 1) * discounts).sum()
    found = []
    for better in range(number):
        for worse in range(number):
            if grades[better] <= grades[worse]:
                continue
            apart = abs(better - worse)
            tight = abs(discounts[apart - 1] - discounts[apart])
            coarse = abs(discounts[better] - discounts[worse])
            weight = (10 * tight + coarse) * abs(gains[better] - gains[worse]) if is_weighted else 1
            found.append(weight * np.log2(1 + np.exp(scores[worse] - scores[better])))
    return found


def mean(of_list: Callable[[Floats, Floats], float]) -> Callable[[list[Floats], list[Floats]], float]:
    return lambda scores, grades: float(
        np.mean([of_list(*each) for each in zip(scores, grades, strict=True)])
    )


def by_pairs(*, is_weighted: bool) -> Callable[[list[Floats], list[Floats]], float]:
    return lambda scores, grades: float(
        np.mean(
            [
                value
                for each in zip(scores, grades, strict=True)
                for value in of_pairs(*each, is_weighted=is_weighted)
            ]
        )
    )


EXPECTED: dict[str, Callable[[list[Floats], list[Floats]], float]] = {
    "lambda": by_pairs(is_weighted=True),
    "rank-net": by_pairs(is_weighted=False),
    "list-net": mean(list_net),
    "list-mle": mean(lambda scores, _: of_order(scores, np.ones(len(scores)))),
    "p-list-mle": mean(lambda scores, _: of_order(scores, by_places(len(scores)))),
    "adr-mse": lambda scores, grades: (
        sum(map(adr_mse, scores, grades)) / sum(map(len, scores))  # the library's mean is over candidates
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_losss_value_is_that_of_its_formula(bert: Path, name: Any) -> None:
    objective = ListLoss(name=name).objective()
    table = training_table([lists((1 / 3, 1.0, 0.0, 2 / 3), (0.0, 0.5, 0.0))], objective)
    model: Any = build_cross_encoder(Pretrained(model=str(bert)), 1, "cpu").eval()
    with torch.no_grad():
        # A fresh model's scores are nearly equal; unequal ones tell formulas apart.
        draw = torch.Generator().manual_seed(1)
        for weights in model.parameters():
            weights.normal_(std=0.5, generator=draw)
    model.double()
    queries, candidates, labels = (table[column].to_pylist() for column in table.column_names)
    with torch.no_grad():
        grades = [torch.tensor(each).double() for each in labels]
        loss = objective.loss(model)([queries, candidates], grades).item()
    scores = [
        model.predict([(query, text) for text in texts], activation_fn=torch.nn.Identity()).astype("float64")
        for query, texts in zip(queries, candidates, strict=True)
    ]
    assert min(np.ptp(each) for each in scores) > 0.01
    assert loss == pytest.approx(EXPECTED[name](scores, [np.array(each) for each in labels]), abs=1e-6)


def test_lists_of_any_length_come_from_the_highest_grade_to_the_lowest() -> None:
    data = lists((0.0, 1.0, 0.5, 1.0), (0.0, 1.0))
    table = training_table([data], ListLoss(name="lambda").objective())
    assert table.column_names == ["query", "candidates", "label"]
    first, second = table.to_pylist()
    of_first, of_second = (each.candidates for each in data if isinstance(each, Ranking))
    # Equal grades keep their order.
    assert first["candidates"] == [of_first[row] for row in (1, 3, 2, 0)]
    assert (first["label"], second["label"]) == ([1.0, 1.0, 0.5, 0.0], [1.0, 0.0])
    assert second["candidates"] == [of_second[1], of_second[0]]


@pytest.mark.parametrize("name", ["lambda", "list-net"])
def test_a_cross_encoder_learns_the_order_of_grades(bert: Path, tmp_path: Path, name: str) -> None:
    data = lists(*[(0.0, 1.0, 1 / 3, 2 / 3), (1 / 3, 0.0, 1.0)] * 5)
    settings = {"base": {"model": str(bert)}, "max_steps": 60, "batch_size": 5, "learning_rate": 5e-3}
    trainer = CrossEncoder.model_validate({**settings, "loss": {"name": name}})
    context = replace(context_in(tmp_path), weights=(2.0,))
    summary = trainer.train([data], context)
    assert (summary.num_steps, summary.num_records) == (60, 20)
    model = load(context.output, context.runtime)
    assert isinstance(model, PairScorer)
    for one in data:
        assert isinstance(one, Ranking)
        scores = model.score([(one.query, text) for text in one.candidates])
        assert scores[one.grades.index(1.0)] > scores[one.grades.index(0.0)]


def test_a_cross_encoder_says_its_loss_and_what_a_list_costs() -> None:
    plain = CrossEncoder.model_validate({"base": {"model": "a/b"}})
    listed = CrossEncoder.model_validate({"base": {"model": "a/b"}, "loss": {"name": "rank-net"}})
    assert (plain.losses, listed.losses) == (("BinaryCrossEntropyLoss",), ("RankNetLoss",))
    assert (plain.sentences_per_record, listed.sentences_per_record) == (2, 8)
    assert plain.obstacle(RecordKind.RANKING) == listed.obstacle(RecordKind.RANKING) == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": {"name": "listnet"}}, "'lambda', 'list-net'"),
        ({"loss": {"name": "list-net", "temperature": 1.0}}, "temperature"),
        ({"loss": {"name": "list-net"}, "both_orders": True}, "both_orders needs scored pairs"),
    ],
)
def test_settings_that_do_not_fit_a_list_are_refused(settings: dict[str, Any], words: str) -> None:
    with refused(words, kind=ValidationError):
        CrossEncoder.model_validate({"base": {"model": "a/b"}, **settings})


def test_pairs_with_a_loss_on_lists_are_refused_in_one_line(tmp_path: Path) -> None:
    experiment = ExperimentFile(tmp_path)
    experiment.change("trainer: fake", "trainer: cross-encoder\n    loss: {name: list-net}")
    experiment.change("    strength: 0.5\n", "")
    # Whether the method `fake` of the other part is known depends on what other tests have imported.
    faults = [fault for fault in experiment.faults() if "data.gold: loss list-net" in fault]
    worded(faults, "data.gold", "loss list-net", "ranking", "graded lists")


def test_lists_of_one_candidate_are_refused() -> None:
    with refused("every query needs at least 2 candidates; these have 1 to 2"):
        training_table([lists((1.0,), (1.0, 0.0))], ListLoss(name="lambda").objective())
