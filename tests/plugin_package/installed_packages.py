"""Which packages are installed, as a process of its own would see it."""

import sys

from synthbench.base import entry_points
from synthbench.plugins import loading


def forget(*modules: str) -> None:
    """Look at the installed packages again, and import these modules again."""
    for cached in (entry_points._installed, entry_points.offered, loading.installed_component):
        cached.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)
