"""How much is asked, before anybody is asked."""

from collections.abc import Iterable

from synthbench.api import ChatAmount
from synthbench_syncse.requests import Chat

_CHARACTERS_PER_TOKEN = 4.5
_TOKENS_PER_TURN = 4


def amount(num_requests: int, chats: Iterable[Chat], tokens_per_answer: int) -> ChatAmount:
    """Return about how many tokens so many requests have, from the messages of a few of them."""
    lengths = [
        sum(len(message["content"]) / _CHARACTERS_PER_TOKEN + _TOKENS_PER_TURN for message in chat.messages)
        for chat in chats
    ]
    mean_length = sum(lengths) / max(len(lengths), 1)
    return ChatAmount(num_requests, round(num_requests * mean_length), num_requests * tokens_per_answer)
