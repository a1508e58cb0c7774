"""What asking would cost, before anybody is asked."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.prices import price_of


@dataclass(frozen=True)
class ChatAmount:
    """About so many requests, with the tokens of all their prompts and of all answers."""

    num_requests: int
    prompt_tokens: int
    completion_tokens: int

    def __add__(self, other: "ChatAmount") -> "ChatAmount":
        return ChatAmount(
            self.num_requests + other.num_requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    def lines(self, endpoint: Endpoint) -> Iterator[str]:
        """Yield requests and tokens, and money with the date of its prices, in one line each."""
        yield (
            f"LLM '{endpoint.name}' ({endpoint.model}): about {self.num_requests:,} requests,"
            f" {self.prompt_tokens:,} tokens of prompts and {self.completion_tokens:,} of answers, less what"
            " the cache of answers holds"
        )
        if endpoint.local is not None:
            yield "money: none, the model runs here"
            return
        variable = endpoint.key_variable
        if variable and not os.environ.get(variable, "").strip():
            yield f"the environment variable {variable} is not set: nobody can be asked without it"
        price, budget = price_of(endpoint), endpoint.pacing.budget_usd
        limit = "" if budget is None else f"; budget_usd is {budget:g}"
        if price is None:
            yield f"money: nobody knows what {endpoint.model} costs; give llm.price{limit}"
            return
        is_batch = endpoint.pacing.batch
        usd = price.usd(self.prompt_tokens, self.completion_tokens, is_batch=is_batch)
        prices = "batch prices" if is_batch else "prices"
        digits = 2 if usd >= 0.1 else 4
        yield f"money: about {usd:,.{digits}f} US dollars at the {prices} of {price.date}{limit}"
