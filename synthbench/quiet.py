"""Keeps off the terminal what nobody asked for."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synthbench.runtime import Progress, ProgressTask


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars, and reports of left-out layers and new heads: they are what was asked for."""
    from transformers.utils import logging as transformers_logging

    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers")]
    levels = [logger.level for logger in loggers]
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


class _SilentTask:
    def advance(self, amount: int = 1) -> None:
        """Count nothing."""


def progress_task(
    progress: "Progress | None", description: str, total: int
) -> "AbstractContextManager[ProgressTask]":
    """Open a task where somebody listens, else a silent one."""
    return nullcontext(_SilentTask()) if progress is None else progress.task(description, total)
