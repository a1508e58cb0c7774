"""BM25: which texts share the rarest words. Samplers and miners have this one implementation."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from synthbench.patterns import linear_pattern

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Splitter = Callable[[str], list[str]]
"""Returns the words of a text."""
_WORD = linear_pattern(r"\w+")


def words_between_spaces(text: str) -> list[str]:
    """Return the lower-cased words between white space, punctuation included."""
    return text.lower().split()


def words_alone(text: str) -> list[str]:
    """Return the lower-cased runs of letters, digits and underscores; the whole text if there is none."""
    return _WORD.findall(text.lower()) or [text]


def nearest_by_words(
    texts: Sequence[str],
    k: int,
    queries: Sequence[str] | None = None,
    split: Splitter = words_between_spaces,
) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
    """Return indices and BM25 scores of the k texts that are best for each query, each of shape (queries, k).

    Best first; of equal scores the lower index first. Without `queries` each text is one, and never among its
    own. Raises ValueError if there are not k texts.
    """
    from synthbench.bm25.index import BM25Index

    return BM25Index(texts, queries, split).nearest(k)
