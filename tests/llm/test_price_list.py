"""Prices of the package: which service and model, their date, and that reading them calls nobody."""

import re
import socket
from typing import Any

import pytest
from genai_prices import data_snapshot
from genai_prices.update_prices import wait_prices_updated_sync
from wording import refused, worded

from synthbench.llm.endpoint import ChatAmount, Endpoint, Pacing, price_of, why_unpriced
from synthbench.llm.limits import Budget
from synthbench.llm.prices import list_prices

OPENAI, DEEPSEEK = "https://api.openai.com/v1", "https://api.deepseek.com/v1"
MILLION = ChatAmount(1, 1_000_000, 1_000_000)


def endpoint(name: str, base_url: str, model: str, **pacing: Any) -> Endpoint:
    return Endpoint(name, base_url, model, pacing=Pacing(**pacing))


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-3.5-turbo", (0.5, 1.5)),
        ("gpt-4.1", (2.0, 8.0)),
        ("gpt-4o-mini", (0.15, 0.6)),
        ("gpt-5-mini", (0.25, 2.0)),
        ("gpt-5-mini-2025-08-07", (0.25, 2.0)),
    ],
)
def test_the_list_has_openais_models_at_half_in_batches(model: str, dollars: tuple[float, float]) -> None:
    (price,) = list_prices("mine", OPENAI, model)
    assert (price.input, price.output, price.batch) == (*dollars, 0.5)


def test_the_address_decides_and_behind_a_proxy_the_name() -> None:
    assert price_of(endpoint("mine", OPENAI, "gpt-5-mini")) is not None
    assert price_of(endpoint("openai", "https://proxy.example/v1", "gpt-5-mini")) is not None
    assert price_of(endpoint("mine", "https://proxy.example/v1", "gpt-5-mini")) is None
    assert price_of(endpoint("openai", DEEPSEEK, "gpt-5-mini")) is None
    assert price_of(endpoint("vllm", "http://localhost:8000/v1", "Qwen/Qwen3-8B")) is None


def test_a_plan_states_date_and_package_of_its_prices() -> None:
    _, money = MILLION.lines(endpoint("openai", OPENAI, "gpt-5-mini", budget_tokens=5_000_000))
    assert re.fullmatch(
        r"money: about 2\.25 US dollars at the prices of 2026-\d\d-\d\d \(genai-prices [\d.]+\);"
        r" budget_tokens is 5,000,000",
        money,
    )


def test_two_prices_for_a_name_are_none_and_one_line_lists_them() -> None:
    by_time_of_day = endpoint("deepseek", DEEPSEEK, "deepseek-chat", budget_usd=1)
    assert price_of(by_time_of_day) is None
    with refused("llm.budget_usd", "2 prices", "deepseek-chat", "0.135 + 0.55", "0.27 + 1.1", "give price"):
        Budget(by_time_of_day, None)  # type: ignore[arg-type]
    _, money = MILLION.lines(by_time_of_day)
    worded(money, "2 prices", "budget_tokens")
    own = {"input": 1, "output": 2, "date": "2026-05-01"}
    assert price_of(endpoint("deepseek", DEEPSEEK, "deepseek-chat", price=own)) == Pacing(price=own).price


def test_a_plan_without_a_price_states_what_to_do() -> None:
    _, money = MILLION.lines(endpoint("house", "https://llm.example/v1", "m", budget_tokens=7))
    worded(money, "no price is known for m", "with budget_tokens", "budget_tokens is 7")


def test_a_price_in_other_units_than_tokens_is_unknown() -> None:
    charged_by_request = endpoint("mine", "https://api.perplexity.ai", "sonar")
    worded(
        why_unpriced(charged_by_request), "no price is known for sonar", "give price", "with budget_tokens"
    )


def test_reading_prices_opens_no_connection_and_starts_no_update(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert list_prices("openai", OPENAI, "gpt-4.1-nano")
    assert not data_snapshot.get_snapshot().from_auto_update
    assert not wait_prices_updated_sync(0)
