"""Safe printing: text can't move the cursor, and no key or password is printed."""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

from synthbench.base.escaping import shown
from synthbench.base.redaction import SHORTEST_SECRET, masked

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: str) -> str:
    """Return the text safe to print: control characters escaped, secrets masked."""
    return shown(masked(text) if len(text) >= SHORTEST_SECRET else text)


class ShownStream:
    """A stream that escapes control characters and masks secrets; `raw` is the stream that it wraps."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self.raw, name)

    def write(self, text: str) -> int:
        """Write the text with control characters escaped and secrets masked."""
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines with control characters escaped and secrets masked."""
        for line in lines:
            self.write(line)


def show_control_characters() -> None:
    """Make standard output and error escape control characters and mask secrets from here on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, ShownStream):
            setattr(sys, name, ShownStream(stream))


@contextmanager
def control_characters_shown() -> Iterator[None]:
    """Make standard output and error escape control characters and mask secrets within the block."""
    with redirect_stdout(sys.stdout), redirect_stderr(sys.stderr):  # they put both back in the end
        show_control_characters()
        yield


def rich_console(stream: TextIO, **options: Any) -> "Console":  # noqa: ANN401 - rich's own
    """Return rich's console on a stream, with colours and bars; text is escaped, secrets are masked."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    def hidden(renderable: RenderableType) -> RenderableType:
        """Mask secrets before rich wraps lines, since wrapping may separate a key from its name."""
        if isinstance(renderable, str):
            return masked(renderable)
        if isinstance(renderable, Text) and (plain := masked(renderable.plain)) != renderable.plain:
            return Text(plain, renderable.style, no_wrap=renderable.no_wrap, end=renderable.end)
        return renderable

    class ShowingConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(hidden(renderable), options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return ShowingConsole(file=getattr(stream, "raw", stream), **options)


def bars_of_libraries() -> AbstractContextManager[object]:
    """Let libraries draw progress bars on standard error within the block, although bars move the cursor."""
    return redirect_stderr(getattr(sys.stderr, "raw", sys.stderr))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and its expected reports of unused layers and new heads."""
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
