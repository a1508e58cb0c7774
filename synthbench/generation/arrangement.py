"""Where in a batch its sequences stand: without gaps, and in parts of similar length."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Parts(NamedTuple):
    """Parts of `size` sequences (the last one may be smaller), and how many positions each attends to."""

    size: int
    widths: tuple[int, ...]


def without_gaps(lengths: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the old line of what shall stand at each line, so that lines of length 0 come last.

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
    """Return the old line of what shall stand at each line, so that longer sequences are in earlier parts.

    Parts have `size` lines. A sequence that is in its part already stays; within a part there is no order.
    """
    import numpy as np

    lines = np.arange(len(lengths))
    part = np.empty_like(lines)
    part[np.argsort(-lengths, kind="stable")] = lines // size
    origins = lines.copy()
    moving = part != lines // size
    # The places that are left in a part are as many as the sequences that move there.
    origins[moving] = lines[moving][np.argsort(part[moving], kind="stable")]
    return origins
