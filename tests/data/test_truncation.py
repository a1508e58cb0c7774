"""Texts truncated by a maximum length are counted, and so are texts that are equal afterwards."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_tokenizers import by_bytes, by_words

from synthbench.data.truncation import Truncation, count_truncated

# [CLS], four words, [SEP].
SIX = 6


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return by_words(tmp_path_factory.mktemp("tokenizer"))


def alone(texts: Iterable[str]) -> Iterator[tuple[str]]:
    return ((text,) for text in texts)


def test_a_text_with_more_tokens_than_the_model_reads_is_cut(words: Any) -> None:
    texts = ["a b c", "a b c d", "a b c d e"]
    assert count_truncated(alone(texts), words, SIX) == Truncation(texts=3, truncated=1, equal_after=1)


def test_a_truncated_text_may_equal_another_truncated_or_complete_text(words: Any) -> None:
    texts = ["a b c d e", "a b c d a", "e d c b a a", "e d c b", "b b b b b"]
    assert count_truncated(alone(texts), words, SIX) == Truncation(texts=5, truncated=4, equal_after=3)


def test_texts_with_equal_tokens_are_not_counted_as_made_equal_by_a_cut(words: Any) -> None:
    assert count_truncated(alone(["A b", "a b", "A b c d", "a b c d"]), words, SIX) == Truncation(4, 0, 0)


def test_a_text_that_occurs_twice_counts_once(words: Any) -> None:
    assert count_truncated(alone(["a b c d e"] * 3), words, SIX) == Truncation(1, 1, 0)


def test_two_texts_read_together_share_the_maximum_length(words: Any) -> None:
    """[CLS] a b [SEP] c [SEP] is six; of a longer pair the longer text is cut."""
    pairs = [("a b", "c"), ("a b d", "c"), ("c", "a b"), ("c", "a b d"), ("a", "b")]
    assert count_truncated(pairs, words, SIX) == Truncation(texts=5, truncated=2, equal_after=2)


def test_a_tokenizer_that_cuts_on_the_left_keeps_the_ends(words: Any) -> None:
    words.truncation_side = "left"
    try:
        assert count_truncated(alone(["a b c d e", "b b c d e", "a b c d d"]), words, SIX) == Truncation(
            3, 3, 2
        )
    finally:
        words.truncation_side = "right"


def test_counts_equal_those_of_the_tokenizers_own_truncation(tmp_path: Path) -> None:
    """The texts are few characters and many tokens: of bytes, an emoji has four."""
    tokenizer = by_bytes(tmp_path)
    texts = ["", "a", "abcd", "abcde", "éé", "ééé", "😀", "😀😀", "a😀", "ab 😀", " ab 😀"]
    for max_tokens in range(1, 12):
        kept = [tuple(tokenizer(text, truncation=True, max_length=max_tokens)["input_ids"]) for text in texts]
        cut = [len(tokenizer(text)["input_ids"]) > max_tokens for text in texts]
        equal = sum(is_cut and kept.count(row) > 1 for is_cut, row in zip(cut, kept, strict=True))
        found = count_truncated(alone(texts), tokenizer, max_tokens)
        assert found == Truncation(len(texts), sum(cut), equal)


def test_without_texts_the_share_is_zero() -> None:
    assert Truncation(0, 0, 0).share == 0
    assert Truncation(4, 1, 0).share == 0.25
