"""When two sentences are the same but for their writing, and when they are nearly the same."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import category, normalize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rensa import RMinHash

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

NUM_PERMUTATIONS = 128
NUM_BANDS, MORE_BANDS = 32, 64
"""With four values in each band, two sentences at a similarity of 0.8 meet in one but for 1 time in 10^7; at
0.5, the lowest that is asked for, 1 in 8 would be missed, with two values in each 1 in 10^8."""
SEED = 1
SHINGLE = 5
GRAM = 13
NEAR = 0.8


class _WordCharacters(dict[int, str]):
    """What `str.translate` makes of each character: itself within a word, else a space.

    The marks of letters that are never composed, such as Hindi's vowels, are parts of words.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        in_word = character.isalnum() or character == "_" or category(character).startswith("M")
        return self.setdefault(code, character if in_word else " ")


_WORD_CHARACTERS = _WordCharacters()


def bare(text: str) -> str:
    """Return the text's words, case folded, with single spaces between them; without words, the text.

    Characters that Unicode holds compatible are the same (NFKC): an accent composed or not, a ligature.
    """
    return " ".join(normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS).split()) or text.strip()


def grams(bare_text: str) -> Sequence[str]:
    """Return the 13-grams of words; of a shorter text the whole."""
    words = bare_text.split(" ")
    if len(words) <= GRAM:
        return (bare_text,)
    return [" ".join(words[start : start + GRAM]) for start in range(len(words) - GRAM + 1)]


def similarity(first: str, second: str) -> float:
    """Return the Jaccard similarity of two bare texts' 5-grams of characters, in [0, 1]."""
    left, right = _shingle_set(first), _shingle_set(second)
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


def directions(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors, shape (n, dimension), scaled to length 1; one of length 0 stays."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


class NearDuplicates:
    """Finds the nearly equal among known sentences: by MinHash, then by their exact similarity."""

    def __init__(self, bare_texts: Sequence[str], threshold: float = NEAR) -> None:
        from rensa import RMinHashLSH

        self._texts = bare_texts
        self._threshold = threshold
        num_bands = NUM_BANDS if threshold >= NEAR else MORE_BANDS
        self._index = RMinHashLSH(threshold, NUM_PERMUTATIONS, num_bands)
        self._index.insert_many(_sketches(bare_texts))

    def find(self, bare_texts: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Yield for each text the numbers of the known ones at least as similar as the threshold."""
        candidates = self._index.query_all(_sketches(bare_texts))
        for text, numbers in zip(bare_texts, candidates, strict=True):
            yield tuple(
                number
                for number in sorted(numbers)
                if similarity(text, self._texts[number]) >= self._threshold
            )


def _sketches(bare_texts: Sequence[str]) -> "list[RMinHash]":
    from rensa import RMinHash

    made: list[RMinHash] = RMinHash.from_token_sets(map(_shingles, bare_texts), NUM_PERMUTATIONS, SEED)
    return made


def _shingles(bare_text: str) -> list[str]:
    return [bare_text[start : start + SHINGLE] for start in range(max(1, len(bare_text) - SHINGLE + 1))]


@lru_cache(maxsize=4096)
def _shingle_set(bare_text: str) -> frozenset[str]:
    return frozenset(_shingles(bare_text))


def normalised(text: str) -> str:
    """Return the text without case, and without white space and full stops at its ends."""
    return text.strip().lower().rstrip(". ")
