"""The shipped models behave as docs/sandbox.md says, without any method or training."""

import pytest

from synthbench.auditing.confusion import Confusion
from synthbench.worlds.sandbox import shipped
from synthbench.worlds.sandbox.cli.figures import lm_confusion
from synthbench.worlds.sandbox.figures import IDENTICAL, UNCLOSED, encoder_spearman


@pytest.fixture(scope="module")
def written() -> Confusion:
    """Counts of the LM's output for 100 sentences, by instruction and kind of output."""
    return lm_confusion(shipped.folder("sandbox/lm"), 100)


def percent(written: Confusion, asked_for: str, *judged: str) -> float:
    return sum(written.cells[row][asked_for].percent for row in judged)


def test_about_half_of_the_language_models_paraphrases_have_the_same_meaning(written: Confusion) -> None:
    assert 30 < percent(written, "same", IDENTICAL, "same") < 70


def test_many_of_the_language_models_unrelated_texts_are_similar(written: Confusion) -> None:
    assert percent(written, "different", "similar", "same", IDENTICAL) > 30
    assert percent(written, "different", "different") < 40


def test_after_task_documents_the_instruction_has_little_effect_as_with_gpt2_xl(written: Confusion) -> None:
    same, _, different = (percent(written, label, IDENTICAL, "same") for label in written.columns)
    assert 0 < same - different < 30


def test_after_textbook_documents_the_instruction_has_a_large_effect() -> None:
    written = lm_confusion(shipped.folder("sandbox/lm"), 100, "Textbook")
    assert percent(written, "different", IDENTICAL, "same") < 5
    assert percent(written, "different", "different") > 50
    assert percent(written, "same", IDENTICAL, "same") > 50


def test_some_sentences_lack_the_closing_quote_and_most_are_in_the_grammar(written: Confusion) -> None:
    assert sum(percent(written, label, UNCLOSED) for label in written.columns) > 0
    for label in written.columns:
        assert percent(written, label, UNCLOSED) < 25
        assert percent(written, label, "outside the grammar") < 25


def test_the_encoder_has_much_to_learn_about_similarity_before_training() -> None:
    assert 0.4 < encoder_spearman(shipped.folder("sandbox/encoder"), 500) < 0.8
