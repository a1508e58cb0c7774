"""Confusion table of intended and judged labels (DINO, EMNLP 2021, Table 3), with 95 % intervals."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

CONFIDENCE = 0.95
FEWEST_FOR_AN_INTERVAL = 10


class Share(BaseModel):
    """A part of a total: both counts, the percentage, and its 95 % interval (Wilson score)."""

    model_config = ConfigDict(frozen=True)

    count: int
    total: int
    percent: float
    low: float
    high: float


class Confusion(BaseModel):
    """Shares of items intended as `column` and judged as `row`: `cells[row][column]`.

    The shares of a column sum to 100 %; `totals` has the number of items of each column.
    """

    model_config = ConfigDict(frozen=True)

    rows: list[str]
    columns: list[str]
    totals: dict[str, int]
    cells: dict[str, dict[str, Share]]


class Correlation(BaseModel):
    """Spearman's rank correlation of pairs of numbers; no interval for fewer than 10 pairs."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float | None
    high: float | None
    num_pairs: int


def share(count: int, total: int) -> Share:
    """Return `count` of `total` (at least 1) with its Wilson score interval (Wilson 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return Share(
        count=count,
        total=total,
        percent=100 * count / total,
        low=100 * float(interval.low),
        high=100 * float(interval.high),
    )


def confusion(labels: Iterable[tuple[str, str]], rows: Sequence[str], columns: Sequence[str]) -> Confusion:
    """Count pairs of an intended label (one of `columns`) and a judged label (one of `rows`).

    Columns without items are left out.
    """
    counts = Counter(labels)
    totals = {column: sum(counts[column, row] for row in rows) for column in columns}
    found = {column: total for column, total in totals.items() if total}
    cells = {
        row: {column: share(counts[column, row], total) for column, total in found.items()} for row in rows
    }
    return Confusion(rows=list(rows), columns=list(found), totals=found, cells=cells)


def correlation(scores: Mapping[str, tuple[float, float]]) -> Correlation | None:
    """Return the rank correlation of two numbers per item; None if either number is the same for all items.

    `scores` maps an item's id to its two numbers. The interval is Fisher's with the standard error of Bonett
    and Wright (2000), whose coverage holds for rank correlations; ties make it a little too narrow.
    """
    from scipy.stats import spearmanr

    first, second = zip(*scores.values(), strict=True) if scores else ((), ())
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    value = float(spearmanr(first, second).statistic)
    low, high = _interval(value, len(first))
    return Correlation(value=value, low=low, high=high, num_pairs=len(first))


def _interval(value: float, num_pairs: int) -> tuple[float, float] | tuple[None, None]:
    if num_pairs < FEWEST_FOR_AN_INTERVAL:
        return None, None
    if abs(value) > 1 - 1e-12:
        return value, value
    from scipy.special import ndtri

    error = math.sqrt((1 + value**2 / 2) / (num_pairs - 3))
    margin = float(ndtri((1 + CONFIDENCE) / 2)) * error
    return math.tanh(math.atanh(value) - margin), math.tanh(math.atanh(value) + margin)
