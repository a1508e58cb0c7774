"""Names and numbers in sentences."""

from collections.abc import Sequence

MAX_NAMES = 6


def listed(names: Sequence[str], most: int = MAX_NAMES, between: str = ", ") -> str:
    """Return the names joined; if there are many, only the first, and how many others there are."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
