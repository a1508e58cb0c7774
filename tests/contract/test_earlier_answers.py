"""LLM answers of earlier versions are paid, and serve today's code: same keys, same schema, same ledger."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from synthbench.api import ChatRequest
from synthbench.base.errors import UserError
from synthbench.cli.main import app
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Endpoint, Pacing

BEFORE = Path(__file__).parent / "before" / "answers.sql"
"""A cache as a killed process left it in November 2026, before the modules got their present names."""
ENDPOINT = Endpoint("mine", "http://127.0.0.1:1/v1", "model", pacing=Pacing(offline=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the cache in the tests' home."""
    folder = tmp_path / "home" / "store" / "llm"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "answers.sqlite")) as database:
        database.executescript(BEFORE.read_text("utf-8"))
    return folder


def request(
    key: str, *contents: str, sampling: Mapping[str, float | int] | None = None, sample: int = 0
) -> ChatRequest:
    roles = ("system", "user")[-len(contents) :]
    messages = tuple(
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=True)
    )
    return ChatRequest(key, messages, sampling or {}, sample)


def answers(folder: Path, *requests: ChatRequest) -> dict[str, tuple[str | None, str]]:
    """Return text and failure by request, from the cache alone: no request can be sent."""
    said: list[str] = []
    found = list(ChatClient(ENDPOINT, folder, say=said.append).answers(requests))
    assert said == []  # no answer is damaged
    return {each.request.key: (each.text, each.failure) for each in found}


def test_the_cache_still_returns_answers_of_an_earlier_version(folder: Path) -> None:
    system, sampling = "Answer briefly.", {"temperature": 1, "top_p": 0.9, "max_tokens": 40.0}
    found = answers(
        folder,
        request("r0", system, "Paraphrase: A man rides.", sampling=sampling),
        request("r1", system, "Paraphrase: A man rides.", sampling=sampling, sample=1),
        request("r2", system, "Umschreibe: „Grüße“ 🐎", sample=2**53 + 1),
        request("r3", "Refuse.", sampling={"presence_penalty": 0.25}),
        request("r4", "Fail."),
    )
    assert found == {
        "r0": ("Someone is riding.", ""),
        "r1": ("A rider.", ""),
        "r2": ("Hallo 🐎\n", ""),
        "r3": (None, "refused: content filter"),
        "r4": (None, "faulty answer: JSON without an answer"),
    }


@pytest.mark.parametrize("content", ["Killed.", "In a batch."])
def test_requests_in_flight_have_no_answer(folder: Path, content: str) -> None:
    with pytest.raises(UserError, match="r5"):
        answers(folder, request("r5", content))


def test_the_schema_equals_that_of_a_new_cache_and_is_unchanged(folder: Path, tmp_path: Path) -> None:
    def schema(folder: Path) -> list[tuple[str, str]]:
        with closing(sqlite3.connect(folder / "answers.sqlite")) as database:
            rows = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            return sorted(rows.fetchall())

    before = schema(folder)
    answers(folder, request("r4", "Fail."))
    answers(tmp_path / "new")
    added = {"usage_details", "spending", "payers", "replies", "stage_models", "unfinished", "logprobs"}
    kept = [each for each in before if each[0] != "accounts"]
    assert kept == [each for each in schema(folder) if each[0] not in added]
    assert schema(folder) == schema(tmp_path / "new")


def test_the_ledger_adds_up_as_before_and_an_open_batch_can_be_given_up(folder: Path) -> None:
    def numbers(*arguments: str) -> list[list[str]]:
        lines = CliRunner().invoke(app, ["ledger", *arguments]).stdout.splitlines()
        return [re.findall(r"(?<!\w)\d[\d.]*(?!\w)", line) for line in lines]

    answers(folder, request("r4", "Fail."))  # takes the dead process's attempt for in doubt, not the batch's
    answered, one = ["4", "78", "24", "0.0123"], ["1", "30", "40", "0.0070"]
    first, none = ["01234567", *answered, *one, "1"], ["0", "0", "0", "0.0000"]
    assert numbers() == [first, [*none, *one, *one], ["0.0123", "0.0140", "0.0070"]]
    assert numbers("--give-up", "batch_abc")[0] == ["1"]
    assert numbers()[1:] == [[*none, "2", "60", "80", "0.0140"], ["0.0123", "0.0210"]]
