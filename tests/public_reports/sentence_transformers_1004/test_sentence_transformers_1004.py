"""huggingface/sentence-transformers #1004: a cross-encoder's scores are far above 1.

Models that were trained to rank give logits. As a labeller of training pairs such a model is refused,
instead of labelling all pairs with the 1.0 to which logits would be cut.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from wording import refused

from synthbench.plugins.labellers import Labeller

if TYPE_CHECKING:
    from synthbench.plugins.contracts import PluginContext

LABELLER = Labeller(ready_cross_encoder={"base": {"model": "org/ranker"}})
TEXTS = [("a", "b"), ("c", "d")]


class Context:
    """Offers a cross-encoder that gives the scores it is made with, in the order of the pairs."""

    def __init__(self, *scores: float) -> None:
        self.scores = dict(zip(TEXTS, scores, strict=True))
        self.progress = self

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Context"]:
        yield self

    def advance(self, amount: int = 1) -> None: ...

    def is_mine(self, piece: int) -> bool:
        return True

    def pair_scorer(self, need: str) -> "Context":
        return self

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([self.scores[tuple(sorted(pair))] for pair in pairs])


def labels(*scores: float) -> dict[int, float | None]:
    context = cast("PluginContext", Context(*scores))
    return {
        index: found.value for index, found in LABELLER.verdicts(2, TEXTS.__getitem__, "labeller", context)
    }


def test_logits_are_refused_as_labels() -> None:
    with refused("org/ranker", "8.15"):
        labels(8.14593, 0.3)
    with refused("org/ranker", "-4.80"):
        labels(0.9, -4.8)


def test_similarities_are_accepted_as_labels() -> None:
    assert labels(0.95, 0.3) == pytest.approx({0: 0.95, 1: 0.3})
