"""The home folder, which holds the store and the tracking database."""

import os
import tempfile
from pathlib import Path

from synthbench.base.errors import UserError


def home() -> Path:
    """Return $SYNTHBENCH_HOME, or .synthbench in the working folder."""
    return Path(os.environ.get("SYNTHBENCH_HOME") or ".synthbench")


def make_store_folder() -> Path:
    """Create the store's folder in the home and return it; raises UserError if it can't be written."""
    root = home() / "store"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder in (home(), root):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{root}: the store can't be made: {reason}; set SYNTHBENCH_HOME to a folder you may write"
        ) from error
    return root
