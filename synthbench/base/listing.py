"""Names and numbers in sentences."""

from collections.abc import Iterable

MAX_NAMES = 6


def listed(names: Iterable[str], most: int = MAX_NAMES, between: str = ", ") -> str:
    """Return the names joined; if there are many, only the first, and how many others there are."""
    shown = list(names)
    more = len(shown) - most
    return between.join(shown[:most]) + (f" and {more:,} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, length: int) -> str:
    """Return a text of at most so many characters; an ellipsis ends one that was longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
