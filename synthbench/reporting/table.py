"""The one table that LaTeX, Markdown, CSV and the terminal print; all its texts are plain."""

from dataclasses import dataclass

MISSING = "–"
CEILING_MARK = "†"
Axes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Column:
    """A test set's main score, or the average of several."""

    title: str
    metrics: tuple[str, ...]
    metric_titles: tuple[str, ...]
    is_average: bool = False

    @property
    def metric(self) -> str:
        """The name of the score; several names if rows or averaged sets differ in it."""
        return ", ".join(self.metrics)

    @property
    def metric_title(self) -> str:
        """The score in words for readers."""
        return "; ".join(self.metric_titles)


@dataclass(frozen=True)
class Cell:
    """A score x 100 over seeds; an average has no items of its own."""

    mean: float
    standard_deviation: float | None
    num_seeds: int
    num_items: int | None = None
    num_dropped: int | None = None
    is_bold: bool = False


@dataclass(frozen=True)
class Row:
    """A variant at one point of the grid; a cell is None where nothing was scored."""

    variant: str
    axes: Axes
    cells: tuple[Cell | None, ...]
    is_ceiling: bool = False

    @property
    def label(self) -> str:
        """The variant's name, with a mark if it is a ceiling."""
        return f"{self.variant} {CEILING_MARK}" if self.is_ceiling else self.variant

    def axis_value(self, axis: str) -> str:
        """Return the name of this axis' value, a dash if the row is not on the axis."""
        return dict(self.axes).get(axis, MISSING)


@dataclass(frozen=True)
class Group:
    """Rows with the same axis values, compared with each other; ceilings come last and stand apart."""

    rows: tuple[Row, ...]

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that are no ceilings."""
        return tuple(row for row in self.rows if not row.is_ceiling)

    @property
    def blocks(self) -> tuple[tuple[Row, ...], ...]:
        """The compared rows and the ceilings, without empty blocks."""
        ceilings = tuple(row for row in self.rows if row.is_ceiling)
        return tuple(block for block in (self.compared, ceilings) if block)


@dataclass(frozen=True)
class Table:
    """What is printed, whatever the format; `num_seeds` is what most cells have.

    `figure_notes` are for figures of the table, which show intervals where printers show ± and bold.
    """

    name: str
    caption: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    decimals: int
    num_seeds: int
    notes: tuple[str, ...] = ()
    figure_notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows from top to bottom."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def header(self) -> tuple[str, ...]:
        """The titles of the columns that name a row, then those of the scores."""
        return (*self.axes, "variant", *(column.title for column in self.columns))

    def row_names(self, row: Row) -> tuple[str, ...]:
        """Return the row's axis values and label."""
        return (*(row.axis_value(axis) for axis in self.axes), row.label)

    def cells(self, index: int) -> tuple[Cell, ...]:
        """Return the cells of one column that have a score."""
        cells = (row.cells[index] for row in self.rows)
        return tuple(cell for cell in cells if cell is not None)

    def mean_text(self, cell: Cell) -> str:
        """Return the mean as it is printed."""
        return f"{cell.mean:.{self.decimals}f}"

    def spread_text(self, cell: Cell) -> str:
        """Return the standard deviation as it is printed, empty for a single seed."""
        spread = cell.standard_deviation
        return "" if spread is None else f"{spread:.{self.decimals}f}"

    def seeds_text(self, cell: Cell) -> str:
        """Return "[n=2]" where a cell has another number of seeds than most, else nothing."""
        return "" if cell.num_seeds == self.num_seeds else f"[n={cell.num_seeds}]"
