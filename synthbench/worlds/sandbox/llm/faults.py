"""Faults of the service; they never change the answer that a request finally gets."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from synthbench.worlds.sandbox.llm import LLMSettings

_MINUTE = 60.0


class ServiceFault(StrEnum):
    """A fault that replaces the answer to a request."""

    RATE_LIMITED = "rate limited"
    SERVER_ERROR = "server error"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault, and the seconds to wait if it is a rate limit."""

    fault: ServiceFault
    retry_after: int = 0


class ServiceFaults:
    """Draws a fault, or none, for each request that arrives; thread-safe."""

    def __init__(self, settings: LLMSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._num_arrived = 0
        self._served: deque[float] = deque()

    def on_arrival(self, request: str) -> Trouble | None:
        """Return the fault of a request's next attempt, None for an answer; `request` is a digest."""
        with self._lock:
            trouble = self._drawn(request)
            if trouble is not None:
                self._in_a_row[request] += 1
                return trouble
            self._in_a_row.pop(request, None)
            return self._over_the_limit()

    def _drawn(self, request: str) -> Trouble | None:
        settings = self.settings
        if settings.rate_limited + settings.server_errors + settings.drops == 0:
            return None
        self._attempts[request] += 1
        self._num_arrived += 1
        place = f"{request}/{self._attempts[request]}"
        if settings.faults_by == "arrival":
            place = str(self._num_arrived)
        drawn = Random(f"sandbox-llm-faults/{settings.seed}/{place}").random()
        if self._in_a_row[request] >= settings.max_faults_in_a_row:
            return None
        for share, trouble in (
            (settings.rate_limited, Trouble(ServiceFault.RATE_LIMITED, settings.retry_after)),
            (settings.server_errors, Trouble(ServiceFault.SERVER_ERROR)),
            (settings.drops, Trouble(ServiceFault.DROPPED)),
        ):
            if drawn < share:
                return trouble
            drawn -= share
        return None

    def _over_the_limit(self) -> Trouble | None:
        """Return a 429 if the last minute's answers reach the limit; else count one more and return None."""
        limit = self.settings.requests_per_minute
        if limit is None:
            return None
        now = self._clock()
        while self._served and now - self._served[0] >= _MINUTE:
            self._served.popleft()
        if len(self._served) >= limit:
            return Trouble(ServiceFault.RATE_LIMITED, math.ceil(self._served[0] + _MINUTE - now))
        self._served.append(now)
        return None
