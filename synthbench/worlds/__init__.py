"""The generated world whose true similarities are known: what can be asked of it, and which one it is.

No other package names the world. Another takes its place by offering what is imported here: data sets and an
LLM with their settings (`settings.py`), models that ship with it, and a judge of sentences.
"""

from typing import TYPE_CHECKING, Final, Literal

from synthbench.worlds.sandbox import VERSION
from synthbench.worlds.sandbox.shipped import PREFIX as MODEL_PREFIX
from synthbench.worlds.sandbox.shipped import folder as model_folder
from synthbench.worlds.sandbox.shipped import names as model_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from synthbench.base.runtime import Progress
    from synthbench.worlds.sandbox.llm.process import SandboxServer
    from synthbench.worlds.sandbox.oracle import OracleVerdict
    from synthbench.worlds.settings import LLMSettings

__all__ = [
    "MODEL_PREFIX",
    "NAME",
    "VERSION",
    "WorldName",
    "bands",
    "judge",
    "model_folder",
    "model_names",
    "running_llm",
    "verdict_labels",
]

WorldName = Literal["sandbox"]
NAME: Final[WorldName] = "sandbox"
"""The world's name: of its sources, its LLM, its judge, its profile, and before the names of its models."""


def running_llm(settings: "LLMSettings") -> "AbstractContextManager[SandboxServer]":
    """Run the world's LLM in a process of its own, for as long as the context lasts.

    Raises UserError if it does not start.
    """
    from synthbench.worlds.sandbox.llm.process import running_server

    return running_server(settings)


def judge(texts: "Sequence[tuple[str, ...]]", progress: "Progress") -> "list[OracleVerdict]":
    """Return what the world says of each sentence, or of each two sentences that are to be compared."""
    from synthbench.worlds.sandbox import oracle

    return oracle.judge(texts, progress)


def verdict_labels(num_texts: int) -> tuple[str, ...]:
    """Return the labels that verdicts on one or two sentences may have, in the order of a table's rows."""
    from synthbench.worlds.sandbox import oracle

    return oracle.labels_for(num_texts)


def bands() -> "Mapping[str, tuple[float, float]]":
    """Return the true similarities, from and to, that each label of two sentences stands for."""
    from synthbench.worlds.sandbox import oracle

    return oracle.bands()
