"""The notes that stand below no table: their file's parts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

BELOW = "Below the tables"
"""The title of notes for which a paper has no room below their table."""


@dataclass(frozen=True)
class NotesOn:
    """The further notes on one part of a report."""

    title: str
    notes: tuple[str, ...]


def each_once(parts: Iterable[NotesOn]) -> Iterator[NotesOn]:
    """Yield the parts that have notes; a note that several parts have stands in the first."""
    known: set[str] = set()
    for part in parts:
        notes = tuple(note for note in dict.fromkeys(part.notes) if note not in known)
        known.update(notes)
        if notes:
            yield NotesOn(part.title, notes)
