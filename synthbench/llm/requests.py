"""What is asked of an LLM, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ChatRequest:
    """One answer that is wanted.

    `key` names the piece of work; it is the caller's alone and enters neither the request nor the cache.
    `messages` have a role and a content each, `sampling` holds the sampling parameters by the API's names
    (temperature, top_p, presence_penalty, frequency_penalty, max_tokens, ...). `sample` tells apart several
    answers to the same question; a generation seed enters here, as a hash of the seed and the index.
    """

    key: str
    messages: tuple[Mapping[str, str], ...]
    sampling: Mapping[str, float | int]
    sample: int = 0


@dataclass(frozen=True)
class ChatAnswer:
    """What a request got: `text`, or None and the reason in `failure` if it failed for good."""

    request: ChatRequest
    text: str | None
    failure: str = ""
