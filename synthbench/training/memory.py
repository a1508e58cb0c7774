"""Memory between the steps of a training."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
LARGEST = 2**31 - 1
GLIBCS_OWN = {M_TRIM_THRESHOLD: 128 * 1024, M_MMAP_MAX: 65_536}


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let this process keep what it frees within the block, instead of giving it back and asking for it anew.

    glibc hands large blocks back to the kernel at once, and gets them again page by page, filled with zeros:
    for the gradient of a vocabulary's embeddings, at every step. What is free in the end is given back. Where
    there is no glibc, nothing happens.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        for parameter, value in GLIBCS_OWN.items():
            library.mallopt(parameter, value)
        library.malloc_trim(0)
