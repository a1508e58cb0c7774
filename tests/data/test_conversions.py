"""Conversions between record kinds: results, notes and errors."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import PROPERTY, record_lists
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.conversions import CONVERSIONS, convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, Pair, Record, RecordKind, ScoredPair, Sentence, Triplet

SCORED_PAIR, PAIR, TRIPLET, SENTENCE, FAILURE = (
    RecordKind.SCORED_PAIR,
    RecordKind.PAIR,
    RecordKind.TRIPLET,
    RecordKind.SENTENCE,
    RecordKind.FAILURE,
)


def scored(identity: str, first: str, second: str, score: float, split: str = "train") -> ScoredPair:
    return ScoredPair(id=identity, sentence1=first, sentence2=second, score=score, split=split)


def made(kind: RecordKind, *records: Record) -> SyntheticDataset:
    return SyntheticDataset.create(kind, records)


def triplets_of(*pairs: ScoredPair, **thresholds: float) -> list[tuple[str, ...]]:
    return [one.texts() for one in convert(made(SCORED_PAIR, *pairs), TRIPLET, **thresholds)]


def test_a_triplet_becomes_two_scored_pairs() -> None:
    triplet = Triplet(id="t", anchor="a", positive="p", negative="n", split="dev", generator="gpt2", seed=3)
    result = convert(made(TRIPLET, triplet), SCORED_PAIR)
    shared = {"source_id": "t", "split": "dev", "generator": "gpt2", "seed": 3}
    assert list(result) == [
        ScoredPair(id="t/positive", sentence1="a", sentence2="p", score=1.0, **shared),
        ScoredPair(id="t/negative", sentence1="a", sentence2="n", score=0.0, **shared),
    ]
    assert result.kind == SCORED_PAIR
    assert "nothing lost" in result.manifest.notes[0]


def test_a_pair_becomes_a_scored_pair_of_score_1() -> None:
    result = convert(made(PAIR, Pair(id="x", anchor="a", positive="p", subset="s")), SCORED_PAIR)
    expected = ScoredPair(
        id="x/scored_pair", sentence1="a", sentence2="p", score=1.0, subset="s", source_id="x"
    )
    assert list(result) == [expected]


def test_a_triplet_becomes_a_pair_and_the_loss_is_reported() -> None:
    result = convert(made(TRIPLET, Triplet(id="t", anchor="a", positive="p", negative="n")), PAIR)
    assert list(result) == [Pair(id="t/positive", anchor="a", positive="p", source_id="t")]
    assert result.manifest.notes == ["converted from triplet to pair: lost: the negatives"]


def test_sentences_are_the_distinct_texts_and_repetitions_are_counted() -> None:
    pairs = [scored("1", "a", "b", 0.5), scored("2", "b", "c", 0.5, split="dev"), scored("3", "c", "c", 0.5)]
    result = convert(made(SCORED_PAIR, *pairs), SENTENCE)
    assert list(result) == [
        Sentence(id="1/sentence1", sentence="a", source_id="1"),
        Sentence(id="1/sentence2", sentence="b", source_id="1"),
        Sentence(id="2/sentence2", sentence="c", source_id="2", split="dev"),
    ]
    assert result.manifest.dropped == {"to sentence: repeated sentence": 3}


def test_scored_pairs_become_pairs_above_the_threshold() -> None:
    data = made(
        SCORED_PAIR, scored("1", "a", "b", 0.9), scored("2", "a", "c", 0.89), scored("3", "b", "c", 1.0)
    )
    result = convert(data, PAIR)
    assert [pair.id for pair in result] == ["1/positive", "3/positive"]
    assert result.manifest.dropped == {"to pair: below the threshold": 1}
    assert len(convert(data, PAIR, high=0.5)) == 3


def test_dinos_labels_become_triplets_with_the_hardest_negatives_first() -> None:
    # Two outputs per label and two random negatives of score 0: the random ones find no partner.
    labels = {"same": 0.9, "alike": 0.5, "other": 0.1, "random": 0.0}
    pairs = [
        scored(f"{label}{n}", "x1", f"{label} {n}", score) for label, score in labels.items() for n in (1, 2)
    ]
    result = convert(made(SCORED_PAIR, *pairs), TRIPLET)
    assert list(result) == [
        Triplet(
            id=f"same{n}/other{n}",
            anchor="x1",
            positive=f"same {n}",
            negative=f"other {n}",
            source_id=f"same{n}",
        )
        for n in (1, 2)
    ]
    assert result.manifest.dropped == {
        "to triplet: between the thresholds": 2,
        "to triplet: without a partner": 2,
    }


def test_triplets_never_join_different_anchors_or_splits() -> None:
    positive, negative = scored("1", "a", "p", 1.0), scored("2", "a", "n", 0.0, split="dev")
    complete = [scored("3", "b", "p", 1.0), scored("4", "b", "n", 0.0)]
    assert triplets_of(positive, negative, *complete) == [("b", "p", "n")]


def test_thresholds_of_triplets_are_inclusive_and_settable() -> None:
    pairs = scored("1", "a", "p", 0.7), scored("2", "a", "n", 0.3)
    assert triplets_of(*pairs, high=0.7, low=0.3) == [("a", "p", "n")]
    with refused("triplet", "2", "scored_pair"):
        triplets_of(*pairs)


@PROPERTY
@given(
    st.permutations(
        [
            scored(f"{n}", f"anchor {n % 3}", f"text {n}", score)
            for n, score in enumerate([0.9, 0.1, 1.0, 0.0, 0.5, 0.9, 0.1, 0.95, 0.9, 0.05, 0.0, 0.1])
        ]
    )
)
def test_triplets_do_not_depend_on_the_order_of_the_pairs(pairs: Sequence[ScoredPair]) -> None:
    ordered = sorted(pairs, key=lambda pair: int(pair.id))
    assert list(convert(made(SCORED_PAIR, *pairs), TRIPLET)) == list(
        convert(made(SCORED_PAIR, *ordered), TRIPLET)
    )


@PROPERTY
@given(record_lists(), st.sampled_from([SCORED_PAIR, PAIR, TRIPLET, SENTENCE]))
def test_every_record_is_converted_or_counted(
    drawn: tuple[RecordKind, Sequence[Record]], target: RecordKind
) -> None:
    kind, records = drawn
    failure = Failure(id="f", reason="refused")
    data = SyntheticDataset.create(kind, records, failures=[failure], dropped={"earlier": 7})
    try:
        result = convert(data, target)
    except UserError:
        by_thresholds = kind in (SCORED_PAIR, RecordKind.RANKING) and target in (PAIR, TRIPLET)
        assert by_thresholds or target not in CONVERSIONS.get(kind, {})
        return
    assert result.kind == target
    assert list(result.failures()) == [failure]
    assert result.manifest.dropped["earlier"] == 7
    assert {record.source_id for record in result} <= set(data.column("id")) or kind == target
    assert set(result.texts) <= set(data.texts)


@pytest.mark.parametrize("kind", [SCORED_PAIR, PAIR, TRIPLET, SENTENCE])
def test_conversion_to_the_same_kind_changes_nothing(kind: RecordKind) -> None:
    empty = made(kind)
    assert convert(empty, kind) is empty


def test_an_empty_data_set_stays_empty() -> None:
    assert len(convert(made(SCORED_PAIR), TRIPLET)) == 0


@pytest.mark.parametrize(
    ("have", "want", "message"),
    [
        (SENTENCE, PAIR, "sentence records can't become pair: a sentence has no partner; let a method make"),
        (PAIR, TRIPLET, "pair records can't become triplet: a pair has no negative; let a method make"),
        (
            TRIPLET,
            FAILURE,
            "triplet records can't become failure: they can become scored_pair, pair, sentence",
        ),
    ],
)
def test_impossible_conversions_name_possible_ones(have: RecordKind, want: RecordKind, message: str) -> None:
    with pytest.raises(UserError) as raised:
        convert(made(have), want)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("high", "low"), [(0.1, 0.9), (0.5, 0.5), (1.1, 0.0), (0.9, -0.1), (float("nan"), 0.1)]
)
def test_thresholds_must_be_apart_and_within_the_scale(high: float, low: float) -> None:
    with refused("0", "1"):
        convert(made(SCORED_PAIR), TRIPLET, high=high, low=low)
