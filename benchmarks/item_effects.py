"""Effects of test items, of their sentences and of connected components, for `shared_sentences.py`.

A difference of two rows is linear in its effects, and its squared errors are polynomials in their factors. So
each cell of the grid mixes the same draws, instead of drawing anew.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from sentence_graphs import Graph

Array = NDArray[np.float64]
EFFECTS = ("items", "sentences", "components")


def factors(sentences: float, components: float) -> dict[str, float]:
    """Return what effects of variance 1 are multiplied by, so that they have these shares of an item's."""
    shares = (1 - sentences - components, sentences, components)
    return {source: math.sqrt(share) for source, share in zip(EFFECTS, shares, strict=True)}


@dataclass(frozen=True)
class Clusters:
    """Lines of item effects: their scores, and their influences clustered in three ways.

    All are linear in the effects. `influences` are (lines, items), `of_neighbours` their sums over the items
    that share a sentence. `sums` are by item, by sentence and by component: (lines, clusters).
    """

    scores: Array
    influences: Array
    of_neighbours: Array
    sums: tuple[Array, Array, Array]

    @classmethod
    def of(cls, graph: Graph, effects: Array) -> "Clusters":
        """Return those of lines of item effects, shape (lines, items)."""
        alone, influences = graph.centred(effects, graph.sets), graph.centred(effects, graph.subsets)
        shared = graph.shared
        sums = (alone, shared.sums_by_sentence(influences), shared.sums_by_component(influences))
        of_neighbours = np.ascontiguousarray((graph.neighbours @ influences.T).T)
        return cls(effects @ graph.weights, influences, of_neighbours, sums)

    @classmethod
    def combined(cls, parts: Sequence[tuple[float, "Clusters"]]) -> "Clusters":
        """Return a linear combination."""

        def added(which: Callable[[Clusters], Array]) -> Array:
            return np.asarray(sum(factor * which(part) for factor, part in parts if factor))

        sums = (added(lambda each: each.sums[0]), added(lambda each: each.sums[1]))
        return cls(
            added(lambda each: each.scores),
            added(lambda each: each.influences),
            added(lambda each: each.of_neighbours),
            (*sums, added(lambda each: each.sums[2])),
        )


@dataclass(frozen=True)
class Lines:
    """What lines of item effects tell: the score of each, and the squared errors that the product finds.

    `errors` and `degrees` are (3, lines): for items that are independent, that share sentences, and that
    belong to one component.
    """

    scores: Array
    errors: Array
    degrees: Array


class Mixed:
    """Lines of item effects plus any multiple of others: what they tell are polynomials in the factor."""

    def __init__(self, one: Clusters, other: Clusters) -> None:
        self._scores = np.stack([one.scores, other.scores])
        powers = [_powers(*each) for each in zip(one.sums, other.sums, strict=True)]
        self._squares, self._fourths = (np.stack(each, axis=1) for each in zip(*powers, strict=True))
        of_sentences = (
            _sum(one.influences, one.of_neighbours),
            2 * _sum(one.influences, other.of_neighbours),
            _sum(other.influences, other.of_neighbours),
        )
        self._errors = self._squares.copy()
        self._errors[:, 1] = of_sentences

    def at(self, factor: float) -> Lines:
        """Return what the first lines plus `factor` times the others tell."""
        polynomials = (self._scores, self._errors, self._squares, self._fourths)
        scores, errors, squares, fourths = (np.asarray(polyval(factor, each)) for each in polynomials)
        with np.errstate(invalid="ignore"):  # A single component has a sum of 0, up to rounding.
            return Lines(scores, errors, np.fmax(3 * squares**2 / fourths - 2, 1.0))


def _powers(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the coefficients by the factor of the sums of (one + factor other)^2 and of its fourth power."""
    square, mixed, others = one * one, one * other, other * other
    squares = [square.sum(axis=1), 2 * mixed.sum(axis=1), others.sum(axis=1)]
    fourths = [
        _sum(square, square),
        4 * _sum(square, mixed),
        6 * _sum(square, others),
        4 * _sum(mixed, others),
        _sum(others, others),
    ]
    return np.stack(squares), np.stack(fourths)


def _sum(one: Array, other: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", one, other))
