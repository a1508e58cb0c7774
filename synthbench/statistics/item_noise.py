"""The noise that the choice of test items adds to the difference between two rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.frozen import added_field
from synthbench.statistics.shared_sentences import SharedSentences, degrees_of_freedom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIGNIFICANT_DIGITS = 6
SMALLEST_SHARE = 1e-9


@dataclass(frozen=True)
class Influences:
    """The influence of each test item on a row's score by seed: `values` of shape (seeds, items).

    If a row does not depend on the seed, `values` has one line and `is_seeded` is False.
    """

    values: "Array"
    seeds: tuple[int, ...]
    is_seeded: bool = True


@dataclass(frozen=True, eq=False)
class TestItems:
    """The items of one test set.

    `sentences` is None if unknown; items then count as sharing nothing. `subsets`, of shape (items,), holds
    the number of each item's subset; None: no subsets. `ids`, of shape (items,), are integers that identify
    items across test sets, so that an average recognises items of several sets; None: no other set has them.
    """

    __test__ = False

    num_items: int
    sentences: SharedSentences | None = None
    subsets: "NDArray[np.int64] | None" = None
    ids: "NDArray[np.int64] | None" = None


class PairErrors(NamedTuple):
    """The noise of items in one difference: squared standard errors and their degrees of freedom.

    `squared_error` and `degrees` treat items as correlated if they share a sentence; the component fields
    treat all items of a connected component of shared sentences as correlated.
    """

    squared_error: float
    degrees: float
    component_squared_error: float
    component_degrees: float


class Averaged(BaseModel):
    """A test set in an average; `axes` are its coordinates on the axes of `table.across`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    evaluator: str
    axes: dict[str, str] = added_field({})


class ItemNoise(BaseModel):
    """The noise from test items for each pair of rows at one grid point, so that reports need no items.

    Each tuple of errors or degrees has one entry per pair of `variants`, in the order of
    itertools.combinations: the results of `item_variances` for main scores in [-1, 1] or [0, 1]. Results of
    earlier versions have only `squared_errors`, computed as if items were independent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    axes: dict[str, str] = Field(description="coordinates of the grid point and the column: axis -> value")
    task: str = ""
    evaluator: str = ""
    averaged: tuple[Averaged, ...] = added_field((), "an average's test sets, instead of task and evaluator")
    num_items: int
    variants: tuple[str, ...]
    squared_errors: tuple[float, ...]
    degrees: tuple[float, ...] = added_field((), "degrees of freedom of the squared errors")
    component_squared_errors: tuple[float, ...] = added_field((), "squared errors by connected component")
    component_degrees: tuple[float, ...] = added_field(())
    lacks_sentences: bool = added_field(False, "whether the sentences of some items are unknown")

    @property
    def is_of_earlier_version(self) -> bool:
        """Whether the errors are those of an earlier version, which treated items as independent."""
        return not self.degrees

    def by_pair(self) -> Mapping[frozenset[str], PairErrors]:
        """Return the errors by pair of variants; earlier versions' errors get `num_items` - 1 degrees."""
        pairs = (frozenset(pair) for pair in combinations(self.variants, 2))
        columns = [self.squared_errors, self.degrees, self.component_squared_errors, self.component_degrees]
        if self.is_of_earlier_version:
            freedom = (self.num_items - 1.0,) * len(self.squared_errors)
            columns = [self.squared_errors, freedom] * 2
        return dict(zip(pairs, map(PairErrors, *columns), strict=True))


def item_variances(
    rows: Sequence[Influences],
    sets: Sequence[TestItems] = (),
    paired: Collection[tuple[int, int]] = (),
) -> tuple[PairErrors, ...]:
    """Return the items' noise for each pair of rows, in the order of itertools.combinations.

    The squared error is the part of the squared standard error of a difference that more items, but not more
    seeds, would reduce. Items that share a sentence err together. So the squared error is x'Ax, where x are
    the items' influences, and A is 1 for two items that share a sentence (`SharedSentences`), else 0. It is
    at least x'x, the value for independent items. The component fields use an A that is also 1 for two items
    linked by a chain of shared sentences.

    `sets` are the test sets of a column; the values of `rows` hold the items of one set after the other.
    Without `sets`, the items are one set and independent. Each set needs at least two items. A column's score
    is the mean over its sets, and its noise is computed over the union of their items.

    Items are crossed with seeds: an item's effect, averaged over seeds, includes a share of the item-seed
    interaction, which the noise between seeds already holds. The interaction is estimated with the same
    A and subtracted. `paired` are pairs of rows with equal seeds, as indices, the lower first: their
    interaction is estimated from the differences between the two rows. For other pairs it is estimated from
    each row. Values are rounded to six significant digits, so that they do not depend on the order of
    summation.
    """
    import numpy as np

    union = _Union(tuple(sets) or (TestItems(rows[0].values.shape[1]),))
    means = np.stack([row.values.mean(axis=0) for row in rows])
    errors = _squared_errors(rows, union.covariances(means), union, paired)
    freedom = [_degrees(sums) for sums in union.sums(means)]
    # A sentence's items are in no more clusters than there are items.
    degrees = [np.minimum(freedom[0], freedom[1]), freedom[2]]
    found = (np.maximum(errors[0], errors[1]), degrees[0], np.maximum(errors[0], errors[2]), degrees[1])
    return tuple(
        PairErrors(*(float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in values))
        for values in zip(*found, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Union:
    """The items of several test sets in sequence, in three clusterings: single, by sentence, by component.

    Influences are weighted so that their sum of squares is the squared error of the mean over the sets.
    """

    sets: tuple[TestItems, ...]

    def covariances(self, values: "Array") -> "Array":
        """Return the lines' covariances in each clustering: (lines, items) to (3, lines, lines)."""
        import numpy as np

        alone, clustered = self._centred(values)
        independent = alone @ alone.T if self._same is None else self._same.covariances(alone)
        if self._shared is None:
            return np.stack([independent] * 3)
        of_components = self._shared.sums_by_component(clustered)
        return np.stack([independent, self._shared.covariances(clustered), of_components @ of_components.T])

    def sums(self, values: "Array") -> "tuple[Array, Array, Array]":
        """Return the sum over each cluster in each clustering: three arrays of shape (lines, clusters)."""
        alone, clustered = self._centred(values)
        independent = alone if self._same is None else self._same.sums_by_sentence(alone)
        if self._shared is None:
            return independent, independent, independent
        return (
            independent,
            self._shared.sums_by_sentence(clustered),
            self._shared.sums_by_component(clustered),
        )

    def _centred(self, values: "Array") -> "tuple[Array, Array]":
        """Return the weighted influences centred by test set, and centred by test set and subset."""
        import numpy as np

        starts = np.cumsum([0, *(each.num_items for each in self.sets)])
        alone, clustered = np.empty_like(values), np.empty_like(values)
        for each, (start, end) in zip(self.sets, pairwise(starts), strict=True):
            weight = 1 / (len(self.sets) * np.sqrt(each.num_items * (each.num_items - 1)))
            part = weight * values[:, start:end]
            alone[:, start:end] = clustered[:, start:end] = part - part.mean(axis=1, keepdims=True)
            for subset in () if each.subsets is None else np.unique(each.subsets):
                members = each.subsets == subset
                clustered[:, start:end][:, members] -= clustered[:, start:end][:, members].mean(
                    axis=1, keepdims=True
                )
        return alone, clustered

    @cached_property
    def _same(self) -> SharedSentences | None:
        """The items, each with its id as its only sentence; None for a single set, or if no set has ids."""
        import numpy as np

        if len(self.sets) == 1 or all(each.ids is None for each in self.sets):
            return None
        return SharedSentences.union(
            [
                SharedSentences(np.arange(each.num_items), each.ids, each.num_items)
                if each.ids is not None
                else _nothing(each)
                for each in self.sets
            ]
        )

    @cached_property
    def _shared(self) -> SharedSentences | None:
        """The items with their sentences and, unless `_same` is None, with their ids as further sentences.

        None if neither sentences nor ids are known.
        """
        import numpy as np

        known = [each.sentences or _nothing(each) for each in self.sets]
        if self._same is None and not any(each.sentences for each in self.sets):
            return None
        sentences = SharedSentences.union(known)
        if self._same is None:
            return sentences
        # Items and sentences are named by other integers.
        names, numbers = np.unique(sentences.sentences, return_inverse=True)
        items = np.unique(self._same.sentences, return_inverse=True)[1] + len(names)
        return SharedSentences(
            np.concatenate([sentences.items, self._same.items]),
            np.concatenate([numbers, items]),
            sentences.num_items,
        )


def _nothing(items: TestItems) -> SharedSentences:
    import numpy as np

    none = np.zeros(0, dtype=np.int64)
    return SharedSentences(none, none, items.num_items)


def _squared_errors(
    rows: Sequence[Influences], whole: "Array", union: _Union, paired: Collection[tuple[int, int]]
) -> "Array":
    """Return the squared error of each pair of rows less the item-seed interaction: (3, pairs), at least 0.

    `whole`, of shape (3, rows, rows), are the covariances of the rows' means over seeds.
    """
    import numpy as np

    by_seed = _by_seed(rows, union)
    numbers = np.array([len(row.values) if row.is_seeded else 1 for row in rows])
    of_means, of_seeds = (np.diagonal(each, axis1=1, axis2=2) for each in (whole, by_seed))
    # A single line has no interaction that is known; those rows' numbers less one are 0.
    own = np.where(numbers > 1, (of_seeds / numbers - of_means) / np.maximum(numbers - 1, 1), 0.0)
    one, other = np.triu_indices(len(rows), 1)
    own_of_both = of_means[:, one] + of_means[:, other]
    total = own_of_both - 2 * whole[:, one, other]
    interaction = own[:, one] + own[:, other]
    for number, pair in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        first, second = (rows[index] for index in pair)
        if pair in paired and first.is_seeded and second.is_seeded and {*first.seeds} == {*second.seeds}:
            seeds = len(first.seeds)
            of_differences = of_seeds[:, pair].sum(axis=1) - 2 * by_seed[:, *pair]
            interaction[:, number] = (of_differences / seeds - total[:, number]) / max(seeds - 1, 1)
    errors = total - interaction
    # Equal rows leave only rounding errors.
    return np.where(errors > SMALLEST_SHARE * own_of_both, errors, 0.0)


def _by_seed(rows: Sequence[Influences], union: _Union) -> "Array":
    """Return the covariances between seeded rows' lines of one seed, summed over seeds: (3, rows, rows)."""
    import numpy as np

    found = np.zeros((3, len(rows), len(rows)))
    seeded = [index for index, row in enumerate(rows) if row.is_seeded]
    for seed in sorted({seed for index in seeded for seed in rows[index].seeds}):
        here = [index for index in seeded if seed in rows[index].seeds]
        lines = np.stack([rows[index].values[rows[index].seeds.index(seed)] for index in here])
        rows_here, columns_here = np.ix_(here, here)
        found[:, rows_here, columns_here] += union.covariances(lines)
    return found


def _degrees(sums: "Array") -> "Array":
    """Return the degrees of freedom of each difference of two lines: (lines, clusters) to (pairs,)."""
    import numpy as np

    return np.concatenate([degrees_of_freedom(line - sums[number + 1 :]) for number, line in enumerate(sums)])
