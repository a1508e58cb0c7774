"""What a method needs to label pairs with a model: planning, and scores that don't depend on the order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synthbench.models.interfaces import PairScorer


def length_sorted_units(text_lengths: Sequence[int], unit_size: int) -> list[list[int]]:
    """Cut work into units of texts of similar length; return the indices of each unit.

    `text_lengths` are in any unit that grows with the cost (characters do). Units depend on the arguments
    alone, so scoring them one by one gives the same scores after an interruption; since lengths are sorted
    over the whole, batches within a unit need hardly any padding. The last unit may be smaller.

    Raises ValueError if `unit_size` is not positive.
    """
    if unit_size < 1:
        raise ValueError(f"unit_size is {unit_size}, must be at least 1")
    order = sorted(range(len(text_lengths)), key=text_lengths.__getitem__)
    return [order[start : start + unit_size] for start in range(0, len(order), unit_size)]


def symmetric_scores(scorer: "PairScorer", pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
    """Return the mean score of both orders of each pair, shape (len(pairs),).

    A cross-encoder gives (a, b) and (b, a) different scores; silver labels are of unordered pairs (Thakur et
    al. 2021, section 3.1).
    """
    scores = scorer.score([*pairs, *((second, first) for first, second in pairs)])
    return (scores[: len(pairs)] + scores[len(pairs) :]) / 2
