"""Text normalisation, and similarity of nearly equal sentences."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from unicodedata import category, normalize

from synthbench.words import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Float = TypeVar("_Float", np.float32, np.float64)
    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

SHINGLE = 5
GRAM = 13
NEAR = 0.8


class _WordCharacters(dict[int, str]):
    """Translation table for `str.translate`: keeps characters of words, replaces all others by a space.

    Combining marks that are never composed with a letter, such as Hindi's vowels, belong to words.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        in_word = character.isalnum() or character == "_" or category(character).startswith("M")
        return self.setdefault(code, character if in_word else " ")


_WORD_CHARACTERS = _WordCharacters()


def bare(text: str) -> str:
    """Return the text's words, case-folded, with single spaces between them; a text without words unchanged.

    NFKC makes Unicode-compatible characters equal: composed or decomposed accents, ligatures.
    """
    return " ".join(normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS).split()) or text.strip()


def grams(bare_text: str, splitter: str | None = None) -> Sequence[str]:
    """Return a text's 13-grams of words; for a shorter text, the whole text.

    `splitter` names the splitter of scripts without spaces; None: split at spaces only.
    """
    words = bare_text.split(" ") if splitter is None else split_words(bare_text, splitter)
    if len(words) <= GRAM:
        return (bare_text,)
    return [" ".join(words[start : start + GRAM]) for start in range(len(words) - GRAM + 1)]


def similarity(first: str, second: str) -> float:
    """Return the Jaccard similarity of two bare texts' character 5-grams, in [0, 1]."""
    left, right = _shingle_set(first), _shingle_set(second)
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


def directions(vectors: "NDArray[_Float]") -> "NDArray[_Float]":
    """Return vectors, shape (n, dimension), scaled to length 1; zero vectors stay zero."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[_Float] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def shingles(bare_text: str) -> list[str]:
    """Return a bare text's character 5-grams, in order; for a shorter text, the whole text."""
    return [bare_text[start : start + SHINGLE] for start in range(max(1, len(bare_text) - SHINGLE + 1))]


@lru_cache(maxsize=8192)
def _shingle_set(bare_text: str) -> frozenset[str]:
    return frozenset(shingles(bare_text))


def normalised(text: str) -> str:
    """Return the text lower-cased, without white space at its ends and full stops at its end."""
    return text.strip().lower().rstrip(". ")
