"""Sentence ids: equal for texts that are equal after normalisation, whatever the test set."""

import pytest

from synthbench.results.sentences import number_of, sentence_id, shared_sentences


def test_texts_that_are_equal_after_normalisation_have_one_id() -> None:
    ids = {sentence_id(text) for text in ("A cat sits.", "a cat  sits", "A CAT SITS!")}

    assert ids == {"809170ca4ad724aa"}
    assert sentence_id("a dog sits") not in ids


def test_items_share_the_sentences_with_equal_ids() -> None:
    ids = {"x": [sentence_id("a"), sentence_id("b")], "y": [sentence_id("a")], "z": []}

    found = shared_sentences(["y", "z", "x"], ids)

    assert found is not None
    assert found.num_items == 3
    assert found.items.tolist() == [0, 2, 2]
    assert found.sentences.tolist() == [number_of("a"), number_of("a"), number_of("b")]


@pytest.mark.parametrize("ids", [None, {"x": ["00" * 8]}])
def test_sentences_are_unknown_if_those_of_any_item_are(ids: dict[str, list[str]] | None) -> None:
    assert shared_sentences(["x", "y"], ids) is None
