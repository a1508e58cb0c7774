"""An LLM's endpoint, its limits, and its prices."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.base.patterns import linear_pattern
from synthbench.llm.prices import PACKAGE, Price, list_prices


@dataclass(frozen=True)
class ServerDoor:
    """Where the processes of a run find its LLM servers.

    `folder` has a state file for each server, `logs` a log. `run`: the process id of the run.
    `is_elsewhere`: the run starts its servers on a cluster, once a process asks for them.
    """

    folder: Path
    logs: Path
    run: int
    is_elsewhere: bool = False


@dataclass(frozen=True)
class ChatModel:
    """A chat model behind OpenAI's chat-completions API: its declared name, base URL and model id.

    A model served by the run has no base URL, but a `door`: the folder where processes ask for its server.
    """

    name: str
    base_url: str
    model: str
    door: ServerDoor | None = None


class CommonPacing(BaseModel):
    """Limits that every endpoint has; none of them changes an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    concurrency: int = Field(
        16,
        ge=1,
        le=1024,
        description="maximum concurrent requests; lowered while the service is overloaded",
    )
    timeout: float = Field(120.0, gt=0, description="timeout of a request in seconds")
    tries: int = Field(8, ge=1, description="maximum attempts at one request, for temporary failures")
    max_failure_rate: float = Field(
        0.2,
        ge=0,
        le=1,
        description="stop the run if a larger share of the last 20 to 200 requests fails for good",
    )
    budget_usd: float | None = Field(
        None,
        ge=0,
        description="cost limit of the experiment in US dollars; the run stops before the cost exceeds this; "
        "null: no limit",
    )
    budget_tokens: int | None = Field(
        None,
        ge=0,
        description="limit of the experiment in tokens of prompts and answers together; null: no limit",
    )
    offline: bool = Field(False, description="answer from the cache only, send no request")
    price: Price | None = Field(None, description="price of tokens. Default: from genai-prices")


class Pacing(CommonPacing):
    """All limits of an endpoint: the common ones, rate limits, and those of the Batch API."""

    requests_per_minute: int | None = Field(
        None, ge=1, description="maximum requests per minute; null: no limit"
    )
    tokens_per_minute: int | None = Field(None, ge=1, description="maximum tokens per minute; null: no limit")
    batch: bool = Field(False, description="use the Batch API: cheaper, with answers within a day")
    enqueued_tokens: int | None = Field(
        None, ge=1, description="maximum number of prompt tokens in unfinished batches; null: no limit"
    )


_OWN_KEYS = frozenset({"model", "messages", "seed", "stream", "n"})
_SECRET = linear_pattern(
    r"api[-_]?key|authorization|bearer|password|secret|credential|^token$", re.IGNORECASE
)


SamplingName = Literal["temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens"]
"""A sampling parameter of a request, by the API's name."""


class AnswerOptions(BaseModel):
    """Settings of an LLM that change its answers; a stage's identity includes those that are set."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    reasoning_effort: str | None = added_field(
        None,
        pattern=r"^[a-z]+$",
        description="reasoning effort, in the service's words: low, medium, high ...",
    )
    max_completion_tokens: int | None = added_field(
        None,
        ge=1,
        description="maximum number of tokens of thoughts and answer; replaces the method's `max_tokens`, "
        "which newer services refuse",
    )
    response_format: dict[str, Any] | None = added_field(
        None,
        description="format of answers, such as {type: json_schema, json_schema: {...}}",
    )
    system_prompt: bool = added_field(
        True,
        description="false: merge the system message into the first user message, for models without "
        "that role",
    )
    unsent: tuple[SamplingName, ...] = added_field(
        (),
        description="sampling parameters that the model refuses, such as [temperature, top_p]; they are left"
        " out of each request, so the service's defaults hold",
    )
    chat_template_kwargs: dict[str, Any] | None = added_field(
        None,
        description="options of the chat template, such as {enable_thinking: false}, for vLLM",
    )
    extra_body: dict[str, Any] | None = added_field(
        None,
        description="further keys of each request, such as {top_k: 20} or a router's {provider: {...}}",
    )

    @field_validator("extra_body")
    @classmethod
    def _check_body_keys(cls, body: dict[str, Any] | None) -> dict[str, Any] | None:
        known = {*AnswerOptions.model_fields, *_OWN_KEYS}
        for key in body or ():
            if key in known:
                raise ValueError(f"'{key}' is set elsewhere; leave it out here")
        if any(_SECRET.search(key) for key in _keys(body)):
            # The message must not repeat the key's value.
            raise ValueError("must hold no key and no password; name the key's variable in key_variable")
        return body

    def options(self) -> dict[str, Any]:
        """Return the options that are set, by name: all that differ from the defaults."""
        return self.model_dump(mode="json", include=set(AnswerOptions.model_fields))


class AnswerRule(BaseModel):
    """Whether truncated answers become data, besides complete ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    cut_off: Literal["drop", "take"] = Field(
        "drop",
        description="answers that a token limit cut off. drop: count as failed, don't request again; "
        "take: use them as data",
    )

    @property
    def takes_cut_off(self) -> bool:
        """Whether truncated answers are used as data."""
        return self.cut_off == "take"

    def rule(self) -> dict[str, str]:
        """Return the rule's entry in a stage's identity; {} for `take`, which earlier versions always did."""
        return {} if self.takes_cut_off else {"cut_off": "drop"}


def _keys(value: object) -> Iterator[str]:
    """Yield the keys of nested mappings, also of those in lists."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


@dataclass(frozen=True)
class Served:
    """A server that a run starts: its command, with `{port}` for the free port.

    `model_id`: the model's name in requests; with `lists`, the name in the server's own list of models takes
    precedence. `body`: keys added to each request, so that the server follows OpenAI's rules. `install`: the
    command that installs the program, if known; `packages`: further Python packages that it needs. On a
    cluster, `replicas` servers run, each with `gpus` GPUs (None: one, if a node has any).
    """

    command: tuple[str, ...]
    start_timeout_s: float
    model_id: str
    body: Mapping[str, Any] = field(default_factory=dict)
    install: str = ""
    packages: tuple[str, ...] = ()
    lists: bool = False
    replicas: int = 1
    gpus: float | None = None


@dataclass(frozen=True)
class Endpoint:
    """A chat model behind OpenAI's API.

    The cache identifies the model by `name` (from the experiment file), `model` and `options`. `key_variable`
    names the environment variable with the API key ("": no key).
    """

    name: str
    base_url: str
    model: str
    key_variable: str = ""
    pacing: Pacing = field(default_factory=Pacing)
    sends_sample: bool = True
    """Whether the sample index is sent as the API's `seed`."""
    served: Served | None = None
    """The server that the run starts instead of using an address; free unless a price is set."""
    door: ServerDoor | None = None
    """The folder where processes ask for that server; None for an endpoint with an address."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of `AnswerOptions` that are set."""
    takes_cut_off: bool = False
    """Whether answers truncated by a token limit are used as data."""
    section: str = "llm"
    """The section of the experiment file, `llm` or `llms.NAME`, for messages."""
    locations: Mapping[str, str] = field(default_factory=dict, compare=False)
    """File and line of each option that is set, for messages."""

    @property
    def is_free(self) -> bool:
        """Whether requests are free: the run serves the model itself, and no price is set."""
        return self.served is not None and self.pacing.price is None


def key_of(endpoint: Endpoint) -> str:
    """Return the endpoint's API key, "" if it takes none; raises UserError if its variable holds no key."""
    if not endpoint.key_variable:
        return ""
    key = os.environ.get(endpoint.key_variable, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        state = "holds no key" if key else "is not set"
        raise UserError(
            f"the environment variable {endpoint.key_variable} {state}; set it to the key of the LLM"
            f" '{endpoint.name}', or write it into a file .env beside the experiment's"
        )
    return key


@dataclass(frozen=True)
class Account:
    """The experiment, which has the budget, and the stage that requests are charged to."""

    experiment: str = ""
    stage: str = ""


def price_of(endpoint: Endpoint) -> Price | None:
    """Return the price that the user set, else that of genai-prices.

    If the user set none, the result is None for a model that the run serves, and if genai-prices has no price
    or several.
    """
    prices = _prices(endpoint)
    return prices[0] if len(prices) == 1 else None


def why_unpriced(endpoint: Endpoint) -> str:
    """Return why the endpoint has no price, and what the user can do."""
    prices = _prices(endpoint)
    if prices:
        each = " and ".join(f"{price.input:g} + {price.output:g}" for price in prices)
        known = f"{PACKAGE} has {len(prices)} prices for {endpoint.model} ({each}, prompts + answers)"
    else:
        known = f"no price is known for {endpoint.model}"
    return (
        f"{known}; give price: {{input: ..., output: ..., date: ...}}, in US dollars per million tokens, or"
        " limit tokens with budget_tokens (in a short file: budget.tokens)"
    )


def _prices(endpoint: Endpoint) -> tuple[Price, ...]:
    own = endpoint.pacing.price
    if own is not None:
        return (own,)
    is_service = endpoint.served is None and bool(endpoint.base_url)
    return list_prices(endpoint.name, endpoint.base_url, endpoint.model) if is_service else ()


def money(endpoint: Endpoint, amount: "ChatAmount") -> float | None:
    """Return the cost of requests in US dollars: 0 if they are free, None if no price is known."""
    price = price_of(endpoint)
    if endpoint.is_free:
        return 0.0
    if price is None:
        return None
    return price.usd(amount.prompt_tokens, amount.completion_tokens, is_batch=endpoint.pacing.batch)


@dataclass(frozen=True)
class ChatAmount:
    """An estimated number of requests, with their total tokens of prompts and of answers."""

    num_requests: int
    prompt_tokens: int
    completion_tokens: int

    def __add__(self, other: "ChatAmount") -> "ChatAmount":
        return ChatAmount(
            self.num_requests + other.num_requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    def share(self, share: float) -> "ChatAmount":
        """Return this amount times `share`, which is in [0, 1]."""
        return ChatAmount(
            round(share * self.num_requests),
            round(share * self.prompt_tokens),
            round(share * self.completion_tokens),
        )

    def lines(self, endpoint: Endpoint) -> Iterator[str]:
        """Yield lines on requests and tokens, on a missing API key, and on money with the prices' date."""
        *_, own_name = endpoint.section.partition("llms.")
        money_of = f"money of '{own_name}'" if own_name else "money"
        yield (
            f"LLM '{own_name or endpoint.name}' ({endpoint.model}): about {self.num_requests:,} requests,"
            f" {self.prompt_tokens:,} tokens of prompts and {self.completion_tokens:,} of answers, minus"
            f" cached answers, if no request needs another of at most {endpoint.pacing.tries} tries"
        )
        if endpoint.is_free:
            yield f"{money_of}: none, no provider is paid"
            return
        variable = endpoint.key_variable
        if variable and not os.environ.get(variable, "").strip():
            yield f"the environment variable {variable} is not set; the LLM needs its key"
        price, pacing = price_of(endpoint), endpoint.pacing
        limits = (("budget_usd", pacing.budget_usd, "g"), ("budget_tokens", pacing.budget_tokens, ","))
        limit = "".join(f"; {key} is {most:{form}}" for key, most, form in limits if most is not None)
        if price is None:
            yield f"{money_of}: {why_unpriced(endpoint)}{limit}"
            return
        is_batch = endpoint.pacing.batch
        usd = money(endpoint, self) or 0.0
        prices = "batch prices" if is_batch else "prices"
        digits = 2 if usd >= 0.1 else 4
        yield f"{money_of}: about {usd:,.{digits}f} US dollars at the {prices} of {price.origin}{limit}"
