"""Prepare steps: kept records, counts and errors."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from applying import apply_steps, drawn_by, step_of
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from record_strategies import PROPERTY
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.conversions import convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Record, RecordKind, ScoredPair, Sentence, Triplet
from synthbench.plugins.contracts import StepContext
from synthbench.preparing.drops import DropDuplicates, DropIdentical, Length
from synthbench.preparing.sampling import Sample, Split


def pairs(*rows: tuple[str, str, float]) -> SyntheticDataset:
    records = [
        ScoredPair(id=str(number), sentence1=first, sentence2=second, score=score)
        for number, (first, second, score) in enumerate(rows)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


@cache
def many(size: int, labels: tuple[float, ...] = (0.0, 0.5, 1.0)) -> SyntheticDataset:
    """Pairs in groups of three with the same sentence1."""
    return pairs(*((f"x{n // 3}", f"y{n}", labels[n % len(labels)]) for n in range(size)))


def ids(dataset: SyntheticDataset, split: str | None = None) -> list[str]:
    return [record.id for record in dataset if split in (None, record.split)]


def test_drop_identical_compares_sentences_exactly() -> None:
    data = pairs(("a", "a", 1.0), ("a", "A", 1.0), ("a", "a.", 1.0), ("b", "a", 0.0))
    result = apply_steps(data, [DropIdentical()])
    assert ids(result) == ["1", "2", "3"]
    assert result.manifest.dropped == {"drop-identical": 1}


def test_drop_identical_compares_all_sentences_of_a_triplet() -> None:
    records = [Triplet(anchor="a", positive="p", negative=last) for last in ("n", "a", "p")]
    data = SyntheticDataset.create(RecordKind.TRIPLET, records)
    assert [one.negative for one in apply_steps(data, [DropIdentical()])] == ["n"]


def test_drop_duplicates_keeps_the_first_whatever_its_score() -> None:
    data = pairs(("a", "b", 1.0), ("b", "a", 0.5), ("a", "b", 0.0), ("a", "c", 0.0))
    assert ids(apply_steps(data, [DropDuplicates()])) == ["0", "1", "3"]
    unordered = apply_steps(data, [DropDuplicates(unordered=True)])
    assert ids(unordered) == ["0", "3"]
    assert unordered.manifest.dropped == {"drop-duplicates": 2}


def test_length_counts_words_of_every_sentence() -> None:
    data = pairs(("one", "one two", 0.0), ("one two", "one  two\tthree", 0.0), ("a b", "a b c d", 0.0))
    assert ids(apply_steps(data, [Length(min_words=2)])) == ["1", "2"]
    assert ids(apply_steps(data, [Length(max_words=3)])) == ["0", "1"]
    assert ids(apply_steps(data, [Length(min_words=2, max_words=3)])) == ["1"]


@PROPERTY
@given(st.integers(1, 40), st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_sample_depends_only_on_ids_and_seed(size: int, seed: int, shuffler: Any) -> None:
    data = many(40)
    chosen = ids(apply_steps(data, [Sample(size=size, seed=seed)]))
    assert len(chosen) == size
    assert chosen == sorted(chosen, key=int), "the original order is kept"
    shuffled = list(data)
    shuffler.shuffle(shuffled)
    assert set(drawn_by(Sample(size=size, seed=seed), data.with_records(shuffled))) == set(chosen)


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    small, large = (set(ids(apply_steps(many(100), [Sample(size=size)]))) for size in (10, 60))
    assert small < large


def test_samples_of_different_seeds_differ_and_are_fair() -> None:
    drawn = Counter(
        identity for seed in range(400) for identity in drawn_by(Sample(size=3, seed=seed), many(12))
    )
    # Each of 12 is expected 100 times; 4 standard deviations of a binomial (400, 1/4) are 35.
    assert len(drawn) == 12
    assert all(abs(count - 100) <= 35 for count in drawn.values())


@pytest.mark.parametrize(("fraction", "size"), [(0.25, 3), (0.5, 5), (0.05, 1), (1.0, 10)])
def test_a_fraction_gives_the_nearest_whole_number_and_halves_round_up(fraction: float, size: int) -> None:
    assert len(apply_steps(many(10), [Sample(fraction=fraction)])) == size


@PROPERTY
@given(st.integers(30, 90), st.floats(0.05, 0.9), st.integers(0, 3))
def test_a_split_has_the_exact_size_and_preserves_label_shares(size: int, dev: float, seed: int) -> None:
    data = many(size)
    result = apply_steps(data, [Split(dev=dev, seed=seed)])
    chosen = [record.score for record in result if record.split == "dev"]
    assert ids(result) == ids(data)
    assert len(chosen) == int(size * dev + 0.5)
    for label, count in Counter(data.column("score")).items():
        assert abs(chosen.count(label) - count * len(chosen) / size) < 2


def test_a_split_of_continuous_scores_is_stratified_by_score() -> None:
    data = many(100, tuple(n / 100 for n in range(100)))
    chosen = sorted(record.score for record in apply_steps(data, [Split(dev=0.1)]) if record.split == "dev")
    assert [int(score * 10 + 1e-9) for score in chosen] == list(range(10))


def test_splits_of_different_seeds_differ() -> None:
    first, second = (ids(apply_steps(many(60), [Split(dev=0.2, seed=seed)]), "dev") for seed in (0, 1))
    assert first != second


def test_a_grouped_split_keeps_groups_together_and_within_its_size() -> None:
    result = apply_steps(many(60), [Split(dev=0.2, grouped_by="sentence1")])
    by_split = {
        split: {record.sentence1 for record in result if record.split == split} for split in ("train", "dev")
    }
    assert by_split["dev"].isdisjoint(by_split["train"])
    assert len(ids(result, "dev")) == 12
    assert "grouped_by sentence1" in result.manifest.notes[0]


def test_a_sample_after_a_split_of_the_same_seed_is_not_limited_to_dev_records() -> None:
    result = apply_steps(many(1000), [Split(dev=0.5), Sample(size=400)])
    # 200 expected, the standard deviation is below 8.
    assert abs(len(ids(result, "dev")) - 200) < 32


def test_steps_run_in_order_and_are_counted_and_noted() -> None:
    data = pairs(("a", "a", 1.0), ("a", "b", 1.0), ("b", "a", 1.0), ("a", "c d", 0.0))
    steps = [DropIdentical(), DropDuplicates(unordered=True), Length(max_words=1)]
    result = apply_steps(data.with_records(data, dropped={"length": 5}, notes=["generated"]), steps)
    assert result.manifest.dropped == {"drop-identical": 1, "drop-duplicates": 1, "length": 6}
    assert result.manifest.notes == [
        "generated",
        "drop-identical v1 (no options): 4 -> 3 records; 1 identical to the letter, 0 more but for case,"
        " and full stops and blanks at the ends",
        "drop-duplicates v1 (unordered True): 3 -> 2 records; 1 duplicates to the letter, 0 more but for"
        " case, and full stops and blanks at the ends",
        "length v1 (min_words none, max_words 1): 2 -> 1 records",
    ]


def test_without_steps_nothing_changes() -> None:
    data = many(3)
    unchanged = apply_steps(data, [])
    assert list(unchanged) == list(data)
    assert unchanged.manifest == data.manifest


def test_a_step_that_drops_nothing_is_counted_as_zero() -> None:
    assert apply_steps(many(3), [DropIdentical()]).manifest.dropped == {"drop-identical": 0}


def test_a_step_is_identified_by_name_version_and_settings() -> None:
    known = step_of({"step": "split", "dev": 0.1, "seed": 7})
    assert known.plugin == Split(dev=0.1, seed=7)
    assert known.identity() == {"step": "split", "dev": 0.1, "seed": 7, "grouped_by": None, "version": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": "length"}, "give min_words, max_words or both"),
        ({"step": "length", "min_words": 5, "max_words": 4}, "min_words 5 is more than max_words 4"),
        ({"step": "length", "max_words": 0}, "greater than or equal to 1"),
        ({"step": "sample"}, "give either size or fraction"),
        ({"step": "sample", "size": 1, "fraction": 0.5}, "give either size or fraction"),
        ({"step": "sample", "fraction": 1.5}, "less than or equal to 1"),
        ({"step": "sample", "size": "10"}, "valid integer"),
        ({"step": "split", "dev": 1.0}, "less than 1"),
        ({"step": "split", "dev": 0.1, "stratified": True}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        step_of(options)
    assert message in str(raised.value)


PAIR_DATA = SyntheticDataset.create(RecordKind.PAIR, [Pair(anchor="a", positive="p")])
SENTENCE_DATA = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence="s")])


@pytest.mark.parametrize(
    ("data", "step", "message"),
    [
        (
            SENTENCE_DATA,
            DropIdentical(),
            "drop-identical: is for pair, ranking, scored_pair, triplet records",
        ),
        (PAIR_DATA, DropDuplicates(unordered=True), "drop-duplicates: 'unordered' is for scored pairs only"),
        (PAIR_DATA, Sample(size=2), "sample: size 2, but there are only 1 records"),
        (PAIR_DATA, Sample(fraction=0.1), "sample: a fraction of 0.1 of 1 records keeps none"),
        (PAIR_DATA, Split(dev=0.4), "split: a dev part of 0.4 leaves train or dev empty"),
        (PAIR_DATA, Split(dev=0.9), "split: a dev part of 0.9 leaves train or dev empty"),
        (
            many(9),
            Split(dev=0.5, grouped_by="sentence"),
            "split: scored_pair records have no column 'sentence' to group by; did you mean",
        ),
    ],
)
def test_unsuitable_records_are_refused_in_one_line(data: SyntheticDataset, step: Any, message: str) -> None:
    with pytest.raises(UserError) as raised:
        apply_steps(data, [step])
    assert str(raised.value).startswith(message)


def test_a_second_split_is_refused() -> None:
    once = apply_steps(many(30), [Split(dev=0.1)])
    with refused("dev", "split"):
        apply_steps(once, [Split(dev=0.1)])


def hashes() -> tuple[str, str]:
    steps = [DropDuplicates(unordered=True), Sample(size=70), Split(dev=0.2, grouped_by="sentence1")]
    result = apply_steps(many(90), steps)
    return result.manifest.content_hash, convert(result, "triplet").manifest.content_hash


def test_results_do_not_depend_on_the_hash_seed() -> None:
    elsewhere = subprocess.run(
        [sys.executable, "-c", "from test_prepare import hashes; print(*hashes())"],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert tuple(elsewhere.stdout.split()) == hashes()


class _Shout(DropIdentical):
    """A step from elsewhere that adds records."""

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        return [*records, ScoredPair(id="new", sentence1="A", sentence2="B", score=0.0)]


def test_a_step_may_add_records() -> None:
    result = apply_steps(many(2), [_Shout()])
    assert ids(result) == ["0", "1", "new"]
    assert result.manifest.dropped == {"drop-identical": 0}
