"""How many requests may be under way, and how many may leave in a minute."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

SHRINK = 0.7


class AdaptiveLimit:
    """At most `most` holders at a time; fewer after refusals, slowly more again with every success.

    One round of refusals counts once: what left before the last cut does not cut again. For one event loop.
    """

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self._most = most
        self._num_holders = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._last_cut = float("-inf")

    async def __aenter__(self) -> Self:
        while self._num_holders >= int(self.limit):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self._num_holders += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._num_holders -= 1
        self._wake()

    def succeeded(self) -> None:
        """Let one more in after about as many successes as there are holders."""
        self.limit = min(float(self._most), self.limit + 1 / self.limit)
        self._wake()

    def refused(self, left_at: float) -> None:
        """Let fewer in, unless what was refused left (by the loop's clock) before that was last done."""
        if left_at >= self._last_cut:
            self._last_cut = asyncio.get_running_loop().time()
            self.limit = max(1.0, self.limit * SHRINK)

    def _wake(self) -> None:
        room = int(self.limit) - self._num_holders
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


class Rate:
    """Spreads amounts evenly, `per_minute` of them in a minute; None: does not."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def wait(self, amount: int, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Return when it is the amount's turn."""
        if not self._seconds_each:
            return
        now = asyncio.get_running_loop().time()
        turn = max(now, self._free_at)
        self._free_at = turn + amount * self._seconds_each
        if turn > now:
            await sleep(turn - now)

    def correct(self, surplus: int) -> None:
        """Give back what was taken too much; less than nothing if it was too little."""
        self._free_at -= surplus * self._seconds_each
