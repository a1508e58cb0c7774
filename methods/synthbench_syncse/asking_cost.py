"""What asking costs, before anybody is asked."""

from collections.abc import Iterable

from synthbench_syncse.requests import Chat

_CHARACTERS_PER_TOKEN = 4.5
_TOKENS_PER_TURN = 4


def cost_line(num_requests: int, chats: Iterable[Chat], tokens_per_answer: float) -> str:
    """Return how many requests and tokens it takes, estimated from the prompts of a few of them."""
    lengths = [
        sum(len(message["content"]) / _CHARACTERS_PER_TOKEN + _TOKENS_PER_TURN for message in chat.messages)
        for chat in chats
    ]
    prompts = num_requests * sum(lengths) / len(lengths)
    answers = num_requests * tokens_per_answer
    return (
        f"{num_requests:,} requests to the LLM, about {prompts:,.0f} tokens of prompts and {answers:,.0f} of"
        " answers"
    )
