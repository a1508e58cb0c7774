"""Compare methods for making synthetic training data for sentence embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synthbench.python import Results, Study, evaluate, generate, load, run

__version__ = "0.1.0"
__all__ = ["Results", "Study", "__version__", "evaluate", "generate", "load", "run"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of the module's protocol
    # Imported when asked for: the command line and the plug-ins need none of it.
    if name in __all__:
        return getattr(import_module("synthbench.python"), name)
    raise AttributeError(f"module 'synthbench' has no attribute {name!r}")
