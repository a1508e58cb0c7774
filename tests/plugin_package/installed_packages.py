"""Refreshes the installed packages as if in a new process."""

import sys

from synthbench.base import entry_points
from synthbench.plugins import loading


def forget(*modules: str) -> None:
    """Clear the caches of installed packages, and unload these modules."""
    for cached in (entry_points._installed, entry_points.offered, loading.installed_component):
        cached.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)
