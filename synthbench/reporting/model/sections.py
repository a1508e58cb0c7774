"""Sections of a report: grids of text with notes, which every format prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Line = tuple[str, ...]
MOST_NOTES = 3
"""Maximum number of notes below a table; the others are in a separate file."""


@dataclass(frozen=True)
class Grid:
    """A table of strings; its first column names the rows, and the lines of `foot` stand below a rule."""

    header: Line
    body: tuple[Line, ...]
    foot: tuple[Line, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Block:
    """Grids under one title, with notes. Without grids, only the title is printed.

    `notes` are in order of importance, the most important first.
    """

    title: str
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first_notes(self) -> tuple[str, ...]:
        """The notes printed below the block: at most three."""
        return self.notes[:MOST_NOTES]

    def heading(self, grid: Grid) -> str:
        """Return a grid's title; the first grid's title begins with the block's title."""
        titles = (self.title if grid is self.grids[0] else "", grid.title)
        return ": ".join(title for title in titles if title)


@dataclass(frozen=True)
class CsvTable:
    """Content of a section's CSV file: column names, and lines with numbers at full precision."""

    fields: Sequence[str]
    lines: Sequence[Sequence[object]]


@dataclass(frozen=True)
class ReportSection:
    """A section of a report: files NAME.tex, NAME.md and NAME.csv, and a part of the HTML page.

    `notes` apply to all blocks, the most important first. Without blocks there is only a CSV file.
    """

    name: str
    csv: CsvTable
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    is_numbered: bool = False
    """Whether LaTeX labels count the blocks: "tab:x-comparisons-1"."""

    @property
    def first_notes(self) -> tuple[str, ...]:
        """The notes printed below the section's tables: at most three."""
        return self.notes[:MOST_NOTES]

    @property
    def further_notes(self) -> tuple[str, ...]:
        """The remaining notes, for the separate file; each note of a block begins with the block's title."""
        of_blocks = (f"{each.title}: {note}" for each in self.blocks for note in each.notes[MOST_NOTES:])
        return (*self.notes[MOST_NOTES:], *of_blocks)


def each_once(parts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return each note once, in the first part that has it; parts left without notes are dropped."""
    found: dict[str, list[str]] = {}
    known: set[str] = set()
    for title, notes in parts.items():
        if own := [note for note in dict.fromkeys(notes) if note not in known]:
            found[title] = own
            known.update(own)
    return found
