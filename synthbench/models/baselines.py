"""Pair scorers that need no model: what any trained one should be better than."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synthbench.models.interfaces import PairScorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class JaccardScorer:
    """Scores a pair by its word overlap: the share of words in both sentences among the words in either.

    Words are distinct runs of letters, digits and underscores, lower-cased. In [0, 1]; 0 if neither sentence
    has a word.
    """

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one overlap per pair, shape (len(pairs),)."""
        return np.array([_overlap(first, second) for first, second in pairs], np.float64)


class ConstantScorer:
    """Gives every pair the same score: with a threshold all are of one class, the more frequent one."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return 0.5 per pair, shape (len(pairs),)."""
        return np.full(len(pairs), 0.5)


def _overlap(first: str, second: str) -> float:
    words, others = ({*_WORD.findall(text.lower())} for text in (first, second))
    return len(words & others) / len(words | others) if words or others else 0.0


BASELINES: Mapping[str, Callable[[], PairScorer]] = {"jaccard": JaccardScorer, "constant": ConstantScorer}
