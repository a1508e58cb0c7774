"""Write lists of names, counted nouns and shortened texts for messages."""

from collections.abc import Iterable

MAX_NAMES = 6


def listed(names: Iterable[str], most: int = MAX_NAMES, between: str = ", ") -> str:
    """Return the first `most` names, joined by `between`, and a count of further names: "a, b and 3 more"."""
    shown = list(names)
    more = len(shown) - most
    return between.join(shown[:most]) + (f" and {more:,} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, length: int) -> str:
    """Return the text; if it is longer than `length`, cut to that many characters, the last an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
