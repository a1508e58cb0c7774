"""The JSON body of a request, by the endpoint's options."""

from collections.abc import Mapping, Sequence
from typing import Any

from synthbench.llm.endpoint import Endpoint
from synthbench.llm.requests import ChatRequest


def body_of(endpoint: Endpoint, request: ChatRequest) -> dict[str, Any]:
    """Return the JSON body of a request."""
    options = dict(endpoint.options)
    messages: Sequence[Mapping[str, str]] = request.messages
    if not options.pop("system_prompt", True):
        messages = _without_system(messages)
    unsent = options.pop("unsent", ())
    sampling = {name: value for name, value in request.sampling.items() if name not in unsent}
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages, **sampling}
    if endpoint.sends_sample:
        body.setdefault("seed", request.sample)
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    if "max_completion_tokens" in options:
        body.pop("max_tokens", None)
    extra: dict[str, Any] = options.pop("extra_body", {})
    return {**body, **extra, **options}


def _without_system(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the messages with the system message merged into the first user message.

    Without a user message, the system message is dropped.
    """
    told = [message["content"] for message in messages if message["role"] == "system"]
    others = [dict(message) for message in messages if message["role"] != "system"]
    first = next((message for message in others if message["role"] == "user"), None)
    if told and first is not None:
        first["content"] = "\n\n".join([*told, first["content"]])
    return others
