"""How much of a difference between two rows is the choice of the test items."""

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
    """How each test item moves the score of one row with each seed: `values` of shape (seeds, items).

    Of a row that no seed changes there is one line, and `is_seeded` is False.
    """

    values: "NDArray[np.float64]"
    seeds: tuple[int, ...]
    is_seeded: bool = True


class ItemNoise(BaseModel):
    """What the choice of test items adds to the noise, for each pair of rows at one point of the grid.

    `squared_errors` are those of `item_variances`, of the main scores in [-1, 1] or [0, 1], for the pairs of
    `variants` in the order of itertools.combinations. So a report needs no per-item files.
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
    """Return, for each pair of rows in the order of itertools.combinations, the items' squared error.

    That is the part of the squared standard error of their difference that another draw of items would
    change and more seeds would not. The items' effects are crossed with those of the seeds: an item's effect,
    averaged over the seeds, holds a share of what item and seed do together, which the noise between seeds
    holds already; it is estimated from what a two-way analysis of variance leaves over, and taken away. At
    least 0. All rows are of the same items, two or more. Rounded to six digits, so that no sum's order shows.
    """
    import numpy as np

    num_items = rows[0].values.shape[1]
    stacked = np.concatenate([row.values for row in rows])
    stacked = stacked - stacked.mean(axis=1, keepdims=True)
    # Covariances of the scores of any two models, by the items: all that pairs of rows need.
    covariances = stacked @ stacked.T / (num_items * (num_items - 1))
    places = _places(rows)
    found = (
        _variance(covariances, (rows[one], places[one]), (rows[other], places[other]))
        for one, other in combinations(range(len(rows)), 2)
    )
    return tuple(float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in found)


def _places(rows: Sequence[Influences]) -> "list[NDArray[np.int64]]":
    """Return where each row's lines stand, sorted by seed."""
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
    # What is left of rows that do not differ is rounding.
    is_any = total - interaction > SMALLEST_SHARE * (own.mean() + others.mean())
    return float(total - interaction) if is_any else 0.0


def _interaction(covariances: "NDArray[np.float64]") -> float:
    """Return the share of the mean over seeds that is of item and seed together; of shape (seeds, seeds)."""
    num_seeds = len(covariances)
    if num_seeds < 2:
        return 0.0
    return float((covariances.diagonal().mean() - covariances.mean()) / (num_seeds - 1))
