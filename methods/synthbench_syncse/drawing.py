"""Choices that depend on what is chosen for, never on when or in which order."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def draw(items: Sequence[Item], num_drawn: int, *of: object) -> tuple[Item, ...]:
    """Return distinct items in random order, the same for equal `of` everywhere; all if there are fewer."""
    order = sorted(range(len(items)), key=lambda index: _digest(*of, index))
    return tuple(items[index] for index in order[:num_drawn])


def number(*of: object) -> int:
    """Return a number of 31 bits, the same for equal `of` on every machine."""
    return int.from_bytes(_digest(*of)[:4]) >> 1


def _digest(*of: object) -> bytes:
    return hashlib.sha256("\x1f".join(map(str, of)).encode(errors="surrogatepass")).digest()
