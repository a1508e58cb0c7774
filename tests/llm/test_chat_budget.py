"""The budget for requests without `max_tokens`: unknown costs are overestimated, never exceeded."""

from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, answer, faulty_server, said
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing, Price
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatRequest

PRICE = Price(input=0, output=1_000_000, date="2026-01-01")
"""A token of an answer costs one dollar."""


def asked(base_url: str, folder: Path, number: int, budget: float) -> int:
    """Request `number` answers, four at a time; return how many came."""
    pacing = Pacing(concurrency=4, budget_usd=budget, price=PRICE)
    client = ChatClient(Endpoint("mine", base_url, "model", pacing=pacing), folder, Account("study"))
    requests = [ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(number)]
    return len(list(client.answers(requests)))


def spent(folder: Path) -> float:
    return sum(entry.answered.usd for entry in entries(folder))


def lengthening(number: int, body: dict[str, Any]) -> Reply:
    """Answer the first requests shortly, and later ones at length."""
    return answer(said(body), tokens=(10, 5 if number < 4 else 300))


def test_a_budget_below_the_first_answer_sends_nothing_and_states_the_expected_cost(tmp_path: Path) -> None:
    with faulty_server(lengthening) as server:
        with pytest.raises(UserError) as raised:
            asked(server.base_url, tmp_path, 9, budget=1000)
        assert server.bodies == []
    worded(raised.value.messages, "llm.budget_usd", "US", "0.0000", "'mine'", "1024.0000")


def test_the_first_requests_are_sent_one_by_one_if_the_budget_covers_one(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: answer(said(body), tokens=(10, 5))) as server:
        assert asked(server.base_url, tmp_path, 60, budget=1324) == 60
    assert spent(tmp_path) == 300


def test_answers_longer_than_the_first_ones_do_not_exceed_the_budget(tmp_path: Path) -> None:
    with faulty_server(lengthening) as server:
        with refused("1024.0000", "1", "024"):
            asked(server.base_url, tmp_path, 60, budget=3000)
        assert 3000 - 1024 < spent(tmp_path) <= 3000
        assert asked(server.base_url, tmp_path, 60, budget=20_000) == 60
        assert len(server.bodies) == 60
