"""When too much fails for a run to go on."""

from collections import deque

from synthbench.errors import UserError
from synthbench.generation.chat.requests import ChatRequest

FEWEST = 20
WINDOW = 200
KEYS_SHOWN = 3


class FailureWatch:
    """Looks at the last requests; those that the service answered, filtered or not, did not fail."""

    def __init__(self, name: str, max_rate: float) -> None:
        self._name = name
        self._max_rate = max_rate
        self._last: deque[tuple[str, str]] = deque(maxlen=WINDOW)

    def succeeded(self, request: ChatRequest) -> None:
        """Note an answer."""
        self._last.append((request.key, ""))

    def failed(self, request: ChatRequest, reason: str) -> None:
        """Note a request that failed for good; raises UserError, with a list, if that is too much."""
        self._last.append((request.key, reason))
        failures = [(key, why) for key, why in self._last if why]
        if len(self._last) < FEWEST or len(failures) <= self._max_rate * len(self._last):
            return
        by_reason: dict[str, list[str]] = {}
        for key, why in failures:
            by_reason.setdefault(why, []).append(key)
        raise UserError(
            f"the LLM '{self._name}': {len(failures)} of the last {len(self._last)} requests failed for good,"
            f" more than llm.max_failure_rate ({self._max_rate:g}) allows; what is answered is kept, and the"
            " same command asks for the rest again",
            *(f"{len(keys)} x {why}: {_shown(keys)}" for why, keys in by_reason.items()),
        )


def _shown(keys: list[str]) -> str:
    more = len(keys) - KEYS_SHOWN
    return ", ".join(keys[:KEYS_SHOWN]) + (f" and {more} more" if more > 0 else "")
