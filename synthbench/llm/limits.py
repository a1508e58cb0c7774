"""What slows or stops asking: rate limit, concurrency limit, circuit breaker, budget."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from synthbench.errors import UserError
from synthbench.llm.cache import Answer, AnswerCache, Cost, OverBudgetError
from synthbench.llm.endpoint import Endpoint, price_of
from synthbench.llm.requests import ChatRequest

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


TOKENS_AT_FIRST = 1024
"""Assumed of an answer that no parameter limits, until there are enough others to go by."""
ANSWERS_TO_GO_BY = 20
TOKENS_PER_MESSAGE = 8
MARGIN = 2.0
MARGIN_OF_PROMPTS = 1.25


class Budget:
    """Keeps `budget_usd`, of which other processes may spend as well; used by one event loop.

    A request leaves if all that is under way and the request itself fit into what is left. What it may cost
    is at most the price of a token for each byte of its prompt, and of `max_tokens` or 1,024 tokens; after 20
    answers, of what earlier prompts came to and a margin, and of `max_tokens` or twice the longest answer.

    Raises UserError if there is a budget and nobody knows the price.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._price = price_of(endpoint)
        self._limit = endpoint.pacing.budget_usd
        if self._limit is not None and self._price is None:
            raise UserError(
                f"llm.budget_usd: nobody knows what {endpoint.model} costs; give llm.price: {{input: ...,"
                " output: ..., date: ...}, in US dollars for a million tokens"
            )
        self._num_under_way = 0
        self._changed = asyncio.Event()
        self._tokens_per_byte = 0.0
        self._longest = 0
        self._num_answers = 0

    def expected(self, request: ChatRequest) -> Cost:
        """Return the most that a request is expected to cost."""
        size = _num_bytes(request)
        ratio, completion = 1.0, TOKENS_AT_FIRST
        if self._num_answers >= ANSWERS_TO_GO_BY:
            ratio = min(1.0, self._tokens_per_byte * MARGIN_OF_PROMPTS)
            completion = int(MARGIN * self._longest)
        prompt = int(size * ratio) + TOKENS_PER_MESSAGE * len(request.messages)
        given = request.sampling.get("max_completion_tokens", request.sampling.get("max_tokens"))
        if given is not None:
            completion = int(given)
        return Cost(prompt, completion, self.usd(prompt, completion))

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what so many tokens cost; 0 if nobody knows."""
        if self._price is None:
            return 0.0
        return self._price.usd(prompt_tokens, completion_tokens, is_batch=self._endpoint.pacing.batch)

    async def send(self, key: str, cost: Cost, go_on: Callable[[], None]) -> int | None:
        """Wait until there is money for it for certain; return the attempt's number, None as the cache does.

        `go_on` is called before each look at the money, and raises what ends the waiting.
        Raises UserError if there is none and nothing is under way that might cost less than expected.
        """
        while True:
            go_on()
            try:
                attempt = self._cache.send(key, cost, self._limit)
            except OverBudgetError as error:
                if not self._num_under_way:
                    raise self.no_money(error.spent, cost) from None
                self._changed.clear()
                await self._changed.wait()
            else:
                self._num_under_way += attempt is not None
                return attempt

    def settle(self) -> None:
        """Note that an attempt has ended, whatever became of it."""
        self._num_under_way -= 1
        self._changed.set()

    def learn(self, request: ChatRequest, answer: Answer) -> None:
        """Take an answer's tokens into account for what others will cost."""
        size = _num_bytes(request)
        if size:
            self._tokens_per_byte = max(self._tokens_per_byte, answer.prompt_tokens / size)
        self._longest = max(self._longest, answer.completion_tokens)
        self._num_answers += 1

    def no_money(self, spent: float, cost: Cost) -> UserError:
        """Return the error of a request that nothing is left for."""
        return UserError(
            f"llm.budget_usd: {self._limit:g} US dollars: {spent:.4f} are spent, and the next request"
            f" to '{self._endpoint.name}' may cost {cost.usd:.4f} with an answer of"
            f" {cost.completion_tokens:,} tokens; what is answered is kept, and the same command goes on with"
            " a higher budget"
        )


def _num_bytes(request: ChatRequest) -> int:
    return sum(len(message["content"].encode(errors="replace")) for message in request.messages)
