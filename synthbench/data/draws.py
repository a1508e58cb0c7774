"""Random draws by hashes: of a seed and an id, so that neither order nor Python's hash seed matters."""

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from synthbench.data.records import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def digest(*parts: str | int) -> bytes:
    """Return a hash of the parts: the same on every machine and Python."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()


def rank_of(name: str, seed: int) -> Callable[[Record], bytes]:
    """Return a sort key that shuffles records by their ids.

    The step's name is in it, so that with one seed a sample is not made of the records a split has chosen.
    """
    return lambda record: digest(name, seed, record.id)


def shuffled(name: str, seed: int, ids: Iterable[str]) -> "NDArray[np.intp]":
    """Return the row numbers of ids in the order of `rank_of`; equal ids stay in theirs."""
    import numpy as np

    hashes = bytearray()
    for each in ids:
        hashes += digest(name, seed, each)
    columns = np.frombuffer(hashes, ">u8").reshape(-1, 4).astype(np.uint64)
    return np.lexsort(columns.T[::-1])


def rounded(number: float) -> int:
    """Return the nearest whole number of a number that is not negative, halves upwards."""
    return int(number + 0.5)
