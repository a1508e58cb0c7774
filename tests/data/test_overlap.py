"""Dropping test pairs that are also gold pairs."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.data.contamination import STANDS_IN_GOLD, TestIndex, drop_pairs_in, pair_key, search
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import bare
from synthbench.data.records import RecordKind, ScoredPair, Sentence, Triplet
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import Split, TaskName


def pairs(*texts: tuple[str, str]) -> SyntheticDataset:
    records = [ScoredPair(sentence1=first, sentence2=second, score=0.5) for first, second in texts]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records, notes=["kept"], dropped={"other": 2})


def texts(data: SyntheticDataset) -> list[tuple[str, str]]:
    return [record.texts() for record in data]


@given(st.text(), st.text())
def test_both_orders_of_a_pair_have_the_same_key(first: str, second: str) -> None:
    assert pair_key(first, second) == pair_key(second, first)
    assert pair_key(first, second) == pair_key(f" {first}\n", second)


@given(st.text(), st.text(), st.text())
def test_different_pairs_have_different_keys(first: str, second: str, third: str) -> None:
    same = bare(first) == bare(third)
    assert (pair_key(first, second) == pair_key(third, second)) == same


def test_a_pair_is_dropped_in_either_order_from_any_gold_set_and_counted() -> None:
    test = pairs(("a", "b"), ("c", "d"), ("e", "f"), ("a", "d"))
    kept = drop_pairs_in(test, [pairs(("x", "y"), ("b", "a")), pairs(("e", "f "))])
    assert texts(kept) == [("c", "d"), ("a", "d")]
    assert kept.manifest.dropped == {"other": 2, STANDS_IN_GOLD: 2}
    assert kept.manifest.notes == ["kept"]
    assert kept.column("id") == [test.column("id")[1], test.column("id")[3]]


def test_zero_dropped_pairs_are_reported() -> None:
    kept = drop_pairs_in(pairs(("a", "b")), [])
    assert kept.manifest.dropped[STANDS_IN_GOLD] == 0


@pytest.mark.parametrize(
    "writing",
    [
        ("a dog runs.", "the cat sat"),
        ("A DOG RUNS", "The cat sat!"),
        (" A dog  runs\u00a0", "the cat\tsat."),
        ("A dog runs\u2026", "\uff34he cat sat"),
        ("the cat sat", "A dog runs"),
    ],
)
def test_a_pair_that_differs_only_in_case_or_punctuation_is_dropped(writing: tuple[str, str]) -> None:
    assert not len(drop_pairs_in(pairs(writing), [pairs(("A dog runs", "The cat sat"))]))


def test_the_data_checks_find_no_overlap_in_the_remaining_pairs() -> None:
    test = pairs(("A dog.", "a cat"), ("A dog?", "a mouse"), ("Re\u0301sume\u0301", "CV"))
    gold = pairs(("a dog", "A CAT"), ("r\u00e9sum\u00e9", "cv."))
    kept = drop_pairs_in(test, [gold])
    assert texts(kept) == [("A dog?", "a mouse")]
    index = TestIndex({"test": kept.text_rows()})
    assert search([list(gold.text_rows())], index).overlaps(index)[0].items_as_pairs == 0


def test_a_gold_triplet_holds_two_pairs_and_a_gold_sentence_none() -> None:
    triplets = [Triplet(anchor="a", positive="b", negative="c")]
    gold = [
        SyntheticDataset.create(RecordKind.TRIPLET, triplets),
        SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence="b")]),
    ]
    assert texts(drop_pairs_in(pairs(("b", "a"), ("c", "a"), ("b", "c")), gold)) == [("b", "c")]


@pytest.mark.parametrize(("task", "in_train", "in_either"), [("STS12", 1003, 1254), ("STS13", 597, 678)])
def test_counts_of_real_test_pairs_in_stsb(task: TaskName, in_train: int, in_either: int) -> None:
    if "SYNTHBENCH_DATA" not in os.environ:
        pytest.skip("SYNTHBENCH_DATA is not set to a folder with the SentEval data")
    roots = Roots(data=Path(os.environ["SYNTHBENCH_DATA"]))

    def load(name: TaskName, split: Split) -> SyntheticDataset:
        return TaskSource(task=name, split=split).load(roots)

    test, train, dev = load(task, "test"), load("STSb", "train"), load("STSb", "dev")
    assert drop_pairs_in(test, [train]).manifest.dropped == {STANDS_IN_GOLD: in_train}
    clean = drop_pairs_in(test, [train, dev])
    assert clean.manifest.dropped == {STANDS_IN_GOLD: in_either}
    assert len(clean) == len(test) - in_either
