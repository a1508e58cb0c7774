"""Limits on requests: concurrency limit, rate limit, circuit breaker, budget."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from anyio import CapacityLimiter

from synthbench.base.errors import UserError
from synthbench.base.grouping import grouped
from synthbench.base.listing import listed
from synthbench.llm.accounts import Cost
from synthbench.llm.answers import Answer
from synthbench.llm.bodies import body_of
from synthbench.llm.cache import AnswerCache, OverBudgetError
from synthbench.llm.endpoint import Endpoint, price_of, why_unpriced
from synthbench.llm.requests import ChatRequest

BACKOFF_FACTOR = 0.7


class ConcurrencyLimit:
    """Lets at most `most` requests in at a time: fewer after refusals, then slowly more after successes.

    A round of refusals counts once: requests sent before the last cut do not cut again. For one event loop.
    """

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self._most = most
        self._last_cut = float("-inf")
        self.slots = CapacityLimiter(most)
        """Enter it for each request."""

    def succeeded(self) -> None:
        """Raise the limit by one after about as many successes as the limit."""
        self.limit = min(float(self._most), self.limit + 1 / self.limit)
        self.slots.total_tokens = int(self.limit)

    def refused(self, left_at: float) -> None:
        """Cut the limit, unless the request was sent (`left_at`, the loop's clock) before the last cut."""
        if left_at >= self._last_cut:
            self._last_cut = asyncio.get_running_loop().time()
            self.limit = max(1.0, self.limit * BACKOFF_FACTOR)
            self.slots.total_tokens = int(self.limit)


class RateLimit:
    """Spreads amounts evenly over time, `per_minute` in each minute; None: no limit."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def wait(self, amount: int, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Wait until the rate allows this amount; `sleep` does the waiting."""
        if not self._seconds_each:
            return
        now = asyncio.get_running_loop().time()
        turn = max(now, self._free_at)
        self._free_at = turn + amount * self._seconds_each
        if turn > now:
            await sleep(turn - now)

    def correct(self, surplus: int) -> None:
        """Give back the part of an amount that was not used; a negative `surplus` charges more."""
        self._free_at -= surplus * self._seconds_each


MIN_REQUESTS = 20
WINDOW = 200
KEYS_SHOWN = 3


class CircuitBreaker:
    """Stops the run if too many of the last 20 to 200 requests fail; a filtered answer is no failure."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._name = endpoint.name
        self._section = endpoint.section
        self._max_rate = endpoint.pacing.max_failure_rate
        self._last: deque[tuple[str, str]] = deque(maxlen=WINDOW)

    def succeeded(self, request: ChatRequest) -> None:
        """Record an answer."""
        self._last.append((request.key, ""))

    def failed(self, request: ChatRequest, reason: str) -> None:
        """Record a request that failed for good.

        Raises UserError, with a list of the failed requests, if there are too many.
        """
        self._last.append((request.key, reason))
        failures = [(key, why) for key, why in self._last if why]
        if len(self._last) < MIN_REQUESTS or len(failures) <= self._max_rate * len(self._last):
            return
        by_reason = grouped((why, key) for key, why in failures)
        raise UserError(
            f"the LLM '{self._name}': {len(failures)} of the last {len(self._last)} requests failed for good,"
            f" more than {self._section}.max_failure_rate ({self._max_rate:g}) allows. Answers so far are"
            " cached; run the same command again to resume",
            *(f"{len(keys)} x {why}: {listed(keys, KEYS_SHOWN)}" for why, keys in by_reason.items()),
        )


DEFAULT_ANSWER_TOKENS = 1024
"""Assumed length of an answer without a limit, until MIN_ANSWERS are known."""
MIN_ANSWERS = 20
TOKENS_PER_MESSAGE = 8
ANSWER_MARGIN = 2.0
PROMPT_MARGIN = 1.25


class Budget:
    """Keeps the cost within the budgets, which other processes may share; for one event loop.

    A request is sent if its expected cost fits into the budget left after all requests in flight.

    Expected prompt tokens: 8 per message, plus one per byte. After 20 answers, the number per byte is the
    highest seen so far plus 25 %, at most one. Expected answer tokens: `max_completion_tokens`, else
    `max_tokens`. Without these limits: 1,024; after 20 answers, twice the longest answer so far.

    Raises UserError if `budget_usd` is set but no price is known.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._price = price_of(endpoint)
        if endpoint.pacing.budget_usd is not None and self._price is None:
            raise UserError(f"{endpoint.section}.budget_usd: {why_unpriced(endpoint)}")
        self._num_under_way = 0
        self._changed = asyncio.Event()
        self._tokens_per_byte = 0.0
        self._longest = 0
        self._num_answers = 0

    def expected(self, request: ChatRequest) -> Cost:
        """Return a request's expected maximum cost."""
        size = _num_bytes(request)
        ratio, completion = 1.0, DEFAULT_ANSWER_TOKENS
        if self._num_answers >= MIN_ANSWERS:
            ratio = min(1.0, self._tokens_per_byte * PROMPT_MARGIN)
            completion = int(ANSWER_MARGIN * self._longest)
        prompt = int(size * ratio) + TOKENS_PER_MESSAGE * len(request.messages)
        sent = body_of(self._endpoint, request)
        given = sent.get("max_completion_tokens", sent.get("max_tokens"))
        if isinstance(given, int | float):
            completion = int(given)
        return Cost(prompt, completion, self.usd(prompt, completion))

    def usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of tokens in US dollars; 0 if no price is known."""
        if self._price is None:
            return 0.0
        is_batch = self._endpoint.pacing.batch
        return self._price.usd(
            prompt_tokens, completion_tokens, cached_tokens=cached_tokens, is_batch=is_batch
        )

    async def begin_attempt(self, key: str, cost: Cost, check: Callable[[], None]) -> int | None:
        """Wait until the budget suffices, begin the attempt, and return its number.

        None if the request is answered or in flight already. `check` is called before each try and may raise
        to end the wait. Raises UserError if the budget does not suffice and this process has no request in
        flight that could turn out cheaper than expected.
        """
        while True:
            check()
            try:
                attempt = self._cache.begin_attempt(key, cost)
            except OverBudgetError as error:
                if not self._num_under_way:
                    raise self.budget_error(error, cost) from None
                self._changed.clear()
                await self._changed.wait()
            else:
                self._num_under_way += attempt is not None
                return attempt

    def settle(self) -> None:
        """Record that an attempt has ended, with or without an answer."""
        self._num_under_way -= 1
        self._changed.set()

    def learn(self, request: ChatRequest, answer: Answer) -> None:
        """Use an answer's tokens to estimate later costs."""
        size = _num_bytes(request)
        if size:
            self._tokens_per_byte = max(self._tokens_per_byte, answer.prompt_tokens / size)
        self._longest = max(self._longest, answer.completion_tokens)
        self._num_answers += 1

    def budget_error(self, error: OverBudgetError, cost: Cost) -> UserError:
        """Return the error for a request that may exceed a budget."""
        in_tokens = error.key == "budget_tokens"
        used = f"{error.spent.tokens:,}" if in_tokens else f"{error.spent.usd:.4f}"
        next_one = f"{cost.tokens:,}" if in_tokens else f"{cost.usd:.4f}"
        return UserError(
            f"{self._endpoint.section}.{error.key}: {self.most(error.key)}: {used} are spent, and the next"
            f" request to '{self._endpoint.name}' may cost {next_one} with an answer of"
            f" {cost.completion_tokens:,} tokens. Answers so far are cached; raise the budget and run the"
            " same command again to resume"
        )

    def most(self, key: str) -> str:
        """Return a budget's limit with its unit; `key` is budget_usd or budget_tokens."""
        pacing = self._endpoint.pacing
        in_tokens = key == "budget_tokens"
        return f"{pacing.budget_tokens:,} tokens" if in_tokens else f"{pacing.budget_usd:g} US dollars"


def _num_bytes(request: ChatRequest) -> int:
    return sum(len(message["content"].encode(errors="replace")) for message in request.messages)
