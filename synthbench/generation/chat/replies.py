"""Reading what an endpoint sent: the API's JSON, or whatever stands in for it."""

import json
from collections.abc import Mapping
from typing import Any

from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.requests import ChatRequest

BYTES_PER_TOKEN = 4
"""Assumed where an endpoint does not say how many tokens it counted."""


class UnreadableReplyError(Exception):
    """What came with status 200 is not an answer of the API."""


def read_reply(request: ChatRequest, content: bytes, content_type: str) -> Answer:
    """Return the first choice of a chat completion; raises UnreadableReplyError if it is none.

    An answer that the service filtered has no text.
    """
    try:
        reply = json.loads(content)
    except ValueError:
        kind = content_type.partition(";")[0] or "no content type"
        raise UnreadableReplyError(
            "incomplete JSON instead of an answer"
            if kind == "application/json"
            else f"{kind} instead of JSON"
        ) from None
    read = sum(len(message["content"]) for message in request.messages)
    return read_completion(reply, read // BYTES_PER_TOKEN + 1)


def read_completion(reply: Any, prompt_tokens: int) -> Answer:  # noqa: ANN401 - whatever came
    """Do as `read_reply` with the JSON; `prompt_tokens` counts where the endpoint does not say how many.

    Raises UnreadableReplyError.
    """
    try:
        choice = reply["choices"][0]
        text = choice["message"].get("content")
        usage = reply.get("usage") or {}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UnreadableReplyError("JSON without an answer") from None
    if choice.get("finish_reason") == "content_filter":
        return Answer(None, "content filter", *_tokens(prompt_tokens, "", usage))
    if not isinstance(text, str):
        text = choice["message"].get("refusal") or ""
    return Answer(text, "", *_tokens(prompt_tokens, text, usage))


def _tokens(prompt_tokens: int, text: str, usage: Mapping[str, Any]) -> tuple[int, int]:
    prompt = usage.get("prompt_tokens")
    completion = usage.get("completion_tokens")
    return (
        prompt if isinstance(prompt, int) else prompt_tokens,
        completion if isinstance(completion, int) else len(text) // BYTES_PER_TOKEN + 1,
    )
