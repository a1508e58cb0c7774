"""`budget_tokens`: it holds as `budget_usd` does, also where no price is known."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, answer, error, faulty_server, said
from wording import refused

from synthbench.llm import retries
from synthbench.llm.accounts import Cost, Spent
from synthbench.llm.cache import FILE, AnswerCache
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.ledger import entries
from synthbench.llm.limits import DEFAULT_ANSWER_TOKENS, Budget
from synthbench.llm.requests import ChatRequest

MOST = 100
"""Most tokens of an answer; a prompt of 6 bytes counts 6 + 8 at most."""
ONE = MOST + 14
STUDY = Account("study", "stage")


def endpoint(base_url: str, **pacing: Any) -> Endpoint:
    return Endpoint("mine", base_url, "model", pacing=Pacing(concurrency=4, **pacing))


def asked(base_url: str, folder: Path, number: int, **pacing: Any) -> int:
    client = ChatClient(endpoint(base_url, **pacing), folder, STUDY)
    texts = (({"role": "user", "content": f"text{i:02}"},) for i in range(number))
    requests = (ChatRequest(f"r{i}", text, {"max_tokens": MOST}) for i, text in enumerate(texts))
    return len(list(client.answers(requests)))


def spent(folder: Path, **pacing: Any) -> Spent:
    with AnswerCache(folder, endpoint("http://127.0.0.1:9/v1", **pacing), STUDY) as cache:
        return cache.spent()


def longest(number: int, body: dict[str, Any]) -> Reply:
    return answer(said(body), tokens=(14, MOST))


def test_tokens_are_limited_where_no_price_is_known_and_a_larger_budget_resumes(tmp_path: Path) -> None:
    with faulty_server(longest) as server:
        with refused("llm.budget_tokens", "1,000 tokens", "912", "114"):
            asked(server.base_url, tmp_path, 20, budget_tokens=1_000)
        assert len(server.bodies) == 1_000 // ONE
        assert spent(tmp_path) == Spent(0.0, 8 * ONE)
        assert asked(server.base_url, tmp_path, 20, budget_tokens=20 * ONE) == 20
        assert len(server.bodies) == 20
        assert asked(server.base_url, tmp_path, 20, budget_tokens=0) == 20, "the cache takes no tokens"


def test_requests_in_flight_count_at_their_most(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: answer("short", tokens=(1, 1))) as server:
        assert asked(server.base_url, tmp_path, 20, budget_tokens=ONE + 20 * 2) == 20
        assert server.most_at_once == 1
    assert spent(tmp_path).tokens == 40


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, MOST), ({"unsent": ["max_tokens"]}, DEFAULT_ANSWER_TOKENS), ({"extra_body": {"max_tokens": 7}}, 7)],
)
def test_the_limit_that_is_sent_is_what_a_request_may_take(options: dict[str, Any], most: int) -> None:
    budget = Budget(replace(endpoint("http://127.0.0.1:9/v1"), options=options), None)  # type: ignore[arg-type]
    asks = ChatRequest("r", ({"role": "user", "content": "text01"},), {"max_tokens": MOST})
    assert budget.expected(asks) == Cost(14, most, 0.0)


def test_refused_requests_take_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    with faulty_server(lambda number, body: error(503) if number < 3 else longest(number, body)) as server:
        assert asked(server.base_url, tmp_path, 1, budget_tokens=ONE) == 1
        assert len(server.bodies) == 4


def test_attempts_of_a_killed_process_count_at_their_most(tmp_path: Path) -> None:
    with AnswerCache(tmp_path, endpoint("http://127.0.0.1:9/v1"), STUDY) as killed:
        killed.begin_attempt("a", Cost(14, MOST, 0.0))
    with faulty_server(longest) as server:
        with refused("llm.budget_tokens", "114"):
            asked(server.base_url, tmp_path, 1, budget_tokens=2 * ONE - 1)
        assert server.bodies == []
        assert asked(server.base_url, tmp_path, 1, budget_tokens=2 * ONE) == 1


def test_both_budgets_hold(tmp_path: Path) -> None:
    price = {"input": 0, "output": 1_000_000, "date": "2026-05-01"}
    with faulty_server(longest) as server:
        with refused("llm.budget_usd", "300"):
            asked(server.base_url, tmp_path, 9, budget_usd=300, budget_tokens=10_000, price=price)
        with refused("llm.budget_tokens", "400"):
            asked(server.base_url, tmp_path, 9, budget_usd=10_000, budget_tokens=400, price=price)
    assert sum(entry.answered.num_attempts for entry in entries(tmp_path)) == 3


def test_a_store_that_counted_dollars_alone_counts_the_tokens_of_its_attempts(tmp_path: Path) -> None:
    with faulty_server(longest) as server:
        asked(server.base_url, tmp_path, 3)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("ALTER TABLE spending DROP COLUMN tokens")
    assert spent(tmp_path) == Spent(0.0, 3 * ONE)
