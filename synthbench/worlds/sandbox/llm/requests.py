"""Requests and answers of the chat-completions API, as OpenAI's reference describes them."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError

from synthbench.base.errors import did_you_mean
from synthbench.worlds.sandbox.llm import MODEL

MAX_CHOICES = 128
_TOKEN = re.compile(r"\w+|[^\w\s]")
_Penalty = Annotated[StrictFloat, Field(ge=-2, le=2)]


class RequestError(Exception):
    """A request that is answered with an error in OpenAI's format."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    @property
    def body(self) -> dict[str, Any]:
        """The answer's JSON."""
        return error_body(self.status, str(self), param=self.param, code=self.code)


def error_body(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return the JSON of an error in OpenAI's format."""
    kind = {429: "requests", 500: "server_error"}.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class TextPart(BaseModel):
    """A piece of a message that consists of several."""

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
    """The form of answers: text, or JSON, of which a schema is read but not obeyed."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = None


class CompletionBody(BaseModel):
    """The body of POST /v1/chat/completions; what is not understood is refused, not ignored."""

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
    logprobs: Literal[False] | None = None
    stream: StrictBool | None = None
    user: str | None = None
    store: StrictBool | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The body with every message as one text, without what is not given."""
        messages = [{"role": message.role, "content": message.text} for message in self.messages]
        return {**self.model_dump(exclude_none=True, exclude={"messages"}), "messages": messages}

    @property
    def limit(self) -> int | None:
        """The number of tokens after which an answer is cut."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts before which an answer ends."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


def read_request(raw: bytes) -> CompletionBody:
    """Read a request's body; raises RequestError that names the parameter at fault."""
    try:
        request = CompletionBody.model_validate_json(raw)
    except ValidationError as failure:
        raise _request_error(failure.errors(include_url=False)) from None
    if request.stream:
        raise RequestError(400, "This server does not stream; leave 'stream' out.", param="stream")
    if request.model != MODEL:
        raise unknown_model(request.model)
    return request


def unknown_model(name: str) -> RequestError:
    """Return the error on a model that is not there."""
    message = f"The model '{name}' does not exist; this server has '{MODEL}'."
    return RequestError(404, message, param="model", code="model_not_found")


def completion(request: CompletionBody, texts: list[str], identity: str, created: int) -> dict[str, Any]:
    """Return the answer's JSON: one choice for each text, cut where the request says, and what it cost."""
    choices = [_choice(index, text, request) for index, text in enumerate(texts)]
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
    """Return the number of words and punctuation marks, which are this model's tokens."""
    return len(_TOKEN.findall(text))


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
    """Return the error on the first fault, where it lies deepest; unknown parameters go before all others."""
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
    """Return "messages[0].role"; what pydantic adds to tell the members of a union apart is left out."""
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part.isidentifier() and part not in ("str", "int", "float", "bool", "list"):
            name += f".{part}" if name else part
    return name
