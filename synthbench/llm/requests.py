"""Chat requests and their answers, as callers see them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ChatRequest:
    """One request.

    `key` names it for the caller; it enters neither the request nor the cache. `messages` have a role and a
    content each; `sampling` holds the sampling parameters by the API's names (temperature, top_p, max_tokens,
    ...). `sample` distinguishes several answers to equal requests; a generation seed enters here, hashed with
    the index.
    """

    key: str
    messages: tuple[Mapping[str, str], ...]
    sampling: Mapping[str, float | int]
    sample: int = 0


@dataclass(frozen=True)
class ChatAnswer:
    """A request's answer: `text`, or None with the reason in `failure`."""

    request: ChatRequest
    text: str | None
    failure: str = ""
