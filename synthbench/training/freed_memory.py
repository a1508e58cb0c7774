"""Reuse of freed memory in a training, instead of returning it to the system."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_LARGEST = 2**31 - 1
_GLIBCS_OWN = {_M_TRIM_THRESHOLD: 128 * 1024, _M_MMAP_MAX: 65_536}


@contextmanager
def reusing_freed_memory() -> Iterator[None]:
    """Within the block, let this process reuse freed memory instead of returning it to the system.

    At every step, glibc would return large blocks, such as the gradient of the token embeddings, to the
    kernel and get their pages back one by one, filled with zeros. Free memory is returned at the end.
    Without glibc, this does nothing.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    library.mallopt(_M_MMAP_MAX, 0)
    library.mallopt(_M_TRIM_THRESHOLD, _LARGEST)
    try:
        yield
    finally:
        for parameter, value in _GLIBCS_OWN.items():
            library.mallopt(parameter, value)
        library.malloc_trim(0)
