"""Word substitution in gold pairs: selection, number and reproducibility."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from augsbert_context import Context
from pydantic import ValidationError

from synthbench.api import Blank, MaskedLanguageModel, RecordKind, ScoredPair, SyntheticDataset, Unit
from synthbench_augsbert import ContextualSubstitution, substitution

PAIRS = [
    ("The old man doesn't play the guitar.", "A man sleeps."),
    ("Dogs run in a big green park, again and again", "3rd: 42!"),
    ("Two cats", "Two birds sing"),
]


class Guesses:
    """Always guesses the same words, and records the requested blanks."""

    def __init__(self) -> None:
        self.asked: list[Blank] = []

    def guesses(self, blanks: Sequence[Blank], top_k: int) -> Iterator[list[tuple[str, float]]]:
        self.asked += blanks
        for _ in blanks:
            yield [("yes", 0.75), ("no", 0.25)][:top_k]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Guesses:
    guesses = Guesses()
    monkeypatch.setattr(MaskedLanguageModel, "load", lambda self, runtime: guesses)
    return guesses


def gold(pairs: Sequence[tuple[str, str]] = PAIRS) -> SyntheticDataset:
    records = [
        ScoredPair(id=f"gold-{number}", sentence1=first, sentence2=second, score=number / 10)
        for number, (first, second) in enumerate(pairs)
    ]
    dev = ScoredPair(sentence1="not this", sentence2="one", score=0.5, split="dev")
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, [*records, dev])


def units(
    context: Context | None = None, pairs: Sequence[tuple[str, str]] = PAIRS, **changes: Any
) -> list[Unit]:
    configured = ContextualSubstitution(language_model={"model": "bert-base-uncased"}, **changes)
    found = list(configured.generate({"gold": gold(pairs)}, context or Context()))
    return sorted(found, key=lambda unit: unit.position)


def texts(found: Sequence[Unit]) -> list[tuple[str, ...]]:
    return [record.texts() for unit in found for record in unit.records]


def num_changed(before: str, after: str) -> int:
    pieces = re.findall(r"[\w'’-]+|[^\w'’-]+", before), re.findall(r"[\w'’-]+|[^\w'’-]+", after)
    return sum(old != new for old, new in zip(*pieces, strict=True))


@pytest.mark.parametrize(("share", "expected"), [(0.3, [2, 1, 3, 0, 1, 1]), (1.0, [7, 3, 10, 0, 2, 3])])
def test_a_share_of_the_words_is_replaced_and_the_rest_is_unchanged(
    model: Guesses, share: float, expected: list[int]
) -> None:
    found = texts(units(share=share))

    changes = [
        num_changed(before, after)
        for old, new in zip(PAIRS, found, strict=True)
        for before, after in zip(old, new, strict=True)
    ]
    assert changes == expected


def test_inserted_words_stand_before_chosen_words_and_nothing_else_changes(model: Guesses) -> None:
    found = texts(units(share=0.3, action="insert", top_k=1))

    for old, new in zip(PAIRS, found, strict=True):
        assert tuple(text.replace("yes ", "") for text in new) == old
    assert [text.count("yes ") for pair in found for text in pair] == [2, 1, 3, 0, 1, 1]
    assert {blank.word for blank in model.asked} == {"_"}
    (record,) = units(action="insert", max_words=10)[0].records
    assert record.instruction == "insert share=0.3 top_k=100 max_words=10"


def test_a_word_is_inserted_into_the_text_with_those_inserted_before(model: Guesses) -> None:
    ((first, _),) = texts(units(pairs=[("One two three", "4")], share=1.0, action="insert", top_k=1))

    assert first == "yes One yes two yes three"
    assert [blank.text for blank in model.asked] == [
        "One two _ three",
        "One _ two yes three",
        "_ One yes two yes three",
    ]


@pytest.mark.parametrize("action", ["substitute", "insert"])
def test_at_most_max_words_of_a_sentence_are_changed(model: Guesses, action: str) -> None:
    found = texts(units(share=1.0, action=action, max_words=2, top_k=1))

    numbers = [len(re.findall("yes", text, re.IGNORECASE)) for pair in found for text in pair]
    assert numbers == [2, 2, 2, 0, 2, 2]


def test_a_pair_without_a_word_to_insert_before_is_counted(model: Guesses) -> None:
    (unit,) = units(pairs=[("1 2", "?!")], action="insert")

    assert unit.dropped == {"no word could be inserted": 1}


def test_replaced_words_are_predicted_from_the_current_text(model: Guesses) -> None:
    units(share=1.0)

    words = {blank.word for blank in model.asked}
    assert {"doesn't", "Dogs", "park"} <= words
    assert not words & {"3rd", "rd", "42", "doesn", "t"}
    assert any("yes" in blank.text.casefold() for blank in model.asked), "one after the other"


def test_a_replaced_word_keeps_its_capital_letter(model: Guesses) -> None:
    ((first, _),) = texts(units(pairs=[("Man runs", "b")], share=1.0, top_k=1))

    assert first == "Yes yes"


def test_words_are_sampled_by_their_probabilities(model: Guesses) -> None:
    found = texts(units(pairs=[("a b c d e f g h", "i j k l m n o p")], share=1.0, copies=50))

    words = " ".join(text for pair in found for text in pair).split()
    assert words.count("yes") / len(words) == pytest.approx(0.75, abs=0.05)


def test_pairs_keep_their_score_and_have_provenance(model: Guesses) -> None:
    for number, unit in enumerate(units(seed=7)):
        (record,) = unit.records
        assert isinstance(record, ScoredPair)
        assert (record.score, record.source_id, record.seed) == (number / 10, f"gold-{number}", 7)
        assert (record.generator, record.instruction) == ("bert-base-uncased", "share=0.3 top_k=100")


def test_a_pair_without_words_is_counted(model: Guesses) -> None:
    found = units(pairs=[("1 2", "?!"), ("a man", "3")])

    assert [unit.dropped for unit in found] == [{"no word could be replaced": 1}, {}]
    assert len(texts(found)) == 1


def test_only_copies_and_seeds_change_the_texts(model: Guesses, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"one two three four five six seven {n}", "a b c d e f g h i") for n in range(9)]
    expected = units(pairs=pairs, copies=2)
    assert len(set(texts(expected))) == 18

    monkeypatch.setattr(substitution, "BATCH_PAIRS", 4)
    assert units(pairs=pairs, copies=2) == expected
    assert texts(units(pairs=pairs, copies=1)) == texts(expected)[::2]
    assert texts(units(pairs=pairs, copies=2, seed=1)) != texts(expected)

    finished = frozenset(unit.key for unit in expected[:7])
    assert units(Context(finished_units=finished), pairs, copies=2) == expected[7:]


@pytest.mark.parametrize(
    "changes", [{"share": 0.0}, {"share": 1.5}, {"top_k": 0}, {"copies": 0}, {"max_words": 0}]
)
def test_impossible_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ContextualSubstitution(language_model={"model": "bert-base-uncased"}, **changes)
