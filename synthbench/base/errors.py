"""Errors that the user can mend, as opposed to bugs of synthbench."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """Wrong input of the user; shown without a traceback, exit code 2.

    Each message is one line: what is wrong, where, and what would be right. There is at least one message.
    """

    def __init__(self, *messages: str) -> None:
        self.messages = tuple(filter(str.strip, messages)) or ("no reason was given",)
        super().__init__("\n".join(self.messages))


class NotAvailableError(UserError):
    """A named model or data set is not on this machine, and its hub did not answer.

    The name may be right. A run fails; a plan goes on without the model or data set.
    """


def unreachable(message: str, error: BaseException) -> UserError:
    """Return the error for a failed request to a hub: NotAvailableError if the hub did not answer at all."""
    is_refused = getattr(error, "response", None) is not None or isinstance(error, ValueError)
    return UserError(message) if is_refused else NotAvailableError(message)


class PendingError(Exception):
    """Results are still being computed elsewhere, such as in a provider's batch: no failure, exit code 4.

    Each message is one line and says how to fetch the results.
    """

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


def in_one_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's type if the message is empty."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def first_fault(error: "ValidationError") -> str:
    """Return the key and the message of the first fault that pydantic found."""
    fault = error.errors()[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'it'}: {fault['msg']}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" if a known word is similar, else "; known: ..." with all known words."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
