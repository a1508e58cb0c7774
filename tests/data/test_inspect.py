"""The key figures of a data set, against figures worked out by hand or by plain Python."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import PROPERTY

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.inspect import WordCounts, describe
from synthbench.data.records import Failure, RecordKind, ScoredPair, Sentence, Triplet

WORDS = st.lists(st.sampled_from(["a", "A", "bee", "cat's", "Ü", "日本"]), min_size=1, max_size=6)
TEXTS = WORDS.map(" ".join)


def pairs(*rows: tuple[str, str, float]) -> SyntheticDataset:
    records = [ScoredPair(sentence1=first, sentence2=second, score=score) for first, second, score in rows]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def test_figures_of_a_small_data_set_are_correct_by_hand() -> None:
    found = describe(
        pairs(
            ("the cat sat", "the cat sat", 1.0),
            ("the cat sat", "The cat sat. ", 1.0),
            ("The cat sat. ", "the cat sat", 0.5),
            ("a dog", "the cat sat", 0.0),
            ("a dog", "the cat sat", 0.5),
        )
    )
    assert (found.kind, found.num_records, found.num_sentences) == (RecordKind.SCORED_PAIR, 5, 3)
    assert found.words["sentence1"] == WordCounts(minimum=2, median=3.0, mean=2.6, maximum=3)
    assert found.scores == {"0": 1, "0.5": 2, "1": 2}
    assert (found.num_identical, found.num_nearly_identical, found.share_identical) == (1, 3, 0.2)
    assert (found.num_duplicates, found.num_unordered_duplicates) == (1, 2)
    # the cat sat / the cat sat. / a dog: 6 of 8 words, 5 of 5 pairs but "the cat" twice.
    assert (found.distinct_1, found.distinct_2) == (6 / 8, 4 / 5)


def test_provenance_and_drops_come_from_records_and_manifest() -> None:
    records = [
        Sentence(sentence="x", method="m", generator="gpt2", instruction="i", split="dev", subset="news"),
        Sentence(sentence="y", method="m", label="paraphrase"),
        Sentence(sentence="z", method="n"),
    ]
    failures = [Failure(reason="refused"), Failure(reason="empty"), Failure(reason="refused")]
    data = SyntheticDataset.create(
        RecordKind.SENTENCE,
        records,
        failures=failures,
        dropped={"too long": 4},
        revisions={"gpt2": "abc"},
        tokens={"prompt": 10},
        cost_usd=0.5,
        notes=["n"],
        measured={"recall": 0.5},
    )
    found = describe(data)
    assert (found.methods, found.generators, found.instructions) == ({"m": 2, "n": 1}, {"gpt2": 1}, {"i": 1})
    assert list(found.splits.items()) == [("train", 2), ("dev", 1)]
    assert (found.subsets, found.labels) == ({"news": 1}, {"paraphrase": 1})
    assert (found.num_failures, list(found.failures.items())) == (3, [("refused", 2), ("empty", 1)])
    assert (found.dropped, found.revisions, found.tokens) == (
        {"too long": 4},
        {"gpt2": "abc"},
        {"prompt": 10},
    )
    assert (found.cost_usd, found.notes, found.content_hash) == (0.5, ["n"], data.manifest.content_hash)
    assert (found.measured, found.scores) == ({"recall": 0.5}, {})


def test_many_scores_are_counted_by_the_nearest_tenth() -> None:
    found = describe(pairs(*(("a", "b", number / 100) for number in range(101))))
    assert found.scores == {"0": 5, **{f"0.{tenth}": 10 for tenth in range(1, 10)}, "1": 6}


def test_eleven_labels_are_still_labels() -> None:
    found = describe(pairs(*(("a", "b", number / 20) for number in range(11))))
    assert list(found.scores) == [
        "0",
        "0.05",
        "0.1",
        "0.15",
        "0.2",
        "0.25",
        "0.3",
        "0.35",
        "0.4",
        "0.45",
        "0.5",
    ]


def test_a_triplet_with_any_two_equal_sentences_counts_as_identical() -> None:
    records = [Triplet(anchor="a", positive="p", negative=last) for last in ("n", "a", "p")]
    found = describe(SyntheticDataset.create(RecordKind.TRIPLET, records))
    assert (found.num_identical, found.num_duplicates, found.num_unordered_duplicates) == (2, 0, 0)


def test_further_negatives_count_as_sentences() -> None:
    records = [
        Triplet(anchor="a", positive="p", negative="n", further_negatives=("m", "o")),
        Triplet(anchor="a", positive="p", negative="o", further_negatives=("n", "m")),
        Triplet(anchor="a", positive="p", negative="n", further_negatives=("a",)),
        Triplet(anchor="p", positive="a", negative="n"),
    ]
    found = describe(SyntheticDataset.create(RecordKind.TRIPLET, records))
    assert (found.num_identical, found.num_duplicates, found.num_unordered_duplicates) == (1, 0, 1)
    assert found.num_sentences == 5


@pytest.mark.parametrize("kind", [kind for kind in RecordKind if kind != RecordKind.FAILURE])
def test_an_empty_data_set_has_figures_too(kind: RecordKind) -> None:
    found = describe(SyntheticDataset.create(kind, []))
    assert (found.num_records, found.words, found.distinct_1, found.share_identical) == (0, {}, 0.0, 0.0)


@PROPERTY
@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=12))
def test_the_figures_equal_those_of_plain_python(rows: Sequence[tuple[str, str, float]]) -> None:
    found = describe(pairs(*rows))
    lengths = [len(row[1].split()) for row in rows]
    assert found.words["sentence2"].median == median(lengths)
    assert found.words["sentence2"].mean == pytest.approx(mean(lengths))
    texts = list(dict.fromkeys(text for row in rows for text in row[:2]))
    tokens = [text.lower().split() for text in texts]
    words = [word for sentence in tokens for word in sentence]
    neighbours = [pair for sentence in tokens for pair in pairwise(sentence)]
    assert found.num_sentences == len(texts)
    assert found.distinct_1 == len(set(words)) / len(words)
    assert found.distinct_2 == (len(set(neighbours)) / len(neighbours) if neighbours else 0.0)
    assert found.num_identical == sum(row[0] == row[1] for row in rows)
    assert found.num_duplicates == len(rows) - len({row[:2] for row in rows})
    assert found.num_unordered_duplicates == len(rows) - len({tuple(sorted(row[:2])) for row in rows})


def test_large_data_sets_are_counted_across_chunks() -> None:
    found = describe(pairs(*((f"x {number}", "y", 0.5) for number in range(12_000))))
    assert (found.num_records, found.num_sentences, found.distinct_1) == (12_000, 12_001, 12_002 / 24_001)
