"""Test sentences in training data, against figures worked out by hand and by comparing everything."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from record_strategies import PROPERTY
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.contamination import Check, Counts, Findings, TestIndex, TestOverlap, search
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import bare, grams, similarity
from synthbench.data.records import Ranking, RecordKind, Triplet
from synthbench.data.streaming import text_batches
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import Split, TaskName

Rows = Sequence[tuple[str, ...]]
TEXTS = st.lists(st.sampled_from(["a", "A,", "bee", "b ee", "cat.", "CAT"]), min_size=1, max_size=4).map(
    " ".join
)
FEW = settings(PROPERTY, max_examples=20)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8)
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen"


def overlap(training: Rows, test: Rows) -> TestOverlap:
    index = TestIndex({"test": test})
    return search([training], index).overlaps(index)[0]


def test_findings_in_a_small_test_set_are_correct_by_hand() -> None:
    test = [("A dog barks.", "A cat."), ("a dog, barks", "Two birds"), ("Two  birds", "Snow falls")]
    training = [("A dog barks.", "x y z"), ("two birds!", "A dog barks. "), ("A dog barks.", "")]
    found = overlap(training, test)
    assert (found.num_items, found.num_sentences, found.items_as_pairs) == (3, 6, 1)
    assert found.checks[Check.EXACT] == Counts(training_sentences=2, sentences=1, items=1, whole_items=0)
    same_words = Counts(training_sentences=3, sentences=4, items=3, whole_items=1)
    assert found.checks[Check.NORMALISED] == same_words
    assert found.checks[Check.GRAMS] == same_words
    assert found.checks[Check.NEAR] == same_words


def test_thirteen_common_words_in_a_row_are_found_and_twelve_are_not() -> None:
    test = [(f"So {LONG}, and more",), (LONG.removeprefix("one "),)]
    found = overlap([(f"Count: {LONG}!",)], test)
    assert (found.checks[Check.GRAMS].sentences, found.checks[Check.NORMALISED].sentences) == (1, 0)


def test_shorter_sentences_are_only_found_as_a_whole() -> None:
    assert overlap([("a cat sat on the mat today",)], [("a cat sat",)]).checks[Check.GRAMS].sentences == 0


def test_a_long_sentence_with_one_changed_letter_is_a_near_duplicate() -> None:
    found = overlap([(LONG.replace("seven", "sevem"),)], [(LONG,)])
    assert (found.checks[Check.NEAR].sentences, found.checks[Check.GRAMS].sentences) == (1, 0)


def test_normalisation_makes_forms_of_a_character_equal() -> None:
    composed, decomposed, ligature = "Caf\u00e9 office", "Cafe\u0301 office", "caf\u00e9 o\ufb03ce"
    found = overlap([(decomposed,), (ligature,)], [(composed,)])
    assert found.checks[Check.EXACT].training_sentences == 0
    assert found.checks[Check.NORMALISED].training_sentences == 2


def test_words_with_different_vowel_signs_are_different() -> None:
    found = overlap([("\u0915\u0940",)], [("\u0915\u093f",)])  # Hindi: ki and kee
    assert found.checks[Check.NORMALISED].sentences == 0


def test_near_duplicates_at_a_low_threshold_are_not_missed() -> None:
    generator = np.random.default_rng(0)
    words = [f"w{number}" for number in range(25)]
    test, training = [], []
    while len(test) < 100:
        first = generator.choice(words, 20)
        second = np.where(generator.random(20) < 0.15, generator.choice(words, 20), first)
        if 0.5 <= similarity(" ".join(first), " ".join(second)) < 0.55:
            test.append((" ".join(first),))
            training.append((" ".join(second),))
    index = TestIndex({"test": test}, checks=[Check.NEAR], near=0.5)
    found = search([training], index).overlaps(index)[0].checks[Check.NEAR]
    assert found.sentences == 100


@FEW
@given(PAIRS, PAIRS)
def test_every_check_agrees_with_comparing_all_pairs(training: Rows, test: Rows) -> None:
    alike = {
        Check.EXACT: lambda left, right: left == right,
        Check.NORMALISED: lambda left, right: bare(left) == bare(right),
        Check.GRAMS: lambda left, right: not set(grams(bare(left))).isdisjoint(grams(bare(right))),
        Check.NEAR: lambda left, right: similarity(bare(left), bare(right)) >= 0.8,
    }
    found = overlap(training, test)
    left = {text for row in training for text in row}
    right = {text for row in test for text in row}
    for check, is_alike in alike.items():
        in_training = {text for text in right if any(is_alike(other, text) for other in left)}
        assert found.checks[check] == Counts(
            training_sentences=sum(any(is_alike(text, other) for other in right) for text in left),
            sentences=len(in_training),
            items=sum(not in_training.isdisjoint(row) for row in test),
            whole_items=sum(in_training.issuperset(row) for row in test),
        )
    pairs = {frozenset(map(bare, row)) for row in training}
    assert found.items_as_pairs == sum(frozenset(map(bare, row)) in pairs for row in test)


@FEW
@given(PAIRS, PAIRS, PAIRS)
def test_findings_of_two_parts_sum_to_those_of_the_whole(one: Rows, other: Rows, test: Rows) -> None:
    index = TestIndex({"test": test})
    apart = search([one], index).combined_with(search([other], index))
    whole = search([one, other], index)
    assert (apart.sentences, apart.pairs, apart.num_records) == (
        whole.sentences,
        whole.pairs,
        whole.num_records,
    )


def test_sentences_with_embeddings_at_or_above_the_cosine_are_found() -> None:
    angles = {"north": 0.0, "nearly north": 0.3, "east": 1.5, "nowhere": None}

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [(0.0, 0.0) if angles[t] is None else (np.cos(angles[t]), np.sin(angles[t])) for t in texts]
        return np.array(rows, dtype=np.float32) * 7

    index = TestIndex({"test": [("north", "nowhere")]}, encode=encode, similar=0.95)
    training = [("nearly north",), ("east",), ("nowhere",)]
    found = search([training], index).overlaps(index)[0].checks[Check.EMBEDDING]
    assert found == Counts(training_sentences=1, sentences=1, items=1, whole_items=0)


def test_triplets_and_rankings_pair_their_first_sentence_with_the_others() -> None:
    triplets = [Triplet(anchor="a", positive="b", negative="c")]
    rankings = [Ranking(query="a", candidates=("b", "d"), grades=(1.0, 0.0), further_queries=("c",))]
    index = TestIndex({"test": [("b", "a"), ("c", "a"), ("b", "c"), ("a", "d")]})

    def pairs_in(data: SyntheticDataset) -> int:
        return search([list(data.text_rows())], index).overlaps(index)[0].items_as_pairs

    assert pairs_in(SyntheticDataset.create(RecordKind.TRIPLET, triplets)) == 2
    assert pairs_in(SyntheticDataset.create(RecordKind.RANKING, rankings)) == 3


@pytest.mark.parametrize("kind", [RecordKind.TRIPLET, RecordKind.RANKING])
def test_a_stored_data_set_gives_the_same_findings_when_streamed(kind: RecordKind, tmp_path: Path) -> None:
    records = {
        RecordKind.TRIPLET: [Triplet(anchor="a", positive="b", negative="c")] * 3,
        RecordKind.RANKING: [
            Ranking(query="q", candidates=("x", "y"), grades=(1, 0), further_queries=("r",))
        ],
    }[kind]
    data = SyntheticDataset.create(kind, records)
    data.write(tmp_path)
    (rows,) = text_batches(tmp_path)
    assert rows == [record.texts() for record in data]


def test_data_without_sentences_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    SyntheticDataset.create(RecordKind.FAILURE, []).write(tmp_path)
    wrong = {"empty.txt": "holds no records", "latin.txt": "not UTF-8", ".": "holds failure records"}
    for name, message in wrong.items():
        with pytest.raises(UserError, match=message):
            list(text_batches(tmp_path / name))
    (tmp_path / "records.parquet").write_bytes(b"PAR1")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"failure"', '"pair"'), encoding="utf-8")
    with refused("damaged"):
        list(text_batches(tmp_path))


@pytest.mark.experiments
def test_sentences_of_stsb_are_found_in_dinos_real_texts(real_data: Path) -> None:
    roots = Roots(data=real_data)

    def rows(task: TaskName, split: Split = "test") -> Rows:
        return list(TaskSource(task=task, split=split).load(roots).text_rows())

    def found(**tests: Rows) -> Findings:
        file = real_data / "synthetic/dino-gpt2xl/x1.txt"
        return search(text_batches(file), TestIndex(tests))

    stsb = found(dev=rows("STSb", "dev"), test=rows("STSb"))
    assert stsb.training[Check.EXACT] == {"dev": 138, "test": 138}
    assert (stsb.anywhere[Check.EXACT], stsb.anywhere[Check.NORMALISED]) == (249, 250)
    others = found(STS12=rows("STS12"), STS13=rows("STS13"))
    assert others.training[Check.EXACT] == {"STS12": 955, "STS13": 584}
