"""The noise in a difference between two rows from the choice of test items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNIFICANT_DIGITS = 6
SMALLEST_SHARE = 1e-9


@dataclass(frozen=True)
class Influences:
    """The influence of each test item on a row's score by seed: `values` of shape (seeds, items).

    A row that does not depend on the seed has one line, and `is_seeded` is False.
    """

    values: "NDArray[np.float64]"
    seeds: tuple[int, ...]
    is_seeded: bool = True


class ItemNoise(BaseModel):
    """The noise from test items for each pair of rows at one grid point, so that reports need no items.

    `squared_errors` are those of `item_variances`, for main scores in [-1, 1] or [0, 1], for the pairs of
    `variants` in the order of itertools.combinations.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    axes: dict[str, str]
    task: str
    evaluator: str
    num_items: int
    variants: tuple[str, ...]
    squared_errors: tuple[float, ...]

    def by_pair(self) -> Mapping[frozenset[str], float]:
        """Return the squared errors by pair of variants."""
        pairs = (frozenset(pair) for pair in combinations(self.variants, 2))
        return dict(zip(pairs, self.squared_errors, strict=True))


def item_variances(rows: Sequence[Influences]) -> tuple[float, ...]:
    """Return the items' squared error for each pair of rows, in the order of itertools.combinations.

    It is the part of the squared standard error of a difference that more items, but not more seeds, would
    reduce; at least 0. Items are crossed with seeds: an item's effect, averaged over seeds, includes a share
    of the item-seed interaction, which the noise between seeds already holds. A two-way analysis of variance
    estimates that share, which is subtracted. All rows have the same two or more items. Rounded to six
    digits, so that no order of summation shows.
    """
    import numpy as np

    num_items = rows[0].values.shape[1]
    stacked = np.concatenate([row.values for row in rows])
    stacked = stacked - stacked.mean(axis=1, keepdims=True)
    # Covariances over the items between the scores of any two models suffice for all pairs of rows.
    covariances = stacked @ stacked.T / (num_items * (num_items - 1))
    lines = _lines(rows)
    found = (
        _variance(covariances, (rows[one], lines[one]), (rows[other], lines[other]))
        for one, other in combinations(range(len(rows)), 2)
    )
    return tuple(float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in found)


def _lines(rows: Sequence[Influences]) -> "list[NDArray[np.int64]]":
    """Return the indices of each row's lines in the stacked influences, sorted by seed."""
    import numpy as np

    found, start = [], 0
    for row in rows:
        found.append(start + np.argsort(row.seeds, kind="stable"))
        start += len(row.values)
    return found


def _variance(
    covariances: "NDArray[np.float64]",
    one: "tuple[Influences, NDArray[np.int64]]",
    other: "tuple[Influences, NDArray[np.int64]]",
) -> float:
    (first, ours), (second, theirs) = one, other
    own, others = covariances[ours[:, None], ours], covariances[theirs[:, None], theirs]
    both = covariances[ours[:, None], theirs]
    total = own.mean() + others.mean() - 2 * both.mean()
    if first.is_seeded and second.is_seeded and sorted(first.seeds) == sorted(second.seeds):
        interaction = _interaction(own + others - both - both.T)
    else:
        interaction = sum(
            _interaction(each) for row, each in ((first, own), (second, others)) if row.is_seeded
        )
    # Equal rows leave only rounding errors.
    is_any = total - interaction > SMALLEST_SHARE * (own.mean() + others.mean())
    return float(total - interaction) if is_any else 0.0


def _interaction(covariances: "NDArray[np.float64]") -> float:
    """Return the interaction's share of a mean over seeds, from covariances of shape (seeds, seeds)."""
    num_seeds = len(covariances)
    if num_seeds < 2:
        return 0.0
    return float((covariances.diagonal().mean() - covariances.mean()) / (num_seeds - 1))
