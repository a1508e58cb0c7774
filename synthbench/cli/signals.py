"""What ends a command early, and the exit codes for it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(BaseException):
    """The process was asked to end (SIGTERM): as Ctrl-C, but for the exit code."""


INTERRUPTIONS = (KeyboardInterrupt, Terminated)


@contextmanager
def heeding_termination() -> Iterator[None]:
    """Raise Terminated in the main thread where SIGTERM would end the process on the spot."""

    def end(*_: object) -> None:
        raise Terminated

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def exit_code(interruption: BaseException) -> int:
    """Return the shell's code for a process that ended by that signal: 128 and its number."""
    return EXIT_TERMINATED if isinstance(interruption, Terminated) else EXIT_INTERRUPTED
