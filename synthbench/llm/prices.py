"""Prices of tokens: a user's own, or those that the package genai-prices has for a service's model."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.frozen import added_field

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

PACKAGE = "genai-prices"
_OTHER_UNITS = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")
"""genai-prices' fields for what services charge besides the tokens of prompts and answers."""
_MOMENTS = 48
"""Number of times of a day at which prices are looked up: genai-prices' change at full and half hours."""


class Price(BaseModel):
    """US dollars per million tokens, as of a date."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    input: float = Field(ge=0, description="US dollars per million tokens of prompts")
    output: float = Field(ge=0, description="US dollars per million tokens of answers")
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="date of the price")
    batch: float = Field(1.0, ge=0, description="price of batches as a share of the normal price")
    cached_input: float | None = added_field(
        None,
        ge=0,
        description="US dollars per million prompt tokens in the service's cache. Default: as `input`",
    )

    @property
    def origin(self) -> str:
        """The price's date, which reports show as its origin."""
        return self.date

    def usd(
        self, prompt_tokens: int, completion_tokens: int, *, cached_tokens: int = 0, is_batch: bool = False
    ) -> float:
        """Return the cost in US dollars; `cached_tokens` of the prompt tokens were in the service's cache."""
        share = self.batch if is_batch else 1.0
        cached = self.input if self.cached_input is None else self.cached_input
        prompts = self.input * (prompt_tokens - cached_tokens) + cached * cached_tokens
        return share * (prompts + self.output * completion_tokens) / 1e6


class ListPrice(Price):
    """A price from the package genai-prices."""

    version: str = Field(description="the package's version")

    @property
    def origin(self) -> str:
        """The date, and the package with its version, for reports."""
        return f"{self.date} ({PACKAGE} {self.version})"


@cache
def list_prices(service: str, base_url: str, model: str) -> tuple[ListPrice, ...]:
    """Return genai-prices' distinct prices of a model; several if it can't tell which one applies today.

    () if it has none. The service is recognised by the address, else by the endpoint's name, since a proxy
    has its own address. If a price depends on the length of prompts, the one for short prompts counts. The
    prices are those of the installed version: the package updates itself only where its `UpdatePrices` is
    started.
    """
    from importlib.metadata import version

    providers = _providers()
    here = [each for each in providers if re.match(each.api_pattern, base_url)]
    named = here or [each for each in providers if each.id == service.lower()]
    models = (each.find_model(model, all_providers=providers) for each in named)
    found = {rates for each in models if each is not None for rates in _rates_of(each)}
    return tuple(
        ListPrice(
            input=prompts,
            output=answers,
            date=_date(),
            batch=share,
            cached_input=cached if cached < prompts else None,
            version=version(PACKAGE),
        )
        for prompts, answers, share, cached in sorted(found)
    )


def _providers() -> "list[Provider]":
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().providers


def _rates_of(model: "ModelInfo") -> Iterator[tuple[float, float, float, float]]:
    """Yield the model's prices at each half hour of today.

    Each is (price of prompts, price of answers, a batch's price as a share of the normal price, price of
    cached prompts); prices are in US dollars per million tokens. Left out: incomplete prices, and prices that
    also charge for requests, thoughts or citations.
    """
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for moment in range(_MOMENTS):
        time = midnight + moment * timedelta(days=1) / _MOMENTS
        price = model.get_prices(time)
        if any(getattr(price, unit, None) is not None for unit in _OTHER_UNITS):
            continue
        prompts, answers = _number(price.input_mtok), _number(price.output_mtok)
        if prompts is None or answers is None:
            continue
        cached = _number(price.cache_read_mtok)
        share = _share_of(model.get_prices(time, {"processing": "batch"}), prompts, answers)
        yield prompts, answers, share, prompts if cached is None else cached


def _share_of(batch: "ModelPrice", prompts: float, answers: float) -> float:
    """Return a batch's price as a share of the normal price: the larger share, of prompts or answers."""
    pairs = ((_number(batch.input_mtok), prompts), (_number(batch.output_mtok), answers))
    return max((part / whole for part, whole in pairs if part is not None and whole), default=1.0)


def _number(price: "Decimal | TieredPrices | None") -> float | None:
    from genai_prices.types import TieredPrices

    if price is None:
        return None
    return float(price.base if isinstance(price, TieredPrices) else price)


@cache
def _date() -> str:
    """Return the date of genai-prices' data: the newest date, up to today, among OpenRouter's prices.

    OpenRouter's prices carry the day on which they were read. Dates of other services may be announcements.
    """
    today = datetime.now(UTC).date()
    router = next(each for each in _providers() if each.id == "openrouter")
    dates = (
        getattr(conditional.constraint, "start_date", None)
        for model in router.models
        if isinstance(model.prices, list)
        for conditional in model.prices
    )
    return str(max(date for date in dates if date is not None and date <= today))
