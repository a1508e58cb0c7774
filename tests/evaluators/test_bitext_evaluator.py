"""Bitext retrieval: accuracy and F1 in both directions, by hand and as mteb computes its F1."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mteb_folders import write_table
from sklearn.metrics import f1_score
from wording import refused

from synthbench.api import Pair, RecordKind, SyntheticDataset, UserError
from synthbench_bitext import Bitext

DIRECTIONS: Mapping[str, Sequence[float]] = {
    "dog": (1, 0, 0),
    "cat": (0, 1, 0),
    "cow": (0, 0, 1),
    "Hund": (0.9, 0.1, 0),
    "Köter": (0.8, 0, 0.3),
    "Katze": (0.2, 0.9, 0),
    "Kuh": (0.7, 0, 0.6),
}


class Toy:
    """An encoder with a fixed vector for each word."""

    def encode(self, sentences: Sequence[str]) -> Any:
        return np.array([DIRECTIONS[text] for text in sentences], np.float32)


def bitext(*rows: tuple[str, str]) -> SyntheticDataset:
    records = [Pair(id=first + second, anchor=first, positive=second) for first, second in rows]
    return SyntheticDataset.create(RecordKind.PAIR, records, config={"task": "de-en"})


def test_each_direction_counts_right_translations() -> None:
    # Nearest of dog, cat, cow: Hund, Katze, Kuh. Nearest of Hund, Katze, Kuh: dog, cat, dog.
    found = Bitext().evaluate(Toy(), bitext(("dog", "Hund"), ("cat", "Katze"), ("cow", "Kuh")))
    assert found.main_score == "accuracy"
    assert found.scores["accuracy/forward"] == 1
    assert found.scores["accuracy/backward"] == pytest.approx(2 / 3)
    assert found.scores["accuracy"] == pytest.approx(5 / 6)
    assert found.items["backward"] == [1, 1, 0]
    by_mteb = f1_score([0, 1, 2], [0, 1, 0], average="weighted", zero_division=0)
    assert found.scores["f1/backward"] == pytest.approx(by_mteb)
    assert found.scores["f1"] == pytest.approx((1 + by_mteb) / 2)
    assert found.num_items == 3


def test_any_of_a_texts_translations_is_right() -> None:
    found = Bitext().evaluate(Toy(), bitext(("dog", "Köter"), ("dog", "Hund"), ("cat", "Katze")))
    assert found.scores["accuracy/forward"] == found.scores["accuracy/backward"] == 1


def test_the_influence_is_the_distance_from_the_mean_accuracy() -> None:
    found = Bitext().evaluate(Toy(), bitext(("dog", "Hund"), ("cat", "Katze"), ("cow", "Kuh")))
    items = {name: np.array(column) for name, column in found.items.items()}
    assert Bitext().influence(items, found.scores) == pytest.approx([1 / 6, 1 / 6, -1 / 3])


def test_a_side_of_one_text_and_vectors_that_are_not_finite_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with refused("de-en: one distinct positive only: nothing to search", kind=UserError):
        Bitext().check_data(bitext(("dog", "Hund"), ("cat", "Hund")))
    monkeypatch.setitem(DIRECTIONS, "Hund", (np.nan, 0, 0))  # type: ignore[arg-type]
    with refused("de-en: the model gives vectors that are not finite", kind=UserError):
        Bitext().evaluate(Toy(), bitext(("dog", "Hund"), ("cat", "Katze")))


def test_the_f1_of_texts_that_occur_once_is_that_of_mteb(tmp_path: Path) -> None:
    pytest.importorskip("mteb")
    from synthbench_mteb import MTEB

    rows = [("Hund", "dog"), ("Katze", "cat"), ("Kuh", "cow")]
    first, second = map(list, zip(*rows, strict=True))
    table = tmp_path / "BornholmBitextMining" / "test.parquet"
    write_table(table, {"sentence1": first, "sentence2": second})
    evaluator = MTEB(folder=str(tmp_path))
    theirs = evaluator.evaluate(Toy(), evaluator.read_task("BornholmBitextMining"))
    ours = Bitext().evaluate(Toy(), bitext(*rows))
    assert theirs.scores["f1"] == pytest.approx(ours.scores["f1/forward"])
    assert theirs.scores["accuracy"] == pytest.approx(ours.scores["accuracy/forward"])
