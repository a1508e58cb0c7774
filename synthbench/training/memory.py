"""Memory between the steps of a training."""

import ctypes
import sys

M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
LARGEST = 2**31 - 1


def keep_freed_memory() -> None:
    """Let this process keep what it frees, instead of giving it back and asking for it anew.

    glibc hands large blocks back to the kernel at once, and gets them again page by page, filled with zeros:
    for the gradient of a vocabulary's embeddings, at every step. Where there is no glibc, nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, LARGEST)
