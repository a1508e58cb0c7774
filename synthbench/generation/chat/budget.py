"""What a request may cost at most, and whether there is money left for it."""

import asyncio
from collections.abc import Callable

from synthbench.errors import UserError
from synthbench.generation.chat.cache import Answer, AnswerCache, Cost, OverBudgetError
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.prices import price_of
from synthbench.generation.chat.requests import ChatRequest

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
