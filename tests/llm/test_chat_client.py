"""The client against small servers that misbehave on purpose."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, answer, echo, error, faulty_server, said
from wording import refused

from synthbench.base.errors import UserError
from synthbench.llm import dispatcher, retries
from synthbench.llm.accounts import Cost
from synthbench.llm.answers import Answer
from synthbench.llm.cache import FILE, AnswerCache, key_of
from synthbench.llm.client import REQUESTS_PER_SLOT, ChatClient
from synthbench.llm.connection import Connection
from synthbench.llm.endpoint import Account, Endpoint, Pacing, Price
from synthbench.llm.limits import RateLimit
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.llm.retries import FailedAttemptError, FailureKind

VARIABLE = "SYNTHBENCH_TEST_LLM_KEY"
KEY = "sk-very-private-0815"
DOLLAR = Price(input=0, output=200_000, date="2026-01-01")
"""With answers of 5 tokens, a request costs one dollar."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    monkeypatch.setattr(retries, "LONGEST_BACKOFF", 0.02)


def requests(number: int, **sampling: float | int) -> list[ChatRequest]:
    return [
        ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), sampling) for i in range(number)
    ]


def client(base_url: str, folder: Path, key_variable: str = "", **pacing: Any) -> ChatClient:
    endpoint = Endpoint("mine", base_url, "model", key_variable, Pacing(**{"concurrency": 4, **pacing}))
    return ChatClient(endpoint, folder, Account("study", "stage"))


def texts(answers: Iterable[ChatAnswer]) -> dict[str, str | None]:
    return {each.request.key: each.text for each in answers}


def attempts(folder: Path) -> dict[str, int]:
    with sqlite3.connect(folder / FILE) as database:
        return dict(database.execute("SELECT state, count(*) FROM attempts GROUP BY state").fetchall())


def test_every_request_is_answered_and_sent_once(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        asked = requests(50, temperature=1.3)
        wanted = {f"r{i}": f"echo text {i}" for i in range(50)}
        assert texts(client(server.base_url, tmp_path).answers(asked)) == wanted
        assert texts(client(server.base_url, tmp_path).answers(asked)) == wanted
        assert len(server.bodies) == 50
        assert {(body["model"], body["temperature"], body["seed"]) for body in server.bodies} == {
            ("model", 1.3, 0)
        }
        assert server.most_at_once <= 4


@pytest.mark.parametrize("fault", [SystemExit, asyncio.CancelledError])
def test_a_request_that_ends_its_thread_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    async def ask(*_: object) -> Answer:
        raise fault

    monkeypatch.setattr(Connection, "ask", ask)
    with pytest.raises(fault):
        list(client("http://127.0.0.1:9", tmp_path).answers(requests(20)))


def test_a_repeated_request_in_one_run_is_sent_once(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        found = list(client(server.base_url, tmp_path).answers(requests(1) * 20))
    assert [each.text for each in found] == ["echo text 0"] * 20
    assert len(server.bodies) == 1


def test_each_attempt_has_an_id_shared_by_service_and_ledger(tmp_path: Path) -> None:
    with faulty_server(lambda n, body: error(500) if n < 3 else echo(n, body)) as server:
        list(client(server.base_url, tmp_path).answers(requests(5)))
    with sqlite3.connect(tmp_path / FILE) as database:
        noted = [name for (name,) in database.execute("SELECT session || '-' || id FROM attempts")]
    assert len(server.ids) == 8
    assert sorted(server.ids) == sorted(noted)


def test_requests_are_read_no_faster_than_they_are_answered(tmp_path: Path) -> None:
    num_read = 0

    def counted() -> Iterator[ChatRequest]:
        nonlocal num_read
        for request in requests(100):
            num_read += 1
            yield request

    with faulty_server(echo) as server:
        for num_answered, _ in enumerate(client(server.base_url, tmp_path).answers(counted())):
            assert num_read <= num_answered + 1 + 4 * REQUESTS_PER_SLOT


def test_an_early_exit_leaves_no_request_in_flight_and_loses_no_answer(tmp_path: Path) -> None:
    def slow(number: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.05 if number else 0)
        return echo(number, body)

    with faulty_server(slow) as server:
        answers = client(server.base_url, tmp_path).answers(requests(100))
        next(iter(answers))
        answers.close()  # type: ignore[attr-defined]
        assert len(server.bodies) < 100
    assert attempts(tmp_path) == {"answered": len(server.bodies)}


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (error(429, retry_after="0"), "refused"),
        (error(500), "refused"),
        (error(503), "refused"),
        (Reply(502, b"<html>Bad gateway</html>", "text/html"), "refused"),
        (Reply(200, b"<html>Sign in</html>", "text/html"), "in doubt"),
        (Reply(200, b'{"choices": [{"mess'), "in doubt"),
        (Reply(200, b'{"choices": []}'), "refused"),
        (Reply(200, b'{"choices": null}'), "refused"),
        (Reply(200, b'{"error": {"message": "Overloaded"}}'), "refused"),
        (answer("half a sen", finish="error"), "unfinished"),
        (answer("half a sen", finish="abort"), "unfinished"),
        (Reply(200, answer("cut").body, cut=20), "in doubt"),
        (Reply(cut=0), "in doubt"),
        (Reply(raw=b"220 mail.example.org ESMTP\r\n\r\n"), "in doubt"),
    ],
)
def test_temporary_failures_are_retried_and_recorded(tmp_path: Path, fault: Reply, state: str) -> None:
    with faulty_server(lambda n, body: fault if n < 3 else echo(n, body)) as server:
        found = texts(client(server.base_url, tmp_path, concurrency=1).answers(requests(5)))
    assert found == {f"r{i}": f"echo text {i}" for i in range(5)}
    assert attempts(tmp_path) == {"answered": 5, state: 3}


def test_the_client_waits_if_the_service_asks_for_it(tmp_path: Path) -> None:
    times: list[float] = []

    def busy_at_first(number: int, body: dict[str, Any]) -> Reply:
        times.append(time.monotonic())
        return error(429, retry_after="1") if number == 0 else echo(number, body)

    with faulty_server(busy_at_first) as server:
        list(client(server.base_url, tmp_path).answers(requests(1)))
    assert times[1] - times[0] >= 1


def test_repeated_zero_retry_after_headers_lead_to_growing_pauses() -> None:
    busy = FailedAttemptError(FailureKind.BUSY, "HTTP 429", retry_after=0.0)
    pauses = [busy.pause(num_tries) for num_tries in range(1, 8)]
    assert all(0.0005 * 2**n <= pause <= 0.02 for n, pause in enumerate(pauses[:5]))
    assert pauses[-1] >= 0.01
    assert FailedAttemptError(FailureKind.BUSY, "HTTP 429", retry_after=5.0).pause(1) >= 5


def test_a_permanently_failing_request_is_sent_once_and_counted(tmp_path: Path) -> None:
    def picky(number: int, body: dict[str, Any]) -> Reply:
        return error(400, "too long") if said(body) == "text 3" else echo(number, body)

    with faulty_server(picky) as server:
        found = list(client(server.base_url, tmp_path).answers(requests(30)))
        assert len(server.bodies) == 30
    assert (found[-1].request.key, found[-1].text, found[-1].failure) == ("r3", None, "HTTP 400: too long")


@pytest.mark.parametrize(
    "body",
    [
        {"msg": "too long"},
        {"error": None, "message": "too long"},
        {"error": {"msg": "too long"}},
        {"detail": "too long"},
        {"message": "too long", "errors": ["a list"]},
    ],
)
def test_a_services_message_is_shown_under_any_key(tmp_path: Path, body: dict[str, Any]) -> None:
    with faulty_server(lambda n, asked: Reply(400, json.dumps(body).encode())) as server:
        (found,) = client(server.base_url, tmp_path).answers(requests(1))
    assert found.failure == "HTTP 400: too long"


def test_a_list_of_errors_without_a_message_is_shown_as_it_is(tmp_path: Path) -> None:
    body = b'{"errors": [{"code": 7}]}'
    with faulty_server(lambda n, asked: Reply(400, body)) as server:
        (found,) = client(server.base_url, tmp_path).answers(requests(1))
    assert found.failure == 'HTTP 400: [{"code": 7}]'


@pytest.mark.parametrize(
    "filtered", [answer(None, "content_filter"), error(400, "flagged", code="content_filter")]
)
def test_content_filters_are_counted_failures_and_never_stop_a_run(tmp_path: Path, filtered: Reply) -> None:
    with faulty_server(lambda n, body: filtered) as server:
        found = list(client(server.base_url, tmp_path).answers(requests(40)))
        assert len(server.bodies) == 40
    assert {(each.text, each.failure) for each in found} == {(None, "refused: content filter")}


@pytest.mark.parametrize(
    ("fault", "tries", "reason"),
    [
        (error(429, "slow down", retry_after="0"), 2, "HTTP 429, given up after 2 tries"),
        (error(400, "no such thing"), 1, "HTTP 400: no such thing"),
        (
            Reply(200, b"<html>Sign in</html>", "text/html; charset=utf-8"),
            4,
            "faulty answer: text/html instead of JSON, given up after 4 tries",
        ),
        (
            Reply(200, b'{"choices": [', "application/json"),
            4,
            "faulty answer: incomplete JSON instead of an answer, given up after 4 tries",
        ),
    ],
)
def test_a_few_failures_are_counted_and_many_stop_the_run(
    tmp_path: Path, fault: Reply, tries: int, reason: str
) -> None:
    with faulty_server(lambda n, body: fault) as server:
        asking = client(server.base_url, tmp_path, tries=tries if tries < 4 else 9)
        assert [each.failure for each in asking.answers(requests(3))] == [reason] * 3
        assert len(server.bodies) == 3 * tries
        with pytest.raises(UserError) as raised:
            list(asking.answers(requests(500)))
        assert len(server.bodies) < 500
    headline, listed = raised.value.messages
    assert headline.startswith("the LLM 'mine': 20 of the last 20 requests failed for good, more than")
    assert listed.startswith(f"20 x {reason.partition(',')[0]}: r")
    assert listed.endswith("and 17 more")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            error(401, f"Incorrect API key provided: {KEY}"),
            f"rejects the key .HTTP 401.; see .* {VARIABLE}",
        ),
        (
            error(403, f"{KEY} may not"),
            rf"denies access with this key .HTTP 403: \*\*\* may not.; see .* {VARIABLE}",
        ),
        (
            Reply(403, b"<html>Blocked</html>", "text/html"),
            "denies access with this key .HTTP 403: a web page instead of the API's answer.",
        ),
        (
            error(404, "No such model"),
            r"has no model 'model', or another address \(HTTP 404: No such model\)",
        ),
        (
            error(429, f"{KEY} is out of quota", "insufficient_quota"),
            r"has no credit left .* \*\*\* is out of",
        ),
        (
            error(402, f"{KEY} has no balance"),
            r"has no credit left for this key .HTTP 402: \*\*\* has no balance.",
        ),
    ],
)
def test_an_error_of_all_requests_stops_the_run_in_one_line_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Reply, message: str
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    with faulty_server(lambda n, body: fault) as server:
        with pytest.raises(UserError, match=f"^the LLM 'mine' at {server.base_url} {message}") as raised:
            list(client(server.base_url, tmp_path, VARIABLE).answers(requests(50)))
        assert server.keys[0] == f"Bearer {KEY}"
        assert len(server.bodies) <= 4
    assert len(raised.value.messages) == 1
    assert KEY not in str(raised.value)
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


def test_without_a_key_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with refused(str(VARIABLE)):
        list(client("http://127.0.0.1:9/v1", tmp_path, VARIABLE).answers(requests(2)))


def test_an_unavailable_endpoint_is_reported_in_one_line(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        pass
    with refused("LLM", "'mine'", str(server.base_url)):
        list(client(server.base_url, tmp_path).answers(requests(50)))
    assert set(attempts(tmp_path)) == {"refused"}


def test_a_silent_service_times_out(tmp_path: Path) -> None:
    def slow(number: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.5)
        return echo(number, body)

    with faulty_server(slow) as server:
        (found,) = client(server.base_url, tmp_path, timeout=0.1, tries=2).answers(requests(1))
    assert found.failure == "no answer within 0.1 s, given up after 2 tries"
    assert attempts(tmp_path) == {"in doubt": 2}


def test_many_consecutive_refusals_are_survived(tmp_path: Path) -> None:
    def storm(number: int, body: dict[str, Any]) -> Reply:
        return error(429, retry_after="0") if number % 3 else echo(number, body)

    with faulty_server(storm) as server:
        found = texts(client(server.base_url, tmp_path, concurrency=16, tries=50).answers(requests(100)))
    assert found == {f"r{i}": f"echo text {i}" for i in range(100)}


def test_the_run_stops_below_the_budget_and_a_higher_budget_resumes_it(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        asked = requests(20, max_tokens=5)
        with refused("llm.budget_usd", "7.5", "US", "7.0000"):
            list(client(server.base_url, tmp_path, budget_usd=7.5, price=DOLLAR).answers(asked))
        assert len(server.bodies) == 7
        found = texts(client(server.base_url, tmp_path, budget_usd=20, price=DOLLAR).answers(asked))
        assert len(found) == len(server.bodies) == 20


def test_with_a_zero_budget_paid_answers_are_still_replayed(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        paid = texts(client(server.base_url, tmp_path).answers(requests(3)))
        penniless = client(server.base_url, tmp_path, budget_usd=0, price=DOLLAR)
        assert texts(penniless.answers(requests(3))) == paid
        with refused("llm.budget_usd", "0", "US"):
            list(penniless.answers(requests(4)))


def test_a_budget_needs_a_price(tmp_path: Path) -> None:
    with refused("llm.budget_usd", "give price"):
        list(client("http://127.0.0.1:9/v1", tmp_path, budget_usd=1).answers(requests(1)))


def test_offline_paid_answers_are_replayed_and_missing_ones_named_without_a_key(tmp_path: Path) -> None:
    with faulty_server(echo) as server:
        paid = texts(client(server.base_url, tmp_path).answers(requests(3)))
    offline = client("http://127.0.0.1:9/v1", tmp_path, VARIABLE, offline=True)
    assert texts(offline.answers(requests(3))) == paid
    with refused("llm.offline", "'mine'", "r3"):
        list(offline.answers(requests(4)))


def test_requests_respect_the_limit_per_minute(tmp_path: Path) -> None:
    times: list[float] = []

    def timed(number: int, body: dict[str, Any]) -> Reply:
        times.append(time.monotonic())
        return echo(number, body)

    with faulty_server(timed) as server:
        list(client(server.base_url, tmp_path, requests_per_minute=1200).answers(requests(11)))
    assert max(times) - min(times) >= 0.4


def test_waiting_for_another_processs_answer_uses_up_no_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[int] = []

    async def wait(limit: RateLimit, amount: int, sleep: object) -> None:
        charged.append(amount)

    def release(number: int, body: dict[str, Any]) -> Reply:
        if number == 0:
            time.sleep(0.03)
            with sqlite3.connect(tmp_path / FILE) as database:
                database.execute("UPDATE attempts SET state = 'refused' WHERE key = ?", (key,))
        return echo(number, body)

    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(RateLimit, "wait", wait)
    with faulty_server(release) as server:
        asking = client(server.base_url, tmp_path)
        key = key_of(asking.endpoint, requests(1)[0])
        with AnswerCache(tmp_path, asking.endpoint, Account()) as other:
            other.begin_attempt(key, Cost(1, 1, 0.0))
            assert len(texts(asking.answers(requests(2)))) == 2
    assert charged.count(1) == 2
