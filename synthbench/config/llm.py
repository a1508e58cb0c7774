"""LLM settings of an experiment: the generated world's model, a service, or a model that the run serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Annotated, Any, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from synthbench.base.errors import did_you_mean
from synthbench.base.patterns import linear_pattern
from synthbench.config.problems import NAME_PATTERN
from synthbench.config.providers import PROVIDERS
from synthbench.config.served_llm import ServedLLM
from synthbench.llm.endpoint import (
    AnswerOptions,
    AnswerRule,
    ChatModel,
    CommonPacing,
    Endpoint,
    Pacing,
    price_of,
    why_unpriced,
)
from synthbench.llm.prices import Price
from synthbench.worlds import NAME, WorldName, world
from synthbench.worlds.settings import WorldLLMSettings

TRAFFIC = (frozenset(Pacing.model_fields) | {"start_timeout_s"}) - {"price"}
"""Keys of `llm:` that control request traffic; they change neither answers nor their cost."""


class WorldEndpoint(BaseModel):
    """The key that names the generated world's chat model in an LLM's section."""

    endpoint: WorldName = Field(description=f"{NAME}: the generated world's chat model, run locally")


class WorldLLM(CommonPacing, WorldLLMSettings, WorldEndpoint):
    """The chat model of the generated world, which a run starts when the first stage needs it."""

    def identity(self) -> Mapping[str, Any]:
        """Return the LLM's part of a stage's identity: the name, and the settings that change answers."""
        return {"endpoint": self.endpoint, **self.content()}

    def server(self) -> WorldLLMSettings:
        """Return the settings of the chat server that the run starts."""
        own = set(WorldLLMSettings.model_fields)
        return WorldLLMSettings.model_validate(self.model_dump(include=own))

    def address(self) -> ChatModel:
        """Return the model with an empty base URL, which is unknown until a run starts the server."""
        return ChatModel(self.endpoint, "", world().llm_model)

    def at(self, address: ChatModel) -> Endpoint:
        """Return the endpoint that has the base URL and model of `address`.

        The cache distinguishes endpoints by name only, so the name contains the world's settings.
        """
        content = ", ".join(f"{key}={value}" for key, value in self.content().items())
        common = self.model_dump(include=set(CommonPacing.model_fields))
        pacing = Pacing.model_validate({**common, "price": self.price or NOTHING})
        return Endpoint(f"{self.endpoint} ({content})", address.base_url, address.model, pacing=pacing)


NOTHING = Price(input=0.0, output=0.0, date="2026-01-01")
"""The price of the generated world's model."""
_ASCII = linear_pattern(r"^[!-\[\]-~]+\Z")
_HOST = linear_pattern(r"^[\w.:-]+\Z")
_VARIABLE = linear_pattern(r"^[A-Z][A-Z0-9_]{0,63}\Z")


def _has_port_if_any(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _address(url: str) -> str:
    # Reject URLs that another parser could read as another host.
    parts = urlsplit(url if _ASCII.match(url) else "")
    if parts.scheme not in ("http", "https") or not _HOST.match(parts.hostname or ""):
        raise ValueError("must be an address such as http://localhost:8000/v1, in ASCII")
    if not _has_port_if_any(parts):
        raise ValueError("its port must be a number from 1 to 65535")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            "must hold no password and no key; name the key's environment variable in key_variable"
        )
    return url


def _variable(name: str) -> str:
    # The message does not repeat the value, which may be a key.
    if not _VARIABLE.match(name):
        raise ValueError("must be the NAME of an environment variable, such as OPENAI_API_KEY, never a key")
    return name


class EndpointAddress(BaseModel):
    """An endpoint's name, address and key variable."""

    name: str = Field(
        max_length=100,
        pattern=NAME_PATTERN,
        description="the endpoint's name in stage identities and the answer cache, instead of the base URL",
    )
    base_url: Annotated[str, AfterValidator(_address)] = Field(
        description="base URL, such as https://api.openai.com/v1 or http://localhost:8000/v1"
    )
    model: str = Field(min_length=1, description="the model's id at this endpoint")
    key_variable: Annotated[str, AfterValidator(_variable)] | None = Field(
        None, description="the environment variable that holds the API key; null: no key"
    )
    sends_sample: bool = Field(
        True, description="send each request's sample index as `seed`; false for endpoints that reject `seed`"
    )


class EndpointLLM(Pacing, AnswerRule, AnswerOptions, EndpointAddress):
    """A chat model with OpenAI's API: a service, or your own server."""

    @model_validator(mode="after")
    def _a_budget_has_a_price(self) -> Self:
        endpoint = self.at(self.address())
        if self.budget_usd is not None and price_of(endpoint) is None:
            raise ValueError(f"budget_usd: {why_unpriced(endpoint)}")
        return self

    @property
    def endpoint(self) -> str:
        """The endpoint's name."""
        return self.name

    def identity(self) -> Mapping[str, Any]:
        """Return the LLM's part of a stage's identity: endpoint name, model and answer options."""
        return {"endpoint": self.name, "model": self.model, **self.options(), **self.rule()}

    def address(self) -> ChatModel:
        """Return the model with its endpoint's name and base URL."""
        return ChatModel(self.name, self.base_url, self.model)

    def at(self, address: ChatModel) -> Endpoint:
        """Return the endpoint that has the base URL and model of `address`."""
        return Endpoint(
            self.name,
            address.base_url,
            address.model,
            self.key_variable or "",
            Pacing.model_validate(self.model_dump(include=set(Pacing.model_fields))),
            self.sends_sample,
            options=self.options(),
            takes_cut_off=self.takes_cut_off,
        )


LLM = WorldLLM | EndpointLLM | ServedLLM


SHORT_FORM = "llm"
"""The name of the LLM of a file that has `llm:`, a single LLM, instead of `llms:`."""


@dataclass(frozen=True)
class NamedLLM:
    """An LLM with its name in the experiment file."""

    name: str
    settings: LLM
    locations: Mapping[str, str] = field(default_factory=dict, compare=False)
    """File and line of each option, for messages."""

    @property
    def path(self) -> tuple[str, ...]:
        """The key path of the LLM's settings in the file."""
        return (SHORT_FORM,) if self.name == SHORT_FORM else ("llms", self.name)

    @property
    def section(self) -> str:
        """`path` as text, for messages."""
        return ".".join(self.path)

    @property
    def title(self) -> str:
        """The LLM's name in tables: the key under `llms`, or the model's name for a single `llm`."""
        return self.settings.address().model if self.name == SHORT_FORM else self.name

    @property
    def note(self) -> str:
        """A sentence for the notes below tables: the model and its endpoint."""
        address = self.settings.address()
        name = "" if self.name == SHORT_FORM else f" {self.name}"
        return f"LLM{name}: {address.model} ({address.name})."

    def endpoint(self, address: ChatModel | None = None) -> Endpoint:
        """Return the LLM's endpoint with the base URL of `address`; None: the base URL of the settings."""
        found = self.settings.at(address or self.settings.address())
        return replace(found, section=self.section, locations=self.locations)


def in_full(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    """Expand `NAME`, the generated world's name, to {endpoint: NAME}; return other types unchanged.

    Raises ValueError for text that does not resemble NAME, and for the removed key `local`. `with_providers`
    has already expanded PROVIDER/MODEL.
    """
    if isinstance(given, dict) and "local" in given:
        raise ValueError(f"`local:` is gone; write {{serve: transformers, model: {given['local']}}}")
    if not isinstance(given, str):
        return given
    provider, slash, _ = given.partition("/")
    if slash:
        raise ValueError(f"no provider of LLMs is called '{provider}'{did_you_mean(provider, PROVIDERS)}")
    if not get_close_matches(given, [NAME]):
        example = f"{given}/MODEL" if given in PROVIDERS else f"PROVIDER/MODEL, such as openai/{given}"
        raise ValueError(f"write {example}, or {NAME}")
    return {"endpoint": given}


def _shape(given: Any) -> str:  # noqa: ANN401 - whatever the file holds
    if isinstance(given, dict) and "serve" in given:
        return "by server"
    is_service = isinstance(given, dict) and not {"name", "base_url", "model"}.isdisjoint(given)
    return "by address" if is_service else "by endpoint"


AnyLLM = Annotated[
    Annotated[WorldLLM, Tag("by endpoint")]
    | Annotated[EndpointLLM, Tag("by address")]
    | Annotated[ServedLLM, Tag("by server")],
    Discriminator(_shape),
    BeforeValidator(in_full),
]
