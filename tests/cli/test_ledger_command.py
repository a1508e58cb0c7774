"""`synthbench ledger`: its output for all experiments, or for one."""

from pathlib import Path

import pytest
from shared_stores import on_machine
from typer.testing import CliRunner
from wording import worded

from synthbench.base.errors import UserError
from synthbench.cli.main import app
from synthbench.engine.stores import CACHE_VARIABLE, VARIABLE
from synthbench.llm.cache import Answer, AnswerCache, Cost
from synthbench.llm.database import BatchTable
from synthbench.llm.endpoint import Account, Endpoint


def lines(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, ["ledger", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.fixture
def asked(tmp_path: Path) -> None:
    """Two experiments with one request each; the second got no answer."""
    endpoint = Endpoint("mine", "http://127.0.0.1:1/v1", "model")
    folder = tmp_path / "home" / "store" / "llm"
    with AnswerCache(folder, endpoint, Account("first", "0123456789ab")) as cache:
        cache.record_answer(
            cache.begin_attempt("a", Cost(9, 9, 0.5)) or 0, "a", Answer("text", "", 10, 5), 0.25
        )
    with AnswerCache(folder, endpoint, Account("second", "ba9876543210")) as cache:
        cache.begin_attempt("b", Cost(8, 4, 0.5))


@pytest.mark.usefixtures("asked")
def test_each_stage_has_a_line_and_the_last_one_sums_up() -> None:
    assert lines() == [
        "first 01234567: answers of 'mine' (model): 1 (10 + 5 tokens, 0.2500 US dollars)",
        "second ba987654: answers of 'mine' (model): 0 (0 + 0 tokens, 0.0000 US dollars); in doubt: 1 (8 + 4"
        " tokens, 0.5000 US dollars)",
        "paid: 0.2500 US dollars; in doubt: at most 0.5000",
    ]


@pytest.fixture
def in_batch(tmp_path: Path) -> None:
    """A request in an uncollected batch."""
    endpoint = Endpoint("mine", "http://127.0.0.1:1/v1", "model")
    with AnswerCache(
        tmp_path / "home" / "store" / "llm", endpoint, Account("first", "0123456789ab")
    ) as cache:
        batches = BatchTable(cache.database)
        batches.insert("batch-1", endpoint)
        cache.begin_attempt("a", Cost(9, 3, 0.5), batch="batch-1")
        batches.mark_sent("batch-1")
        batches.set_id("batch-1", "batch_abc")


@pytest.mark.usefixtures("in_batch")
def test_open_batches_are_shown_and_can_be_given_up() -> None:
    amount = "1 (9 + 3 tokens, 0.5000 US dollars)"
    first = "first 01234567: answers of 'mine' (model): 0 (0 + 0 tokens, 0.0000 US dollars)"
    assert lines() == [
        f"{first}; in flight in batches: {amount}",
        "paid: 0.0000 US dollars; in doubt: at most 0.0000; in batches: at most 0.5000",
    ]
    assert lines("--give-up", "batch_abc") == [
        "given up batch batch_abc; of its requests are in doubt now: 1",
        f"{first}; in doubt: {amount}",
        "paid: 0.0000 US dollars; in doubt: at most 0.5000",
    ]


def test_no_batch_is_given_up_while_another_machine_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "shared"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "here"))
    with on_machine(str(tmp_path / "shared"), tmp_path / "there").ledger.held():
        result = CliRunner().invoke(app, ["ledger", "--give-up", "batch_abc"])
    assert isinstance(result.exception, UserError)
    assert "nothing was given up" in str(result.exception)


@pytest.mark.usefixtures("asked")
def test_one_experiment_can_be_named() -> None:
    assert lines("second")[-1] == "paid: 0.0000 US dollars; in doubt: at most 0.5000"
    assert len(lines("second")) == 2


def test_without_requests_nothing_was_paid(tmp_path: Path) -> None:
    assert lines() == ["paid: 0.0000 US dollars; in doubt: at most 0.0000"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("asked")
def test_an_experiment_without_requests_is_an_error() -> None:
    result = CliRunner().invoke(app, ["ledger", "thrid"])
    assert isinstance(result.exception, UserError)
    worded(str(result.exception), "LLM")
