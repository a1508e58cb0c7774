"""What a request may cost at most, and whether there is money left for it."""

import asyncio

from synthbench.errors import UserError
from synthbench.generation.chat.cache import Answer, Cost
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.prices import price_of
from synthbench.generation.chat.requests import ChatRequest

TOKENS_AT_FIRST = 1024
"""Assumed of an answer that no parameter limits, until there are others."""
TOKENS_PER_MESSAGE = 8
MARGIN = 2.0
MARGIN_OF_PROMPTS = 1.25


class Budget:
    """Keeps `budget_usd`, given what the experiment has spent so far; used by one event loop.

    A request leaves if all that is under way and the request itself fit into what is left. What it may cost
    is at most the price of a token for each byte of its prompt, later of what earlier prompts came to and a
    margin, and of `max_tokens`, or of twice the longest answer so far.

    Raises UserError if there is a budget and nobody knows the price.
    """

    def __init__(self, endpoint: Endpoint, spent: float) -> None:
        self._endpoint = endpoint
        self._price = price_of(endpoint)
        self._limit = endpoint.pacing.budget_usd
        if self._limit is not None and self._price is None:
            raise UserError(
                f"llm.budget_usd: nobody knows what {endpoint.model} costs; give llm.price: {{input: ...,"
                " output: ..., date: ...}, in US dollars for a million tokens"
            )
        self._spent = spent
        self._under_way: dict[int, float] = {}
        self._num_reserved = 0
        self._changed = asyncio.Event()
        self._tokens_per_byte = 0.0
        self._longest = 0

    def expected(self, request: ChatRequest) -> Cost:
        """Return the most that a request is expected to cost."""
        size = _num_bytes(request)
        ratio = self._tokens_per_byte * MARGIN_OF_PROMPTS or 1.0
        prompt = int(size * min(1.0, ratio)) + TOKENS_PER_MESSAGE * len(request.messages)
        given = request.sampling.get("max_completion_tokens", request.sampling.get("max_tokens"))
        longest = int(MARGIN * self._longest) or TOKENS_AT_FIRST
        completion = int(given) if given is not None else longest
        return Cost(prompt, completion, self.usd(prompt, completion))

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what so many tokens cost; 0 if nobody knows."""
        return self._price.usd(prompt_tokens, completion_tokens) if self._price else 0.0

    async def reserve(self, cost: Cost) -> int:
        """Wait until there is money for it for certain; return the reservation's number.

        Raises UserError if there is none and nothing is under way that might cost less than expected.
        """
        while (
            self._limit is not None and self._spent + sum(self._under_way.values()) + cost.usd > self._limit
        ):
            if not self._under_way:
                raise UserError(self._no_money(cost))
            self._changed.clear()
            await self._changed.wait()
        self._num_reserved += 1
        self._under_way[self._num_reserved] = cost.usd
        return self._num_reserved

    def settle(self, number: int, usd: float) -> None:
        """Put in a reservation's place what it really was; twice is as once."""
        if self._under_way.pop(number, None) is not None:
            self._spent += usd
            self._changed.set()

    def learn(self, request: ChatRequest, answer: Answer) -> None:
        """Take an answer's tokens into account for what others will cost."""
        size = _num_bytes(request)
        if size:
            self._tokens_per_byte = max(self._tokens_per_byte, answer.prompt_tokens / size)
        self._longest = max(self._longest, answer.completion_tokens)

    def _no_money(self, cost: Cost) -> str:
        return (
            f"llm.budget_usd: {self._limit:g} US dollars: {self._spent:.4f} are spent, and the next request"
            f" to '{self._endpoint.name}' may cost {cost.usd:.4f}; what is answered is kept, and the same"
            " command goes on with a higher budget"
        )


def _num_bytes(request: ChatRequest) -> int:
    return sum(len(message["content"].encode(errors="replace")) for message in request.messages)
