"""The ledger: each stage's tokens and costs, and requests in doubt."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from wording import refused

from synthbench.llm.cache import FILE, Answer, AnswerCache, Cost
from synthbench.llm.endpoint import Account, Endpoint, Price, price_of
from synthbench.llm.ledger import AttemptTotals, entries, spent

ENDPOINT = Endpoint("mine", "http://127.0.0.1:1/v1", "model")
EXPECTED = Cost(100, 50, 0.5)


def note(folder: Path, account: Account, *, key: str, state: str) -> None:
    with AnswerCache(folder, ENDPOINT, account) as cache:
        attempt = cache.begin_attempt(key, EXPECTED) or 0
        if state == "answered":
            cache.record_answer(attempt, key, Answer("text", "", 10, 5), 0.125)
        elif state == "refused":
            cache.record_failure(attempt, "HTTP 500")


def test_without_a_cache_the_ledger_is_empty(tmp_path: Path) -> None:
    assert entries(tmp_path) == []


def test_a_file_without_tables_after_a_kill_is_empty(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    assert entries(tmp_path) == []


def test_each_stage_has_an_entry_with_paid_and_in_doubt_amounts(tmp_path: Path) -> None:
    one, other = Account("study", "one"), Account("study", "other")
    note(tmp_path, one, key="a", state="refused")
    note(tmp_path, one, key="a", state="killed")
    note(tmp_path, one, key="a", state="answered")
    note(tmp_path, one, key="b", state="answered")
    note(tmp_path, other, key="c", state="killed")
    first, second = entries(tmp_path, "study")
    assert (first.stage, first.endpoint, first.model) == ("one", "mine", "model")
    assert first.answered == AttemptTotals(2, 20, 10, 0.25)
    assert first.in_doubt == AttemptTotals(1, 10, 5, 0.5)
    assert first.num_refused == 1
    assert second.answered == AttemptTotals(0, 0, 0, 0.0)
    assert second.in_doubt == AttemptTotals(1, 100, 50, 0.5)
    assert entries(tmp_path, "study", "other") == [second]
    assert entries(tmp_path, "another") == []


def test_an_entry_prints_as_one_readable_line(tmp_path: Path) -> None:
    note(tmp_path, Account(), key="a", state="killed")
    note(tmp_path, Account(), key="a", state="answered")
    (entry,) = entries(tmp_path)
    assert str(entry) == (
        "answers of 'mine' (model): 1 (10 + 5 tokens, 0.1250 US dollars); in doubt: 1 (10 + 5 tokens,"
        " 0.5000 US dollars)"
    )


@pytest.mark.parametrize("change", ["ALTER TABLE spending DROP COLUMN tokens", "DROP TABLE spending"])
def test_a_file_that_counted_no_tokens_has_spent_what_its_attempts_cost(tmp_path: Path, change: str) -> None:
    for key, state in (("a", "answered"), ("b", "killed"), ("c", "refused")):
        note(tmp_path, Account("study"), key=key, state=state)
    assert spent(tmp_path, "study") == (0.625, 165)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(change)
    assert spent(tmp_path, "study") == (0.625, 165)
    assert spent(tmp_path, "another") == (0.0, 0)


def test_an_invalid_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, " * 100)
    with refused("LLM"):
        entries(tmp_path)


def test_an_endpoints_own_price_overrides_the_list() -> None:
    known = Endpoint("openai", "https://api.openai.com/v1", "gpt-4o-mini")
    assert price_of(known) is not None
    assert price_of(ENDPOINT) is None
    own = Price(input=1, output=2, date="2026-05-01")
    overridden = Endpoint("openai", "u", "gpt-4o-mini", pacing=known.pacing.model_copy(update={"price": own}))
    assert price_of(overridden) == own
    assert own.usd(1_000_000, 500_000) == 2.0
