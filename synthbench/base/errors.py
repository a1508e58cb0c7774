"""Mistakes that are the user's to mend, as opposed to our bugs."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user gave is wrong; shown without a traceback, exit code 2.

    Each message is one line of its own: what is wrong, where, what would be right.
    """

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


class NotAtHandError(UserError):
    """What the user named may be right, but this machine lacks it and could not ask for it.

    Only a run needs it: a plan goes on without.
    """


def unreachable(message: str, error: BaseException) -> UserError:
    """Return the error to raise where a hub's answer is missing: NotAtHandError if nobody answered."""
    is_refused = getattr(error, "response", None) is not None or isinstance(error, ValueError)
    return UserError(message) if is_refused else NotAtHandError(message)


class PendingError(Exception):
    """What is needed is under way elsewhere and comes later: no failure, exit code 4.

    Each message is one line of its own, and says how to get at it.
    """

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


def in_one_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known word, else the list of known words."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
