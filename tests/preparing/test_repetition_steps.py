"""drop-identical and drop-duplicates: what counts as the same, to the letter and nearly."""

from collections.abc import Sequence
from typing import Any

import pytest
from applying import apply_steps, drawn_by, named
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import PROPERTY

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, Record, RecordKind, ScoredPair, Triplet
from synthbench.plugins.contracts import Step
from synthbench.preparing.drops import DropDuplicates, DropIdentical

VARIANTS = st.sampled_from(["a b", "A b", "a b.", " a b . ", "A B...", "c", "C.", "d e"])
PAIRS = st.lists(st.tuples(VARIANTS, VARIANTS, st.sampled_from(["0", "0.5", "1"])), max_size=12)


def made(rows: Sequence[tuple[str, str, str]]) -> SyntheticDataset:
    records = [
        ScoredPair(id=str(number), sentence1=first, sentence2=second, score=float(label), label=label)
        for number, (first, second, label) in enumerate(rows)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def kept(data: SyntheticDataset, step: Step) -> list[str]:
    return [record.id for record in apply_steps(data, [step])]


WRITINGS = made(
    [("a b", "a b", "1"), ("a b", "A b", "1"), ("a b", " a b. ", "1"), ("a b", "a b !", "1"), ("a", "b", "0")]
)


def test_normalised_comparison_ignores_case_full_stops_and_spaces() -> None:
    assert kept(WRITINGS, DropIdentical()) == ["1", "2", "3", "4"]
    assert kept(WRITINGS, DropIdentical(normalised=True)) == ["3", "4"]


@pytest.mark.parametrize("is_normalised", [False, True])
def test_both_duplicate_counts_are_reported_whatever_is_dropped(is_normalised: bool) -> None:
    result = apply_steps(WRITINGS, [DropIdentical(normalised=is_normalised)])
    assert "; 1 identical to the letter, 2 more but for case, and full stops" in result.manifest.notes[0]
    assert result.manifest.dropped == {"drop-identical": 3 if is_normalised else 1}


def test_near_duplicates_are_counted_and_dropped_on_request() -> None:
    data = made([("a", "b", "1"), ("A", "b.", "0"), ("a", "b", "0"), ("b", "a", "1")])
    result = apply_steps(data, [DropDuplicates()])
    assert "; 1 duplicates to the letter, 1 more but for case" in result.manifest.notes[0]
    assert kept(data, DropDuplicates(normalised=True)) == ["0", "3"]
    assert kept(data, DropDuplicates(normalised=True, unordered=True)) == ["0"]


def test_same_label_drops_only_equal_triples() -> None:
    data = made([("a", "b", "1"), ("a", "b", "0.5"), ("a", "b", "1")])
    assert kept(data, DropDuplicates()) == ["0"]
    assert kept(data, DropDuplicates(same_label=True)) == ["0", "1"]


def of_kind(kind: RecordKind, records: Sequence[Record]) -> SyntheticDataset:
    return SyntheticDataset.create(kind, records)


def test_same_label_keeps_rankings_with_other_grades_and_triplets_with_other_scores() -> None:
    rankings = [
        Ranking(id=str(number), query="q", candidates=("a", "b"), grades=grades)
        for number, grades in enumerate([(1, 0), (0, 1), (1, 0)])
    ]
    triplets = [
        Triplet(id=str(number), anchor="a", positive="b", negative="c", scores=scores)
        for number, scores in enumerate([(1, 2), (5, 2), (5, 2)])
    ]
    for data in (of_kind(RecordKind.RANKING, rankings), of_kind(RecordKind.TRIPLET, triplets)):
        assert kept(data, DropDuplicates()) == ["0"]
        assert kept(data, DropDuplicates(same_label=True)) == ["0", "1"]


@pytest.mark.parametrize("same_label", [False, True])
def test_equal_sentences_in_other_columns_are_no_duplicates(same_label: bool) -> None:
    rankings = [
        Ranking(id="0", query="q", further_queries=("a",), candidates=("b",), grades=(1,)),
        Ranking(id="1", query="q", candidates=("a", "b"), grades=(1, 0)),
    ]
    assert kept(of_kind(RecordKind.RANKING, rankings), DropDuplicates(same_label=same_label)) == ["0", "1"]


@pytest.mark.parametrize("step", [DropIdentical(), DropDuplicates()])
def test_an_option_that_is_off_does_not_change_the_identity(step: Step) -> None:
    unordered = {"unordered": False} if isinstance(step, DropDuplicates) else {}
    known = named(step)
    assert known.identity() == {"step": known.name, "version": 1, **unordered}
    assert named(step.model_copy(update={"normalised": True})).identity()["normalised"] is True


@PROPERTY
@given(PAIRS, st.booleans(), st.randoms(use_true_random=False))
def test_drop_identical_does_not_depend_on_the_order(rows: Any, is_normalised: bool, shuffler: Any) -> None:
    data = made(rows)
    shuffled = list(data)
    shuffler.shuffle(shuffled)
    step = DropIdentical(normalised=is_normalised)
    assert set(drawn_by(step, data.with_records(shuffled))) == set(kept(data, step))


@PROPERTY
@given(PAIRS, st.booleans(), st.booleans())
def test_dropped_and_remaining_records_add_up(rows: Any, is_normalised: bool, has_label: bool) -> None:
    data = made(rows)
    steps = [
        DropDuplicates(normalised=is_normalised, same_label=has_label),
        DropIdentical(normalised=is_normalised),
    ]
    result = apply_steps(data, steps)
    assert sum(result.manifest.dropped.values()) + len(result) == len(data)
    assert [record.id for record in apply_steps(result, steps)] == [record.id for record in result]
