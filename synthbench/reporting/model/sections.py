"""Sections: grids of text with notes, which every format prints."""

from collections.abc import Sequence
from dataclasses import dataclass

Line = tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names the rows, `foot` follows below a rule."""

    header: Line
    body: tuple[Line, ...]
    foot: tuple[Line, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Block:
    """Grids under one title with their notes: one float in LaTeX. Without a grid it is its title."""

    title: str
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()

    def heading(self, grid: Grid) -> str:
        """Return a grid's title, with the block's before the first grid's."""
        titles = (self.title if grid is self.grids[0] else "", grid.title)
        return ": ".join(title for title in titles if title)


@dataclass(frozen=True)
class CsvTable:
    """The numbers of a section at full precision."""

    fields: Sequence[str]
    lines: Sequence[Sequence[object]]


@dataclass(frozen=True)
class ReportSection:
    """What a report says beside its scores: files NAME.tex, NAME.md and NAME.csv, and a part of the page.

    `notes` belong to all blocks; `data_notes` are those that the table of scores has, too. Without blocks
    there is only the CSV file.
    """

    name: str
    csv: CsvTable
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    data_notes: tuple[str, ...] = ()
    is_numbered: bool = False
    """Whether LaTeX labels count the blocks: "tab:x-comparisons-1"."""
