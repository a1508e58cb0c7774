"""The table of scores for all formats; its texts are plain, without markup."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from synthbench.config.coordinates import Coordinates, RowKey
from synthbench.statistics.differences import ROUNDING, interval_half_width

MISSING = "–"
CEILING_MARK = "†"
DIFFERENCE_MARK = "‡"
FLAGS = {
    "reported-elsewhere": ("§", "Quoted by the paper from another one."),
    "test-selected-k": ("*", "With the k that scored best on the test set."),
    "paste-error": ("!", "Repeats another row of the paper, probably by mistake."),
    "unclear": ("?", "Contradicts another value of the same paper."),
}
"""Flag of a published value -> its mark, and the mark's meaning."""
SEEN_MARK = "¶"
PUBLISHED = "published"
SHOWS = "What each row shows"
"""The heading of the list that describes each row in a sentence."""


@dataclass(frozen=True)
class Column:
    """A column of the table: a test set's main score, or the average over several test sets."""

    title: str
    metrics: tuple[str, ...]
    metric_titles: tuple[str, ...]
    is_average: bool = False
    is_seen: bool = False
    """Whether a model behind a row was trained on this column's data before."""

    @property
    def heading(self) -> str:
        """The title, marked with ¶ if `is_seen`."""
        return f"{self.title}{SEEN_MARK}" if self.is_seen else self.title

    @property
    def metric(self) -> str:
        """The score's name; several names if rows or averaged test sets use different scores."""
        return ", ".join(self.metrics)

    @property
    def metric_title(self) -> str:
        """The score in words; several texts if rows or averaged test sets use different scores."""
        return "; ".join(self.metric_titles)


@dataclass(frozen=True)
class Cell:
    """A score x 100: mean and standard deviation over seeds; `num_items` is None for an average."""

    mean: float
    standard_deviation: float | None
    num_seeds: int
    num_items: int | None = None
    num_dropped: int | None = None
    is_bold: bool = False

    @property
    def half_width(self) -> float | None:
        """Half the width of the 95 % interval over seeds; None for a single value or equal values.

        Equal values get no interval of width 0, since coarse scores can be equal by chance.
        """
        spread = self.standard_deviation
        if spread is None or spread <= 100 * ROUNDING:
            return None
        return interval_half_width(spread, self.num_seeds)


def csv_numbers(cell: Cell | None) -> list[str]:
    """Return mean, limits of the 95 % interval, standard deviation and number of seeds; six decimals."""
    if cell is None:
        return [""] * 5
    reach = cell.half_width
    ends = (None, None) if reach is None else (cell.mean - reach, cell.mean + reach)
    values = (cell.mean, *ends, cell.standard_deviation)
    return [*("" if value is None else f"{value:.6f}" for value in values), str(cell.num_seeds)]


@dataclass(frozen=True)
class MeasurementDifference:
    """A difference between a paper's measurement and ours; it concerns a row or a column of the table."""

    text: str
    of: Literal["row", "column"]


@dataclass(frozen=True)
class PublishedCell:
    """A paper's value, as printed; with a `refusal` it is not comparable and not shown."""

    value: str
    standard_deviation: str
    source: str
    flag: str = ""
    differences: tuple[MeasurementDifference, ...] = ()
    refusal: str = ""

    @property
    def marks(self) -> str:
        """‡ if the paper measured differently, then the mark of the value's flag; "" if neither applies."""
        flag = FLAGS[self.flag][0] if self.flag else ""
        return (DIFFERENCE_MARK if self.differences else "") + flag

    @property
    def text(self) -> str:
        """The value and its standard deviation, without marks."""
        return f"{self.value} ± {self.standard_deviation}" if self.standard_deviation else self.value


@dataclass(frozen=True)
class Row:
    """A variant at one point of the grid; None in `cells` or `published` means no value in this column."""

    key: RowKey
    cells: tuple[Cell | None, ...]
    is_ceiling: bool = False
    published: tuple[PublishedCell | None, ...] = ()

    @property
    def variant(self) -> str:
        """The variant's name."""
        return self.key.variant

    @property
    def axes(self) -> Coordinates:
        """The row's coordinates."""
        return self.key.axes

    @property
    def label(self) -> str:
        """The variant's name, with a mark if it is a ceiling."""
        return f"{self.variant} {CEILING_MARK}" if self.is_ceiling else self.variant

    @property
    def published_line(self) -> tuple[str, ...]:
        """The line of published values below the row: a label and a text per cell; () if there are none.

        Marks that all its values share follow the label.
        """
        shown = [cell for cell in self.published if cell is not None and not cell.refusal]
        if not shown:
            return ()
        common = "".join(mark for mark in shown[0].marks if all(mark in cell.marks for cell in shown))
        return (f"{PUBLISHED} {common}".strip(), *(_published_text(cell, common) for cell in self.published))

    def with_columns(self, chosen: range) -> "Row":
        """Return the row with only the cells of these columns, by their indices."""
        published = tuple(self.published[index] for index in chosen) if self.published else ()
        return replace(self, cells=tuple(self.cells[index] for index in chosen), published=published)


def _published_text(cell: PublishedCell | None, common: str) -> str:
    if cell is None or cell.refusal:
        return ""
    return cell.text + "".join(mark for mark in cell.marks if mark not in common)


@dataclass(frozen=True)
class Group:
    """Rows with the same coordinates, compared with each other; ceilings come last, set apart."""

    rows: tuple[Row, ...]

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that are not ceilings."""
        return tuple(row for row in self.rows if not row.is_ceiling)

    @property
    def blocks(self) -> tuple[tuple[Row, ...], ...]:
        """The compared rows and the ceilings, without empty blocks."""
        ceilings = tuple(row for row in self.rows if row.is_ceiling)
        return tuple(block for block in (self.compared, ceilings) if block)


@dataclass(frozen=True)
class Table:
    """The table of scores; `num_seeds` is the number of seeds that most cells have.

    `first_notes` stand below the table: at most three notes on how to read cells, claims and warnings.
    `figure_notes` are for figures of the table, which show intervals instead of ± and bold. `shows`
    describes rows, as (row, description).
    """

    name: str
    caption: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    decimals: int
    num_seeds: int
    notes: tuple[str, ...] = ()
    first_notes: tuple[tuple[str, ...], ...] = ()
    figure_notes: tuple[str, ...] = ()
    shows: tuple[tuple[str, str], ...] = ()

    @property
    def below(self) -> tuple[str, ...]:
        """The notes that stand below the table."""
        return tuple(" ".join(sentences) for sentences in self.first_notes)

    @property
    def further_notes(self) -> tuple[str, ...]:
        """The notes for the separate file: all except those that stand below the table."""
        first = {sentence for sentences in self.first_notes for sentence in sentences}
        return tuple(note for note in self.notes if note not in first)

    @property
    def has_rivals(self) -> bool:
        """Whether any group has several rows that are not ceilings."""
        return any(len(group.compared) > 1 for group in self.groups)

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows from top to bottom."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def header(self) -> tuple[str, ...]:
        """The titles of all columns: the axes, "variant", then the score columns."""
        return (*self.axes, "variant", *(column.heading for column in self.columns))

    def with_columns(self, chosen: range) -> "Table":
        """Return the table with only these score columns, by their indices."""
        groups = tuple(Group(tuple(row.with_columns(chosen) for row in group.rows)) for group in self.groups)
        return replace(self, columns=tuple(self.columns[index] for index in chosen), groups=groups)

    def heading(self, group: Group) -> str:
        """Return the coordinates of a group's rows; "every AXIS" if the rows have none."""
        values = dict(group.rows[0].axes)
        named = [f"{axis}: {values[axis]}" for axis in self.axes if axis in values]
        return ", ".join(named) or f"every {', '.join(self.axes)}"

    def row_names(self, row: Row) -> tuple[str, ...]:
        """Return the row's axis values, with a dash for an axis without a value, and the row's label."""
        return (*(dict(row.axes).get(axis, MISSING) for axis in self.axes), row.label)

    def cells(self, index: int) -> tuple[Cell, ...]:
        """Return the cells of one column that have a score."""
        cells = (row.cells[index] for row in self.rows)
        return tuple(cell for cell in cells if cell is not None)

    def mean_text(self, cell: Cell) -> str:
        """Return the cell's mean, rounded as printed."""
        return f"{cell.mean:.{self.decimals}f}"

    def spread_text(self, cell: Cell) -> str:
        """Return the cell's standard deviation as printed; "" for a single seed or an undefined mean."""
        spread = cell.standard_deviation
        return "" if spread is None or math.isnan(spread) else f"{spread:.{self.decimals}f}"

    def seeds_text(self, cell: Cell) -> str:
        """Return "[n=2]" for a cell with another number of seeds than most, else ""."""
        return "" if cell.num_seeds == self.num_seeds else f"[n={cell.num_seeds}]"
