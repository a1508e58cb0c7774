"""Order of sequences in a batch: without gaps, and in parts of similar length."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Parts(NamedTuple):
    """Parts of `size` sequences (the last may be smaller), and the number of positions each attends to."""

    size: int
    widths: tuple[int, ...]


def without_gaps(lengths: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the old row for each new row, so that rows of length 0 come last; shape as `lengths`.

    Only the last sequences move, into the gaps.
    """
    import numpy as np

    origins = np.arange(len(lengths))
    used = lengths > 0
    num_used = int(used.sum())
    gaps = np.flatnonzero(~used[:num_used])
    beyond = num_used + np.flatnonzero(used[num_used:])
    origins[gaps], origins[beyond] = beyond, gaps
    return origins


def in_parts(lengths: "NDArray[np.int64]", size: int) -> "NDArray[np.int64]":
    """Return the old row for each new row, so that longer sequences are in earlier parts; shape as `lengths`.

    Parts have `size` rows. A sequence already in its part stays; within a part there is no order.
    """
    import numpy as np

    lines = np.arange(len(lengths))
    part = np.empty_like(lines)
    part[np.argsort(-lengths, kind="stable")] = lines // size
    origins = lines.copy()
    moving = part != lines // size
    # Each part has as many free rows as sequences that move there.
    origins[moving] = lines[moving][np.argsort(part[moving], kind="stable")]
    return origins
