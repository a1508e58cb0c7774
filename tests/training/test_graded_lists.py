"""Rankings as training data: the columns that list-wise losses get, their values, and refusals."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experiment_files import ExperimentFile
from pydantic import ValidationError
from toy_training import context_in
from wording import refused, worded

from synthbench.data.conversions import convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Ranking, RecordKind, ScoredPair, Triplet
from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.library_losses import LibraryLoss
from synthbench.training.objectives import training_table

GRADES = (1 / 3, 1.0, 0.0, 2 / 3)
DOCUMENTS = ("fish1 ship2", "fish0 fish1", "star3 song4", "fish0 ship1")


def rankings(*grades: Sequence[float], **fields: Any) -> SyntheticDataset:
    return SyntheticDataset.create(
        RecordKind.RANKING,
        [
            Ranking(
                query=f"fish{row} bird{row}", candidates=DOCUMENTS[: len(each)], grades=tuple(each), **fields
            )
            for row, each in enumerate(grades)
        ],
    )


def loss(**fields: Any) -> LibraryLoss:
    return LibraryLoss.model_validate(fields)


def softmax(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def found_and_similarities(
    bert: Path, folder: Path, data: SyntheticDataset, **fields: Any
) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the library's loss, and each text's similarity and label, shape (records, texts)."""
    context, named = context_in(folder), loss(**fields)
    objective = named.objective(context)
    table = named.labelled(training_table([data], objective), context)
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()
    columns = [table[name].to_pylist() for name in table.column_names if name != "label"]
    labels = torch.tensor(table["label"].to_pylist())
    with torch.no_grad():
        found = objective.loss(model)([model.preprocess(texts) for texts in columns], labels).item()
    first, *others = (model.encode(texts).astype("float64") for texts in columns)
    if fields.get("similarity") == "cosine":
        first, *others = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (first, *others))
    return (
        found,
        np.stack([(first * each).sum(1) for each in others], axis=1),
        labels.numpy().astype("float64"),
    )


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_kl_divergence_is_that_of_the_softmaxes_of_grades_and_similarities(
    bert: Path, tmp_path: Path, similarity: str
) -> None:
    data = rankings(GRADES, (0.0, 0.0, 1.0, 1 / 3))
    fields = {"similarity": similarity, "temperature": 0.5, "label_temperature": 1 / 3}
    found, similarities, labels = found_and_similarities(bert, tmp_path, data, name="kl-divergence", **fields)
    divergences = []
    for scores, grades in zip(similarities, labels, strict=True):
        wanted, have = softmax(3 * grades), softmax(scores / 0.5)
        divergences.append(float((wanted * np.log(wanted / have)).sum()))
    # The library multiplies by the temperature's square.
    assert found == pytest.approx(0.25 * sum(divergences) / 2, abs=1e-6)


def test_margins_of_grades_are_those_of_the_best_candidate_to_each_other(bert: Path, tmp_path: Path) -> None:
    fields = {"name": "margin-mse", "learns_from": "ranking", "similarity": "cosine"}
    found, similarities, labels = found_and_similarities(bert, tmp_path, rankings(GRADES), **fields)
    assert labels.tolist() == [pytest.approx([1.0, 2 / 3, 1 / 3, 0.0])]
    errors = [
        (similarities[0, 0] - similarities[0, other] - (1 - grade)) ** 2
        for other, grade in ((1, 2 / 3), (2, 1 / 3), (3, 0.0))
    ]
    assert found == pytest.approx(sum(errors) / 3, abs=1e-6)


def test_kl_divergence_learns_a_teachers_scores_of_triplets(bert: Path, tmp_path: Path) -> None:
    one = Triplet(
        anchor="fish0", positive=DOCUMENTS[1], negative=DOCUMENTS[0], further_negatives=DOCUMENTS[2:3],
        scores=(4.0, 1.0, -2.0),
    )  # fmt: skip
    data = SyntheticDataset.create(RecordKind.TRIPLET, [one])
    fields = {"name": "kl-divergence", "learns_from": "triplet"}
    found, similarities, labels = found_and_similarities(bert, tmp_path, data, **fields)
    assert labels.tolist() == [[4.0, 1.0, -2.0]]
    wanted, have = softmax(labels[0]), softmax(similarities[0])
    assert found == pytest.approx(float((wanted * np.log(wanted / have)).sum()), abs=1e-5)


def test_a_ranking_gives_a_column_for_each_candidate_from_the_highest_grade_to_the_lowest(
    tmp_path: Path,
) -> None:
    objective = loss(name="kl-divergence").objective(context_in(tmp_path))
    held_out = rankings((1.0, 0.0, 0.0), split="dev")
    table = training_table([rankings((0.5, 0.5, 1.0)), held_out, rankings((1.0, 0.5, 0.0))], objective)
    assert table.column_names == ["query", "candidate1", "candidate2", "candidate3", "label"]
    first, second = table.to_pylist()
    # Equal grades keep their order.
    assert [first[f"candidate{place}"] for place in (1, 2, 3)] == [DOCUMENTS[2], *DOCUMENTS[:2]]
    assert (first["label"], second["label"]) == ([1.0, 0.5, 0.5], [1.0, 0.5, 0.0])
    assert second["candidate1"] == DOCUMENTS[0]


@pytest.mark.parametrize("name", ["kl-divergence", "margin-mse"])
def test_graded_lists_train_an_encoder_and_a_weight_repeats_them(
    bert: Path, tmp_path: Path, name: str
) -> None:
    of_loss = {"name": name, "learns_from": "ranking", "similarity": "cosine"}
    settings = {"base": {"model": str(bert)}, "max_steps": 3, "batch_size": 2, "loss": of_loss}
    context = replace(context_in(tmp_path), weights=(2.0,))
    summary = BiEncoder.model_validate(settings).train([rankings(GRADES, GRADES, GRADES)], context)
    assert (summary.num_steps, summary.num_records) == (3, 6)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            rankings((1.0, 0.0), (1.0, 0.5, 0.0)),
            "the same number of candidates, at least 2; these have 2 to 3",
        ),
        (rankings((1.0,)), "these have 1"),
        (rankings((1.0, 0.0), further_queries=("ship1",)), "some have `further_queries`"),
    ],
)
def test_rankings_that_no_loss_takes_are_refused(tmp_path: Path, data: SyntheticDataset, words: str) -> None:
    with refused(words):
        training_table([data], loss(name="kl-divergence").objective(context_in(tmp_path)))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "multiple-negatives", "learns_from": "ranking"}, "can't learn from rankings"),
        ({"name": "cosent", "learns_from": "ranking"}, "learns from scored_pair records"),
        (
            {"name": "distillation", "learns_from": "ranking", "teacher": {"model": "a/b"}},
            "learns from sentence records",
        ),
        ({"name": "margin-mse", "learns_from": "ranking", "teacher": {"model": "a/b"}}, "takes no `teacher`"),
        ({"name": "kl-divergence", "teacher": {"model": "a/b"}}, "takes no `teacher`"),
        ({"name": "margin-mse", "label_temperature": 1.0}, "only kl-divergence does"),
        ({"name": "margin-mse", "temperature": 1.0}, "takes no `temperature`"),
        ({"name": "cosine", "similarity": "cosine"}, "those that do: margin-mse, kl-divergence"),
    ],
)
def test_a_loss_refuses_what_it_can_not_use(fields: dict[str, Any], words: str) -> None:
    with refused(words, kind=ValidationError):
        loss(**fields)


@pytest.mark.parametrize("kind", [RecordKind.PAIR, RecordKind.TRIPLET])
def test_data_without_grades_are_refused_with_losses_that_fit(kind: RecordKind) -> None:
    worded(loss(name="kl-divergence").obstacle(kind), "loss kl-divergence", "multiple-negatives")


def test_a_loss_on_triplets_says_how_it_takes_rankings() -> None:
    worded(loss(name="margin-mse").obstacle(RecordKind.RANKING), "set `learns_from: ranking`")
    assert loss(name="margin-mse", teacher={"model": "a/b"}).obstacle(RecordKind.RANKING) == ""
    assert loss(name="margin-mse", learns_from="ranking").obstacle(RecordKind.RANKING) == ""


def test_triplets_without_a_teachers_scores_are_refused() -> None:
    worded(loss(name="kl-divergence", learns_from="triplet").if_unscored(), "{missing}", "score-triplets")
    assert loss(name="kl-divergence").if_unscored() == ""


def test_rankings_without_a_best_candidate_are_refused_with_the_grades_that_triplets_need() -> None:
    with refused("positives of score >= 0.9 joined with hard negatives of score <= 0.1"):
        convert(rankings((0.5, 0.2)), RecordKind.TRIPLET)


def test_the_best_and_the_worst_candidates_of_a_ranking_become_triplets_and_pairs() -> None:
    data = rankings((1.0, 2 / 3, 1 / 3, 0.0), (2 / 3, 1 / 3, 0.0, 1.0))
    made = convert(data, RecordKind.TRIPLET)
    one, other = (each for each in made if isinstance(each, Triplet))
    assert (one.anchor, one.positive, one.negative) == ("fish0 bird0", DOCUMENTS[0], DOCUMENTS[3])
    assert (other.anchor, other.positive, other.negative) == ("fish1 bird1", DOCUMENTS[3], DOCUMENTS[2])
    assert made.manifest.dropped == {"to triplet: between the thresholds": 4}
    assert "lost: that a query is one item of a test" in made.manifest.notes[0]
    pairs = convert(data, RecordKind.PAIR, high=0.6)
    assert [(each.anchor, each.positive) for each in pairs if isinstance(each, Pair)] == [
        ("fish0 bird0", DOCUMENTS[0]), ("fish0 bird0", DOCUMENTS[1]),
        ("fish1 bird1", DOCUMENTS[0]), ("fish1 bird1", DOCUMENTS[3]),
    ]  # fmt: skip
    scored = convert(data, RecordKind.SCORED_PAIR)
    assert [each.score for each in scored if isinstance(each, ScoredPair)][:4] == pytest.approx(
        [1, 2 / 3, 1 / 3, 0]
    )
    assert math.isclose(sum(each.score for each in scored if isinstance(each, ScoredPair)), 4.0)


def test_a_step_that_can_not_take_lists_has_the_only_line(tmp_path: Path) -> None:
    experiment = ExperimentFile(tmp_path)
    experiment.change("trainer: fake", "trainer: bi-encoder\n    loss: {name: kl-divergence}")
    experiment.change("    strength: 0.5\n", "").change("kind: scored_pair}", "kind: ranking}")
    step = "{step: mine-negatives, miner: bm25}"
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, prepare: [{step}]}}\n")
    (fault,) = (fault for fault in experiment.faults() if "data.gold" in fault)
    worded([fault], "data.gold.prepare.0", "mine-negatives", "ranking")
