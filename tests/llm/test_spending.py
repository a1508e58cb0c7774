"""Each LLM of a file has an account of its own, also where two name one model."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from synthbench.llm.answering_models import notes_on_models
from synthbench.llm.answers import Answer
from synthbench.llm.cache import FILE, AnswerCache, Cost
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.ledger import entries

ONE = Endpoint("mine", "http://127.0.0.1:1/v1", "model", section="llms.one")
OTHER = replace(ONE, section="llms.other")
STUDY = Account("study", "stage")


def pay(folder: Path, endpoint: Endpoint, key: str, usd: float) -> None:
    with AnswerCache(folder, endpoint, STUDY) as cache:
        attempt = cache.begin_attempt(key, Cost(1, 1, 1.0))
        assert attempt is not None
        cache.record_answer(attempt, key, Answer("text", "", 1, 1), usd)


def spent(folder: Path, endpoint: Endpoint) -> float:
    with AnswerCache(folder, endpoint, STUDY) as cache:
        return cache.spent().usd


def test_two_llms_of_one_model_have_separate_accounts(tmp_path: Path) -> None:
    pay(tmp_path, ONE, "a", 0.25)
    pay(tmp_path, OTHER, "b", 0.5)
    assert (spent(tmp_path, ONE), spent(tmp_path, OTHER)) == (0.25, 0.5)
    assert {entry.llm: entry.paid.usd for entry in entries(tmp_path)} == {"llms.one": 0.25, "llms.other": 0.5}


def test_earlier_versions_spending_on_the_model_counts_for_each_llm(tmp_path: Path) -> None:
    pay(tmp_path, ONE, "a", 0.25)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
        database.executescript("DELETE FROM payers; DELETE FROM spending")
    pay(tmp_path, OTHER, "b", 0.5)
    assert (spent(tmp_path, ONE), spent(tmp_path, OTHER)) == (0.25, 0.75)


def test_a_file_with_accounts_keyed_by_experiment_endpoint_and_model_is_migrated(tmp_path: Path) -> None:
    pay(tmp_path, ONE, "a", 0.25)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
        database.executescript(
            "DELETE FROM payers; DELETE FROM spending;"
            "CREATE TABLE accounts (experiment TEXT PRIMARY KEY, usd REAL NOT NULL);"
            "INSERT INTO accounts VALUES ('study\x1fmine\x1fmodel', 0.25)"
        )
    pay(tmp_path, ONE, "b", 0.5)
    assert spent(tmp_path, ONE) == 0.75
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'accounts'").fetchall()


def test_another_name_of_the_model_is_noted_and_another_model_is_a_warning() -> None:
    named = ["gpt-4o-2024-08-06", "openai/gpt-4o", "/models/gpt", "gpt-4o-mini", "x/gpt-4"]
    notes = list(notes_on_models("gpt-4o", named))
    assert [note.startswith("Another LLM answered") for note in notes] == [False, False, False, True, True]
