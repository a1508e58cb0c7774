"""What a service would put on its bill: the server's own count, to hold a client's against."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

_COUNTED = ("requests", "prompt_tokens", "completion_tokens", "total_tokens")


class Usage:
    """Counts requests by what became of them, and tokens; may be told and asked by several threads at once.

    An answer is billed once it is made, whether or not it arrives: `dropped` ones are, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._billed = {outcome: Counter(dict.fromkeys(_COUNTED, 0)) for outcome in ("answered", "dropped")}
        self._turned_away: Counter[str] = Counter()

    def bill(self, tokens: Mapping[str, int], *, is_dropped: bool = False) -> None:
        """Count an answer with the tokens that its `usage` names."""
        with self._lock:
            self._billed["dropped" if is_dropped else "answered"].update({"requests": 1, **tokens})

    def turn_away(self, status: int) -> None:
        """Count a request that was answered with an error, for nothing."""
        with self._lock:
            self._turned_away[str(status)] += 1

    def report(self) -> dict[str, Any]:
        """Return the JSON of GET /v1/usage."""
        with self._lock:
            billed = {outcome: dict(counts) for outcome, counts in self._billed.items()}
            return {**billed, "turned_away": dict(self._turned_away)}
