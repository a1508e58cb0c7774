"""Requests and responses of the chat-completions API, according to OpenAI's reference."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError

from synthbench.base.errors import did_you_mean
from synthbench.worlds.sandbox.llm import MODEL

MAX_CHOICES = 128
MAX_ALTERNATIVES = 20
COPIED, NEW = 0.9, 0.4
"""Assumed probabilities of answer tokens that occur in the messages, and of all others."""
LEAST = 1e-9
_TOKEN = re.compile(r"\w+|[^\w\s]")
_Penalty = Annotated[StrictFloat, Field(ge=-2, le=2)]


class RequestError(Exception):
    """A request that gets an error response in OpenAI's format."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(status, message, param=param, code=code)


def error_body(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return the JSON of an error in OpenAI's format."""
    kind = {429: "requests", 500: "server_error"}.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class TextPart(BaseModel):
    """One part of a message with several parts."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One turn of the chat."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    @property
    def text(self) -> str:
        """The content as one text."""
        return self.content if isinstance(self.content, str) else "\n".join(p.text for p in self.content)


class ResponseFormat(BaseModel):
    """The answers' form: text or JSON; a schema is accepted but not obeyed."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = None


class CompletionBody(BaseModel):
    """The body of POST /v1/chat/completions; unknown parameters are refused, not ignored."""

    model_config = ConfigDict(extra="forbid")

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    n: Annotated[StrictInt, Field(ge=1, le=MAX_CHOICES)] | None = None
    temperature: Annotated[StrictFloat, Field(ge=0, le=2)] | None = None
    top_p: Annotated[StrictFloat, Field(ge=0, le=1)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    seed: StrictInt | None = None
    response_format: ResponseFormat | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=MAX_ALTERNATIVES)] | None = None
    stream: StrictBool | None = None
    user: str | None = None
    store: StrictBool | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The body with each message as one text, without parameters that were not given."""
        messages = [{"role": message.role, "content": message.text} for message in self.messages]
        return {**self.model_dump(exclude_none=True, exclude={"messages"}), "messages": messages}

    @property
    def limit(self) -> int | None:
        """The number of tokens at which an answer is truncated."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts before which an answer is truncated."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


def read_request(raw: bytes) -> CompletionBody:
    """Parse a request's body; raises RequestError that names the invalid parameter."""
    try:
        request = CompletionBody.model_validate_json(raw)
    except ValidationError as failure:
        raise _request_error(failure.errors(include_url=False)) from None
    if request.stream:
        raise RequestError(400, "This server does not stream; leave 'stream' out.", param="stream")
    if request.top_logprobs is not None and not request.logprobs:
        raise RequestError(400, "'top_logprobs' needs 'logprobs': true.", param="top_logprobs")
    if request.model != MODEL:
        raise unknown_model(request.model)
    return request


def unknown_model(name: str) -> RequestError:
    """Return the error for an unknown model."""
    message = f"The model '{name}' does not exist; this server has '{MODEL}'."
    return RequestError(404, message, param="model", code="model_not_found")


def completion(
    request: CompletionBody,
    texts: list[str],
    identity: str,
    created: int,
    beliefs: Sequence[Mapping[str, float]] = (),
) -> dict[str, Any]:
    """Return the response's JSON: one choice per text, truncated as requested, and the token counts.

    `beliefs` are the probabilities of each choice's possible answers, for log-probabilities.
    """
    choices = [_choice(index, text, request) for index, text in enumerate(texts)]
    for choice, shares in zip(choices, beliefs, strict=False):
        choice["logprobs"] = {"content": _logprobs(choice["message"]["content"], request, shares)}
    prompt = sum(num_tokens(message.text) for message in request.messages)
    completed = sum(num_tokens(choice["message"]["content"]) for choice in choices)
    return {
        "id": f"chatcmpl-{identity[:24]}",
        "object": "chat.completion",
        "created": created,
        "model": MODEL,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completed,
            "total_tokens": prompt + completed,
        },
    }


def models() -> dict[str, Any]:
    """Return the JSON of GET /v1/models."""
    return {"object": "list", "data": [model()]}


def model() -> dict[str, Any]:
    """Return the JSON of GET /v1/models/{id}."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "synthbench"}


def num_tokens(text: str) -> int:
    """Return the number of words and punctuation marks, this model's tokens."""
    return len(_TOKEN.findall(text))


def _logprobs(text: str, request: CompletionBody, shares: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the tokens' log-probabilities.

    The last token that is a possible answer has the answers' probabilities, `shares`. Any other token has a
    constant probability, higher if the request's messages contain the token.
    """
    known = {word for message in request.messages for word in _TOKEN.findall(message.text.lower())}
    ends = [match.end() for match in _TOKEN.finditer(text)]
    tokens = [text[start:end] for start, end in pairwise([0, *ends])]
    words = [token.strip().lower() for token in tokens]
    decides = max((index for index, word in enumerate(words) if word in shares), default=-1)
    rows = []
    for index, (token, word) in enumerate(zip(tokens, words, strict=True)):
        lead = token[: len(token) - len(token.lstrip())]
        others = {word: COPIED if word in known else NEW} if index != decides else shares
        top = sorted(others.items(), key=lambda each: -each[1])[: request.top_logprobs or 0]
        own = _row(token, others[word])
        rows.append(
            {
                **own,
                "top_logprobs": [_row(token if name == word else lead + name, share) for name, share in top],
            }
        )
    return rows


def _row(token: str, share: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(max(share, LEAST)), "bytes": list(token.encode())}


def _choice(index: int, text: str, request: CompletionBody) -> dict[str, Any]:
    for stop in request.stops:
        if stop:
            text = text.partition(stop)[0]
    ends = [match.end() for match in _TOKEN.finditer(text)]
    is_cut = request.limit is not None and len(ends) > request.limit
    if is_cut and request.limit is not None:
        text = text[: ends[request.limit - 1]]
    return {
        "index": index,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": "length" if is_cut else "stop",
    }


def _request_error(faults: list[Any]) -> RequestError:
    """Return the error for the first unknown parameter, else the first fault, at its deepest location."""
    first = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    fault = max((f for f in faults if f["loc"][:3] == first["loc"][:3]), key=lambda f: len(f["loc"]))
    if fault["type"] == "json_invalid":
        return RequestError(400, f"The body is not valid JSON: {fault['ctx']['error']}.")
    param = _param(fault["loc"])
    if fault["type"] == "extra_forbidden":
        name = str(fault["loc"][-1])
        hint = did_you_mean(name, CompletionBody.model_fields)
        message = f"Unknown or unsupported parameter: '{param}'{hint}"
        return RequestError(400, message, param=param, code="unknown_parameter")
    if fault["type"] == "missing":
        message = f"Missing required parameter: '{param}'."
        return RequestError(400, message, param=param, code="missing_required_parameter")
    message = f"Invalid value for '{param}': {fault['msg'][:1].lower()}{fault['msg'][1:]}."
    return RequestError(400, message, param=param or None, code="invalid_value")


def _param(location: tuple[str | int, ...]) -> str:
    """Return a parameter's path, such as "messages[0].role", without pydantic's names of union members."""
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part.isidentifier() and part not in ("str", "int", "float", "bool", "list"):
            name += f".{part}" if name else part
    return name
