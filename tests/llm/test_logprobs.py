"""Log-probabilities: asked for, cached and paid as answers are; refused in one line where there are none."""

import json
import math
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from batch_server import Result, batch_server
from faulty_server import Reply, answer, error, faulty_server
from pydantic import ValidationError
from wording import refused

from synthbench.base.errors import PendingError
from synthbench.llm.cache import FILE, key_of
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.judging import UNCLEAR, Question, verdicts
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatAnswer, ChatRequest

Rows = list[tuple[str, dict[str, float]]]
"""Tokens of an answer, with the probabilities of the alternatives."""


def told(rows: Rows) -> dict[str, Any]:
    """Return the API's JSON for tokens; the first alternative is the token that came."""

    def one(token: str, share: float) -> dict[str, Any]:
        return {"token": token, "logprob": math.log(share), "bytes": list(token.encode())}

    content = [
        {**one(token, top.get(token, 1.0)), "top_logprobs": [one(*each) for each in top.items()]}
        for token, top in rows
    ]
    return {"content": content, "refusal": None}


def with_logprobs(rows: Rows) -> Reply:
    reply = json.loads(answer("".join(token for token, _ in rows)).body)
    reply["choices"][0]["logprobs"] = told(rows)
    return Reply(body=json.dumps(reply).encode())


def client(base_url: str, folder: Path, **pacing: Any) -> ChatClient:
    return ChatClient(
        Endpoint("mine", base_url, "model", pacing=Pacing(**pacing)), folder, Account("study", "s")
    )


def request(text: str = "Hi", logprobs: int | None = 2) -> ChatRequest:
    return ChatRequest("a", ({"role": "user", "content": text},), {}, logprobs=logprobs)


def asked(base_url: str, folder: Path, **pacing: Any) -> ChatAnswer:
    (found,) = client(base_url, folder, **pacing).answers([request()])
    return found


GREETING: Rows = [("Good", {"Good": 0.75, "Hi": 0.25}), (" day", {" day": 0.5, " evening": 0.25})]


def test_tokens_come_with_their_log_probabilities_and_again_from_the_cache(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: with_logprobs(GREETING)) as server:
        found = asked(server.base_url, tmp_path)
        assert asked(server.base_url, tmp_path, offline=True) == found
        (body,) = server.bodies
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
    assert found.text == "Good day"
    assert [each.token for each in found.logprobs] == ["Good", " day"]
    assert sum(each.logprob for each in found.logprobs) == pytest.approx(math.log(0.75 * 0.5))
    assert found.logprobs[1].top == pytest.approx({" day": math.log(0.5), " evening": math.log(0.25)})


def test_a_request_without_them_is_sent_and_cached_as_ever(tmp_path: Path) -> None:
    endpoint = Endpoint("mine", "http://127.0.0.1:9/v1", "model")
    written = (
        b'{"endpoint": "mine", "messages": [{"content": "Hi", "role": "user"}], "model": "model",'
        b' "sample": 0, "sampling": {}}'
    )
    keys = [key_of(endpoint, request(logprobs=each)) for each in (None, 0, 2)]
    assert len({*keys}) == 3
    with faulty_server(lambda number, body: answer("Hi")) as server:
        (found,) = client(server.base_url, tmp_path).answers([request(logprobs=None)])
        assert not {"logprobs", "top_logprobs"} & server.bodies[0].keys()
    assert found.logprobs == ()
    assert keys[0] == sha256(written).hexdigest()


def test_an_endpoint_that_ignores_the_wish_is_refused_in_one_line_and_its_answer_stays_counted(
    tmp_path: Path,
) -> None:
    ignoring = faulty_server(lambda number, body: answer("Hi"))
    with ignoring as server, refused("'mine'", "no log-probabilities of model"):
        asked(server.base_url, tmp_path)
    (entry,) = entries(tmp_path)
    assert (entry.paid.num_attempts, entry.paid.prompt_tokens) == (1, 10)
    with faulty_server(lambda number, body: with_logprobs(GREETING)) as server:
        assert asked(server.base_url, tmp_path).logprobs, "another server of the model is asked"


@pytest.mark.parametrize("status", [400, 403])
def test_an_endpoint_that_rejects_the_wish_is_refused_in_one_line(tmp_path: Path, status: int) -> None:
    message = "You are not allowed to request logprobs from this model"
    with faulty_server(lambda number, body: error(status, message)) as server:
        with refused("'mine'", "no log-probabilities of model", f"HTTP {status}", message):
            asked(server.base_url, tmp_path)
        assert len(server.bodies) == 1


ODD = [
    None,
    {"content": None},
    {"content": []},
    {"content": [{"token": 5, "logprob": -1}]},
    {"content": [{"token": "a", "logprob": "none"}]},
    {"content": [{"token": "a", "logprob": float("nan")}]},
]


@pytest.mark.parametrize("logprobs", ODD)
def test_unreadable_log_probabilities_are_none(tmp_path: Path, logprobs: object) -> None:
    reply = json.loads(answer("Hi").body)
    reply["choices"][0]["logprobs"] = logprobs
    odd = faulty_server(lambda number, body: Reply(body=json.dumps(reply).encode()))
    with odd as server, refused("'mine'", "no log-probabilities of model"):
        asked(server.base_url, tmp_path)


def test_impossible_tokens_and_broken_letters_are_read(tmp_path: Path) -> None:
    rows = [
        {"token": "a", "logprob": 1e-7, "top_logprobs": [{"token": "\ud83d", "logprob": float("-inf")}]},
        {"token": "b", "logprob": -1, "top_logprobs": None},
    ]
    reply = json.loads(answer("ab").body)
    reply["choices"][0]["logprobs"] = {"content": rows}
    with faulty_server(lambda number, body: Reply(body=json.dumps(reply).encode())) as server:
        first, second = asked(server.base_url, tmp_path).logprobs
        assert asked(server.base_url, tmp_path, offline=True).logprobs == (first, second)
    assert first.top == {"a": 0.0, "\ufffd": -9999.0}
    assert second.top == {"b": -1.0}


def test_damaged_log_probabilities_are_reported_and_asked_for_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with faulty_server(lambda number, body: with_logprobs(GREETING)) as server:
        asked(server.base_url, tmp_path)
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
            database.execute("UPDATE logprobs SET content = replace(content, 'Good', 'Bad!')")
        assert asked(server.base_url, tmp_path).logprobs[0].token == "Good"
        assert len(server.bodies) == 2
    assert "damaged" in capsys.readouterr().out


def test_batches_carry_the_wish_and_bring_log_probabilities(tmp_path: Path) -> None:
    def lines(body: dict[str, Any]) -> Result:
        return {
            "response": {"status_code": 200, "body": json.loads(with_logprobs(GREETING).body)},
            "error": None,
        }

    with batch_server(lines) as server:
        with pytest.raises(PendingError):
            asked(server.base_url, tmp_path, batch=True)
        server.finish()
        assert asked(server.base_url, tmp_path, batch=True).logprobs[0].token == "Good"


GRADE = [("4", {"4": 0.5, "5": 0.25, "3": 0.125, " four": 0.125})]


@pytest.mark.parametrize(
    ("settings", "rows", "value"),
    [
        ({"grades": (0, 5)}, GRADE, (0.5 * 4 + 0.25 * 5 + 0.125 * 3) / 0.875 / 5),
        ({"grades": (1, 5)}, GRADE, (0.5 * 3 + 0.25 * 4 + 0.125 * 2) / 0.875 / 4),
        ({}, [("Yes", {"Yes": 0.5, " yes": 0.25, "No": 0.25})], 0.75),
        ({}, [("No", {"No": 0.6, "Yes": 0.2, "Maybe": 0.2})], 0.25),
        (
            {"grades": (0, 5), "explanation": True},
            [("3", {"3": 1.0}), (" words.\n", {" words.\n": 1.0}), ("Score: ", {"Score: ": 1.0}),
             ("3", {"3": 0.5, "4": 0.5})],
            0.7,
        ),
        (
            {"grades": (0, 5), "explanation": True},
            [("Both run.\nScore: ", {}), ("5", {"5": 0.5, "0": 0.5}), ("/", {}), ("5", {"5": 1.0})],
            0.5,
        ),
        (
            {"grades": (0, 5), "explanation": True},
            [("3", {"3": 1.0}), (" run.\n**Score:**", {}), (" 3", {" 3": 0.5, "4": 0.5}), (", as ", {}),
             ("3", {"3": 1.0}), (" run.\n\nNote: ", {}), ("3", {"3": 1.0}), (" run.", {})],
            0.7,
        ),
        (
            {"grades": (0, 5)},
            [("Of 0 to ", {}), ("5", {"5": 1.0}), (", the score is ", {}), ("5", {"5": 0.5, "4": 0.5})],
            0.9,
        ),
        ({"grades": (0, 5)}, [("A score of ", {}), ("4", {"4": 0.5, "5": 0.5})], 0.9),
        (
            {},
            [("<think>They say ", {}), ("yes", {"yes": 1.0}), ("</think>\n", {}),
             ("Yes", {"Yes": 0.6, "No": 0.4})],
            0.6,
        ),
    ],
)  # fmt: skip
def test_an_expected_grade_weighs_what_the_answers_token_may_have_been(
    tmp_path: Path, settings: dict[str, Any], rows: Rows, value: float
) -> None:
    question = Question(prompt="How similar? {text}", expected=True, **settings)
    with faulty_server(lambda number, body: with_logprobs(rows)) as server:
        records = [("a", {"text": "It rains."})]
        ((_, verdict),) = verdicts(question, records, client(server.base_url, tmp_path))
    assert verdict.value == pytest.approx(value)


def test_an_answer_whose_grade_is_no_token_is_unclear(tmp_path: Path) -> None:
    question = Question(prompt="How similar? {text}", expected=True, grades=(0, 5))
    with faulty_server(
        lambda number, body: with_logprobs([("fo", {"fo": 1.0}), ("ur", {"ur": 1.0})])
    ) as server:
        ((_, verdict),) = verdicts(question, [("a", {"text": "It."})], client(server.base_url, tmp_path))
    assert (verdict.value, verdict.reason) == (None, UNCLEAR)


def test_expected_grades_are_single_tokens() -> None:
    with refused("expected", "0 to 9", kind=ValidationError):
        Question(prompt="{text}", expected=True, grades=(0, 10))
