"""The forest plot: the primary differences with their intervals, computed once for all formats."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.model.table import Column
from synthbench.reporting.model.verdicts import STAR, interval_text, signed

ROOM = 0.04
"""The share of the plot's width that stays free at each end."""


@dataclass(frozen=True)
class ForestLine:
    """One primary difference x 100 with its interval; without a test, `low` and `high` equal `value`."""

    column: str
    name: str
    value: float
    low: float
    high: float
    text: str
    is_tested: bool
    direction: int


@dataclass(frozen=True)
class Forest:
    """The primary differences in the order of the table; `num_left_out` is the number that `cut` removed.

    `low` and `high` are the ends of the scale, which includes 0.
    """

    lines: tuple[ForestLine, ...]
    low: float
    high: float
    decimals: int
    num_left_out: int = 0

    @property
    def title(self) -> str:
        """What is plotted, and what the marks mean."""
        bars = "bars: simultaneous 95 % intervals" if any(each.is_tested for each in self.lines) else ""
        star = f"{STAR}: significant at 5 %" if any(each.direction for each in self.lines) else ""
        columns = {each.column for each in self.lines}
        where = f" on {columns.pop()}" if len(columns) == 1 else ""
        return "; ".join(filter(None, (f"Primary differences × 100{where}", bars, star)))

    @property
    def more(self) -> str:
        """How many differences are not plotted; "" if all are."""
        number = self.num_left_out
        return f"{number:,} smaller or not significant: see comparisons.csv." if number else ""

    @property
    def groups(self) -> tuple[tuple[str, tuple[ForestLine, ...]], ...]:
        """The lines by column title; the title is "" if there is only one column."""
        found = [(column, tuple(of)) for column, of in groupby(self.lines, lambda each: each.column)]
        return tuple((column if len(found) > 1 else "", of) for column, of in found)

    @property
    def ends(self) -> tuple[str, str]:
        """The ends of the scale, as text."""
        low, high = (f"{end:.{self.decimals}f}".replace("-", "−") for end in (self.low, self.high))
        return low, high

    def share(self, value: float) -> float:
        """Return a value's position on the scale: 0 at `low`, 1 at `high`."""
        return (value - self.low) / (self.high - self.low)

    @property
    def labels(self) -> tuple[str, ...]:
        """The plot's labels, from top to bottom: each column's title and its lines' names."""
        return tuple(
            label
            for title, lines in self.groups
            for label in (*filter(None, [title]), *(each.name for each in lines))
        )

    def cut(self, most: int) -> "Forest":
        """Return the plot with at most `most` labels, but at least one difference.

        Drops the smallest differences that are not significant, then the smallest significant ones.
        """
        found = self
        while len(found.labels) > most and len(found.lines) > 1:
            least = min(found.lines, key=lambda each: (bool(each.direction), abs(each.value)))
            lines = [each for each in found.lines if each is not least]
            found = _forest(lines, self.decimals, found.num_left_out + 1)
        return found


def forest(analysis: Analysis) -> Forest | None:
    """Return the plot of all primary differences that can be compared; None if there are none."""
    decimals = analysis.options.decimals
    primary = [(source.column, each) for source, each in analysis.decisions.of("primary") if not each.refusal]
    return _forest(list(_lines(primary, decimals)), decimals) if primary else None


def _lines(primary: Iterable[tuple[Column, Comparison]], decimals: int) -> Iterator[ForestLine]:
    for column, each in primary:
        value = 100 * each.value
        reach = 100 * each.finding.half_width if each.finding else 0.0
        text = interval_text(each, decimals) if each.finding else signed(value, decimals)
        yield ForestLine(
            column=column.title,
            name=each.name,
            value=value,
            low=value - reach,
            high=value + reach,
            text=text.replace(" (", f"{STAR} (", 1) if each.direction else text,
            is_tested=each.finding is not None,
            direction=each.direction,
        )


def _forest(lines: Sequence[ForestLine], decimals: int, num_left_out: int = 0) -> Forest:
    low = min(0.0, *(each.low for each in lines))
    high = max(0.0, *(each.high for each in lines))
    room = ROOM * (high - low) or 1.0
    return Forest(tuple(lines), low - room, high + room, decimals, num_left_out)
