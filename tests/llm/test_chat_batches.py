"""Asking through the Batch API: submitted once, collected by the same command on another day."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from batch_server import Batches, batch_server, echo, never, refusal, result
from faulty_server import Reply, error, said
from wording import refused, worded

from synthbench.base.errors import PendingError, UserError
from synthbench.llm import batches, retries
from synthbench.llm.batch_api import request_line
from synthbench.llm.cache import FILE, Answer, AnswerCache, Cost, key_of
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing, Price
from synthbench.llm.finished_batches import give_up_batch
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatAnswer, ChatRequest

VARIABLE = "SYNTHBENCH_TEST_LLM_KEY"
KEY = "sk-very-private-0816"
DOLLAR = Price(input=0, output=200_000, date="2026-01-01", batch=0.5)
"""With answers of 5 tokens, a request costs one dollar, and half of it in a batch."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)


@pytest.fixture
def server() -> Iterator[Batches]:
    with batch_server() as running:
        yield running


def requests(number: int, first: int = 0, **sampling: float | int) -> list[ChatRequest]:
    return [
        ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), sampling)
        for i in range(first, first + number)
    ]


def client(server: Batches, folder: Path, key: str = "", **pacing: Any) -> ChatClient:
    endpoint = Endpoint("mine", server.base_url, "model", key, Pacing(**{"batch": True, **pacing}))
    return ChatClient(endpoint, folder, Account("study", "stage"))


def texts(answers: Iterable[ChatAnswer]) -> dict[str, str | None]:
    return {each.request.key: each.text for each in answers}


def submit(asking: ChatClient, asked: Iterable[ChatRequest]) -> tuple[list[ChatAnswer], tuple[str, ...]]:
    """Return the answers before the client reported pending ones, and its message."""
    found: list[ChatAnswer] = []
    with pytest.raises(PendingError) as pending:
        for answer in asking.answers(asked):
            found.append(answer)
    return found, pending.value.messages


def attempts(folder: Path) -> dict[str, int]:
    with sqlite3.connect(folder / FILE) as database:
        return dict(database.execute("SELECT state, count(*) FROM attempts GROUP BY state").fetchall())


def spent(folder: Path) -> float:
    with sqlite3.connect(folder / FILE) as database:
        return float(database.execute("SELECT usd FROM spending WHERE experiment = 'study'").fetchone()[0])


def echoes(number: int) -> dict[str, str | None]:
    return {f"r{i}": f"echo text {i}" for i in range(number)}


def test_requests_are_submitted_and_collected_by_the_same_command(tmp_path: Path, server: Batches) -> None:
    asking, asked = client(server, tmp_path), requests(5, temperature=1.3)
    assert submit(asking, asked) == (
        [],
        ("batch batch_0 of 'mine': 5 requests submitted; run the same command again to collect it",),
    )
    assert submit(asking, asked)[1] == (
        "batch batch_0 of 'mine': 0 of 5 requests done; run the same command again to collect it",
    )
    server.finish()
    assert texts(asking.answers(asked)) == echoes(5)
    assert texts(asking.answers(asked)) == echoes(5)
    assert len(server.batches) == 1
    assert len(server.bodies) == 5
    assert attempts(tmp_path) == {"answered": 5}


def test_a_batched_request_equals_the_direct_request(tmp_path: Path, server: Batches) -> None:
    asked = requests(3, temperature=1.3, max_tokens=7)
    submit(client(server, tmp_path), asked)
    in_batch = server.asked("batch_0")
    endpoint = client(server, tmp_path).endpoint
    assert [line["custom_id"] for line in in_batch] == [key_of(endpoint, request) for request in asked]
    assert {(line["method"], line["url"]) for line in in_batch} == {("POST", "/v1/chat/completions")}
    list(client(server, tmp_path / "directly", batch=False, concurrency=1).answers(asked))
    assert [line["body"] for line in in_batch] == server.bodies
    batch = server.batches["batch_0"]
    assert (batch["endpoint"], batch["completion_window"]) == ("/v1/chat/completions", "24h")


def test_batched_and_direct_requests_share_their_answers(tmp_path: Path, server: Batches) -> None:
    assert texts(client(server, tmp_path, batch=False).answers(requests(2))) == echoes(2)
    found, _ = submit(client(server, tmp_path), requests(4))
    assert texts(found) == echoes(2)
    assert len(server.asked("batch_0")) == 2
    server.finish()
    assert texts(client(server, tmp_path).answers(requests(4))) == echoes(4)
    nowhere = client(Batches("http://127.0.0.1:9/v1"), tmp_path, offline=True)
    assert texts(nowhere.answers(requests(4))) == echoes(4)
    with refused("llm.offline", "'mine'"):
        list(nowhere.answers(requests(5)))


def test_direct_requests_collect_batches_and_skip_batched_requests(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path), requests(3))
    found, said_then = submit(client(server, tmp_path, batch=False), requests(5))
    assert texts(found) == {f"r{i}": f"echo text {i}" for i in (3, 4)}
    assert said_then == (
        "batch batch_0 of 'mine': 0 of 3 requests done; run the same command again to collect it",
    )
    server.finish("cancelled", num_done=2)
    assert texts(client(server, tmp_path, batch=False).answers(requests(5))) == echoes(5)
    assert len(server.bodies) == 5


def test_the_same_request_twice_is_submitted_once(tmp_path: Path, server: Batches) -> None:
    asked = requests(2) * 3
    submit(client(server, tmp_path), asked)
    assert len(server.asked("batch_0")) == 2
    server.finish()
    assert [each.text for each in client(server, tmp_path).answers(asked)] == [
        "echo text 0",
        "echo text 1",
    ] * 3


def test_long_request_lists_are_split_into_several_batches(
    tmp_path: Path, server: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_REQUESTS", 3)
    _, lines = submit(client(server, tmp_path), requests(7))
    assert [len(server.asked(name)) for name in server.batches] == [3, 3, 1]
    assert len(lines) == 3
    monkeypatch.setattr(batches, "MAX_BYTES", 1)
    submit(client(server, tmp_path), requests(9))
    assert [len(server.asked(name)) for name in server.batches] == [3, 3, 1, 1, 1]
    server.finish()
    assert texts(client(server, tmp_path).answers(requests(9))) == echoes(9)


def test_answers_are_read_line_by_line_whatever_their_content(tmp_path: Path) -> None:
    odd = "one\u2028two\u0085three\nfour"
    with batch_server(lambda body: result(odd)) as server:
        submit(client(server, tmp_path), requests(2))
        server.finish()
        found = texts(client(server, tmp_path).answers(requests(2)))
    assert found == {"r0": odd, "r1": odd}


def test_expired_requests_are_submitted_again_at_no_cost(tmp_path: Path, server: Batches) -> None:
    asking = client(server, tmp_path, price=DOLLAR)
    submit(asking, requests(4, max_tokens=5))
    assert spent(tmp_path) == 2.0
    server.finish("expired", num_done=1)
    found, _ = submit(asking, requests(4, max_tokens=5))
    assert texts(found) == echoes(1)
    assert attempts(tmp_path) == {"answered": 1, "refused": 3, "sent": 3}
    assert spent(tmp_path) == 2.0
    server.finish()
    assert texts(asking.answers(requests(4, max_tokens=5))) == echoes(4)
    assert len(server.bodies) == 4
    assert spent(tmp_path) == 2.0


def test_missing_lines_of_a_finished_batch_are_in_doubt(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path), requests(3))
    server.finish()
    name = server.batches["batch_0"]["output_file_id"]
    server.files[name] = server.files[name].split(b"\n")[0] + b'\n{"torn\n[]\n'
    found, _ = submit(client(server, tmp_path), requests(3))
    assert len(found) == 1
    assert attempts(tmp_path) == {"answered": 1, "in doubt": 2, "sent": 2}


@pytest.mark.parametrize("state", ["queued", "\x1b[31mpaused", ""])
def test_a_batch_of_an_unknown_state_is_awaited_and_not_paid_twice(
    tmp_path: Path, server: Batches, state: str
) -> None:
    submit(client(server, tmp_path), requests(3))
    server.batches["batch_0"]["status"] = state
    _, (told,) = submit(client(server, tmp_path), requests(3))
    assert (attempts(tmp_path), len(server.batches)) == ({"sent": 3}, 1)
    assert "in the unknown state '" in told
    assert "\x1b" not in told


@pytest.mark.parametrize("key", ["\ud800", 7, None, ["k"]])
def test_a_line_for_an_unknown_request_is_ignored(tmp_path: Path, server: Batches, key: object) -> None:
    submit(client(server, tmp_path), requests(1))
    server.finish()
    (name,) = (name for name in server.files if name.startswith("output"))
    server.files[name] += json.dumps({"custom_id": key, **echo({"messages": [{"content": "x"}]})}).encode()
    assert texts(client(server, tmp_path).answers(requests(1))) == echoes(1)


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        (refusal(400, "too long"), "HTTP 400: too long"),
        (refusal(400, "flagged", "content_filter"), "refused: content filter"),
        (result(None, finish="content_filter"), "refused: content filter"),
    ],
)
def test_a_line_with_a_permanent_error_is_a_counted_failure(
    tmp_path: Path, line: dict[str, Any], failure: str
) -> None:
    with batch_server(lambda body: line if said(body) == "text 7" else echo(body)) as server:
        submit(client(server, tmp_path), requests(30))
        server.finish()
        found = list(client(server, tmp_path).answers(requests(30)))
        assert len(server.batches) == 1
    assert len(found) == 30
    assert [(each.request.key, each.failure) for each in found if each.text is None] == [("r7", failure)]


@pytest.mark.parametrize(
    ("line", "state", "reason"),
    [
        (refusal(500), "refused", "HTTP 500, given up after 2 batches"),
        (refusal(429, "busy"), "refused", "HTTP 429, given up after 2 batches"),
        (never("overloaded", "Try later"), "refused", "Try later, given up after 2 batches"),
        (
            {"response": {"status_code": 200, "body": {"choices": ["?"]}}},
            "in doubt",
            "faulty answer: JSON without an answer, given up after 2 batches",
        ),
        (
            {"response": {"status_code": 200, "body": {"choices": None}}},
            "refused",
            "faulty answer: HTTP 200 without an answer, given up after 2 batches",
        ),
        (
            {"response": {"status_code": 200, "body": {"error": {"message": "Overloaded", "code": 502}}}},
            "refused",
            "faulty answer: HTTP 200 with an error: Overloaded, given up after 2 batches",
        ),
        (
            result("half a sen", finish="error"),
            "unfinished",
            "faulty answer: finish_reason 'error', given up after 2 batches",
        ),
    ],
)
def test_a_line_with_a_temporary_error_is_submitted_again_a_few_times(
    tmp_path: Path, line: dict[str, Any], state: str, reason: str
) -> None:
    with batch_server(lambda body: line if said(body) == "text 3" else echo(body)) as server:
        asking = client(server, tmp_path, tries=2)
        submit(asking, requests(6))
        server.finish()
        found, _ = submit(asking, requests(6))
        assert len(found) == 5
        assert len(server.asked("batch_1")) == 1
        server.finish()
        last = list(asking.answers(requests(6)))[-1]
    assert (last.request.key, last.text, last.failure) == ("r3", None, reason)
    assert attempts(tmp_path) == {"answered": 5, state: 2}


def test_a_paid_unreadable_line_is_not_submitted_again(tmp_path: Path) -> None:
    line = {"response": {"status_code": 200, "body": {"choices": ["?"]}}}
    with batch_server(lambda body: line if said(body) == "text 3" else echo(body)) as server:
        submit(client(server, tmp_path, tries=1), requests(6))
        server.finish()
        first = {each.request.key: each for each in client(server, tmp_path, tries=1).answers(requests(6))}
        again = {each.request.key: each for each in client(server, tmp_path, tries=1).answers(requests(6))}
        assert len(server.batches) == 1
    assert again == first
    assert again["r3"].failure == "faulty answer: JSON without an answer"


def test_too_many_failures_stop_the_run_and_the_same_command_requests_again(tmp_path: Path) -> None:
    with batch_server(lambda body: refusal(400, "no such thing")) as server:
        submit(client(server, tmp_path), requests(30))
        server.finish()
        with refused("LLM", "'mine'", "20"):
            list(client(server, tmp_path).answers(requests(30)))
        server.answering = echo
        submit(client(server, tmp_path), requests(30))
        server.finish()
        assert texts(client(server, tmp_path).answers(requests(30))) == echoes(30)


@pytest.mark.parametrize("line", [result(""), {"response": {"status_code": 200, "body": {"choices": ["?"]}}}])
def test_a_run_that_stops_keeps_no_answers_without_a_text(tmp_path: Path, line: dict[str, Any]) -> None:
    with batch_server(lambda body: line) as server:
        submit(client(server, tmp_path, tries=1), requests(30))
        server.finish()
        with pytest.raises(UserError, match="20 of the last 20 requests failed"):
            list(client(server, tmp_path, tries=1).answers(requests(30)))
        server.answering = echo
        assert submit(client(server, tmp_path, tries=1), requests(30))[0] == []
        server.finish()
        assert texts(client(server, tmp_path, tries=1).answers(requests(30))) == echoes(30)


def test_a_refused_batch_is_reported_in_the_services_words(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path, price=DOLLAR), requests(2, max_tokens=5))
    server.fail("Enqueued token limit reached for model")
    with pytest.raises(UserError) as raised:
        list(client(server, tmp_path, price=DOLLAR).answers(requests(2, max_tokens=5)))
    worded(raised.value.messages, "LLM", "'mine'", "batch_0")
    assert spent(tmp_path) == 0
    submit(client(server, tmp_path), requests(2, max_tokens=5))
    assert len(server.batches) == 2


def test_a_refusal_is_reported_though_a_later_batch_is_unknown(
    tmp_path: Path, server: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_REQUESTS", 1)
    submit(client(server, tmp_path), requests(2))
    server.fail("Enqueued token limit reached for model")
    last = max(server.batches, key=lambda name: server.asked(name)[0]["body"]["messages"][0]["content"])
    del server.batches[last]
    with pytest.raises(UserError) as raised:
        list(client(server, tmp_path).answers(requests(2)))
    said = "\n".join(raised.value.messages)
    assert "Enqueued token limit" in said
    assert last in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (refusal(401, "Incorrect API key"), "rejects the key"),
        (
            refusal(404, "No such model"),
            r"has no model 'model', or another address \(HTTP 404: No such model\)",
        ),
        (refusal(429, "You are out of it", "insufficient_quota"), "has no credit left for this key"),
    ],
)
def test_an_error_of_all_requests_stops_the_run_and_preserves_all_answers(
    tmp_path: Path, line: dict[str, Any], message: str
) -> None:
    with batch_server(lambda body: line if said(body) == "text 0" else echo(body)) as server:
        submit(client(server, tmp_path), requests(3))
        server.finish()
        with pytest.raises(UserError, match=f"^the LLM 'mine' at {server.base_url} {message}"):
            list(client(server, tmp_path).answers(requests(3)))
        assert len(server.batches) == 1
    assert attempts(tmp_path) == {"answered": 2, "refused": 1}


def test_a_batch_accepted_despite_a_broken_connection_is_recovered(tmp_path: Path, server: Batches) -> None:
    for number in range(3):
        submit(client(server, tmp_path / str(number)), requests(1))
    server.accepts_silently = True
    _, lines = submit(client(server, tmp_path), requests(3))
    assert lines == (
        "batch batch_3 of 'mine': 3 requests submitted; run the same command again to collect it",
    )
    assert len(server.batches) == 4


def test_a_batch_that_was_not_accepted_is_submitted_again(tmp_path: Path, server: Batches) -> None:
    server.accepts_none = True
    submit(client(server, tmp_path), requests(3))
    assert len(server.batches) == 1
    assert attempts(tmp_path) == {"sent": 3}


def test_a_batch_in_doubt_is_looked_up_by_the_next_command(tmp_path: Path, server: Batches) -> None:
    server.accepts_silently = True
    server.trouble = lambda method, path: error(500) if (method, path) == ("GET", "/batches") else None
    with refused("HTTP", "500", "2"):
        list(client(server, tmp_path, tries=2).answers(requests(3)))
    assert attempts(tmp_path) == {"sent": 3}
    server.trouble = lambda method, path: None
    assert submit(client(server, tmp_path), requests(3))[1] == (
        "batch batch_0 of 'mine': 0 of 3 requests done; run the same command again to collect it",
    )
    assert len(server.batches) == 1


@pytest.mark.parametrize("later", [error(403, "no"), Reply(cut=0)])
def test_a_batch_that_may_have_been_accepted_is_not_closed_as_free(
    tmp_path: Path, server: Batches, later: Reply
) -> None:
    replies = [later, Reply(cut=0)]
    server.trouble = lambda method, path: replies.pop() if (method, path) == ("POST", "/batches") else None
    with pytest.raises(UserError, match=r"denies access|the connection ended without an answer"):
        list(client(server, tmp_path, tries=2).answers(requests(2)))
    assert attempts(tmp_path) == {"sent": 2}
    server.trouble = lambda method, path: None
    submit(client(server, tmp_path), requests(2))
    assert attempts(tmp_path) == {"in doubt": 2, "sent": 2}


def test_unsent_batches_cost_nothing(
    tmp_path: Path, server: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(endpoint: Endpoint, key: str, request: ChatRequest) -> bytes:
        if request.key == "r2":
            raise KeyboardInterrupt
        return request_line(endpoint, key, request)

    monkeypatch.setattr(batches, "request_line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(client(server, tmp_path, price=DOLLAR).answers(requests(4, max_tokens=5)))
    monkeypatch.undo()
    assert (attempts(tmp_path), spent(tmp_path)) == ({"sent": 2}, 1.0)
    submit(client(server, tmp_path, price=DOLLAR), requests(4, max_tokens=5))
    assert (attempts(tmp_path), spent(tmp_path)) == ({"refused": 2, "sent": 4}, 2.0)


PROGRAM = """
import sys
from pathlib import Path
from synthbench.base.errors import PendingError
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.requests import ChatRequest
client = ChatClient(Endpoint("mine", sys.argv[1], "model", "", Pacing(batch=True)), Path(sys.argv[2]))
asked = [ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(3)]
try:
    print([answer.text for answer in client.answers(asked)])
except PendingError as pending:
    print(pending)
"""


def killed_when(server: Batches, folder: Path, is_time: Callable[[str, str], bool]) -> None:
    """Kill a process while its request waits for the reply."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, server.base_url, str(folder)])

    def trouble(method: str, path: str) -> Reply | None:
        if is_time(method, path):
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        return None

    server.trouble = trouble
    assert process.wait() == -signal.SIGKILL
    server.trouble = lambda method, path: None


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("killed_at", "state"),
    [(("POST", "/files"), "in doubt"), (("POST", "/batches"), "sent")],
    ids=["before the batch was made", "before its id came"],
)
def test_a_kill_while_submitting_neither_loses_nor_repeats_a_batch(
    tmp_path: Path, server: Batches, killed_at: tuple[str, str], state: str
) -> None:
    killed_when(server, tmp_path, lambda method, path: (method, path) == killed_at)
    assert attempts(tmp_path) == {"sent": 3}
    with server.lock:
        num_batches = len(server.batches)
    submit(client(server, tmp_path), requests(3))
    assert len(server.batches) == 1
    assert attempts(tmp_path) == ({"in doubt": 3, "sent": 3} if state == "in doubt" else {"sent": 3})
    assert num_batches == (0 if state == "in doubt" else 1)
    server.finish()
    assert texts(client(server, tmp_path).answers(requests(3))) == echoes(3)
    assert not list((tmp_path / "sessions").glob("batch-*"))


def test_a_kill_while_collecting_causes_no_double_payment(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path, price=DOLLAR), requests(3, max_tokens=5))
    server.finish()
    # As after a kill in the middle of the file: one answer is kept, and the batch is still open.
    with AnswerCache(tmp_path, client(server, tmp_path).endpoint, Account("study", "stage")) as cache:
        key = key_of(client(server, tmp_path).endpoint, requests(1, max_tokens=5)[0])
        cache.store(key, Answer("echo text 0", "", 10, 5))
        cache.database.execute("UPDATE attempts SET state = 'answered', usd = 0.5 WHERE key = ?", (key,))
    assert texts(client(server, tmp_path, price=DOLLAR).answers(requests(3, max_tokens=5))) == echoes(3)
    assert spent(tmp_path) == 1.5
    assert attempts(tmp_path) == {"answered": 3}


def test_requests_in_another_experiments_batch_are_awaited_and_billed_to_that_experiment(
    tmp_path: Path, server: Batches
) -> None:
    submit(client(server, tmp_path, price=DOLLAR), requests(2, max_tokens=5))
    endpoint = client(server, tmp_path, price=DOLLAR).endpoint
    other = ChatClient(endpoint, tmp_path, Account("another", "stage"))
    submit(other, requests(3, max_tokens=5))
    assert [len(server.asked(name)) for name in server.batches] == [2, 1]
    server.finish()
    assert texts(other.answers(requests(3, max_tokens=5))) == echoes(3)
    found = {entry.experiment: entry.answered for entry in entries(tmp_path)}
    assert {name: (amount.num_attempts, amount.usd) for name, amount in found.items()} == {
        "study": (2, 1.0),
        "another": (1, 0.5),
    }
    assert spent(tmp_path) == 1.0


def test_direct_requests_of_another_process_are_awaited(tmp_path: Path, server: Batches) -> None:
    endpoint = client(server, tmp_path).endpoint
    with AnswerCache(tmp_path, endpoint, Account()) as cache:
        cache.begin_attempt(key_of(endpoint, requests(1)[0]), Cost(1, 1, 0.0))
        assert submit(client(server, tmp_path), requests(1))[1] == (
            "1 requests to 'mine' are in flight in another process",
        )
        assert not server.batches


def test_the_budget_submits_the_requests_that_fit_and_defers_the_rest(
    tmp_path: Path, server: Batches
) -> None:
    asking, asked = client(server, tmp_path, price=DOLLAR, budget_usd=2.5), requests(4, max_tokens=10)
    _, lines = submit(asking, asked)
    assert len(server.asked("batch_0")) == 2
    assert lines[1] == (
        "2 more requests to 'mine' may cost more than llm.budget_usd (2.5 US dollars) leaves; run the same"
        " command again once batches are finished"
    )
    server.finish()
    submit(asking, asked)
    assert len(server.asked("batch_1")) == 1
    server.finish()
    with refused("llm.budget_usd", "2.4", "US", "1.5000"):
        list(client(server, tmp_path, price=DOLLAR, budget_usd=2.4).answers(asked))
    submit(asking, asked)
    server.finish()
    assert texts(asking.answers(asked)) == echoes(4)
    assert spent(tmp_path) == 2.0


def test_batches_never_hold_more_tokens_than_the_service_allows(tmp_path: Path, server: Batches) -> None:
    # "text 0" has six bytes, at most a token each, and eight are added for a message.
    asking = client(server, tmp_path, enqueued_tokens=30)
    assert submit(asking, requests(3))[1] == (
        "batch batch_0 of 'mine': 2 requests submitted; run the same command again to collect it",
        "1 more requests to 'mine' have more tokens than llm.enqueued_tokens (30) leaves; run the same"
        " command again once batches are finished",
    )
    other = ChatClient(asking.endpoint, tmp_path, Account("another", "stage"))
    assert submit(other, requests(1, first=3))[1][0].startswith("1 more requests to 'mine' have more tokens")
    with refused("llm.enqueued_tokens", "10", "14"):
        list(client(server, tmp_path / "elsewhere", enqueued_tokens=10).answers(requests(1)))
    server.finish()
    submit(asking, requests(3))
    server.finish()
    assert texts(asking.answers(requests(3))) == echoes(3)
    assert [len(server.asked(name)) for name in server.batches] == [2, 1]


def test_the_ledger_lists_requests_in_open_batches(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path, price=DOLLAR), requests(3, max_tokens=5))
    (entry,) = entries(tmp_path)
    assert (entry.in_batches.num_attempts, entry.in_batches.usd, entry.in_doubt.num_attempts) == (3, 1.5, 0)
    assert "; in flight in batches: 3 (" in str(entry)
    server.finish()
    list(client(server, tmp_path, price=DOLLAR).answers(requests(3, max_tokens=5)))
    (entry,) = entries(tmp_path)
    assert (entry.answered.num_attempts, entry.answered.usd, entry.in_batches.num_attempts) == (3, 1.5, 0)


def test_an_unknown_batch_can_be_abandoned(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path), requests(2))
    forgotten = server.batches.pop("batch_0")
    with refused("batch_0", "--give-up", "batch_0`"):
        list(client(server, tmp_path).answers(requests(2)))
    with refused("'batch_9'", "batch_0"):
        give_up_batch(tmp_path, "batch_9")
    assert give_up_batch(tmp_path, "batch_0") == 2
    server.batches["other"] = {**forgotten, "id": "other"}
    submit(client(server, tmp_path), requests(2))
    assert attempts(tmp_path) == {"in doubt": 2, "sent": 2}


@pytest.mark.parametrize("path", ["/files", "/batches"])
def test_a_service_without_batches_is_reported_in_one_line_and_nothing_is_pending(
    tmp_path: Path, server: Batches, path: str
) -> None:
    server.trouble = lambda method, asked: error(404, "Not Found") if asked == path else None
    with pytest.raises(UserError) as raised:
        list(client(server, tmp_path).answers(requests(2)))
    worded(raised.value.messages, "LLM", "'mine'", str(server.base_url), "API", "HTTP")
    assert attempts(tmp_path) == {"refused": 2}


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), f"rejects the key .*{VARIABLE}$"),
        (error(400, f"{KEY} is limited"), r"fails to process batches \(HTTP 400: \*\*\* is limited\)"),
        (Reply(200, b"<html>Sign in</html>", "text/html"), "fails to process batches .the reply is not"),
        (Reply(200, b'{"id": '), "fails to process batches .the reply is not the Batch API's JSON"),
        (Reply(cut=0), "fails to process batches .the connection ended without an answer"),
        (
            Reply(307, headers={"Location": f"https://u:{KEY}@else.where/v1/files?key={KEY}"}),
            "redirects to https://else.where/v1/files, another server; if that is the right one",
        ),
    ],
)
def test_a_service_that_refuses_batches_is_reported_in_one_line_without_the_key(
    tmp_path: Path, server: Batches, monkeypatch: pytest.MonkeyPatch, trouble: Reply, message: str
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    server.trouble = lambda method, path: trouble
    with pytest.raises(UserError, match=f"^the LLM 'mine' at {server.base_url} {message}") as raised:
        list(client(server, tmp_path, VARIABLE, tries=2).answers(requests(2)))
    assert KEY not in str(raised.value)
    assert server.keys == {f"Bearer {KEY}"}
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


def test_temporary_failures_are_retried(tmp_path: Path, server: Batches) -> None:
    draw = Random(0)
    faults = (error(429, retry_after="0"), error(503), Reply(cut=0), None, None)
    server.trouble = lambda method, path: draw.choice(faults)
    submit(client(server, tmp_path, tries=20), requests(3))
    server.finish()
    assert texts(client(server, tmp_path, tries=20).answers(requests(3))) == echoes(3)
    assert len(server.bodies) == 3


def test_a_truncated_download_is_fetched_again(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path), requests(3))
    server.finish()
    cuts = [20, 300]

    def trouble(method: str, path: str) -> Reply | None:
        if not path.endswith("/content") or not cuts:
            return None
        return Reply(200, server.files[path.split("/")[2]], "application/octet-stream", cut=cuts.pop())

    server.trouble = trouble
    assert texts(client(server, tmp_path).answers(requests(3))) == echoes(3)
    assert not cuts


def test_an_unavailable_service_is_reported_in_one_line(tmp_path: Path, server: Batches) -> None:
    submit(client(server, tmp_path), requests(3))
    down = client(Batches("http://127.0.0.1:9/v1"), tmp_path)
    with refused("LLM", "'mine'", "9/v1"):
        list(down.answers(requests(3)))
    server.finish()
    assert texts(client(server, tmp_path).answers(requests(3))) == echoes(3)


def test_text_that_is_not_valid_unicode_is_a_counted_failure(tmp_path: Path, server: Batches) -> None:
    torn = ChatRequest("torn", ({"role": "user", "content": "\ud800"},), {})
    found, _ = submit(client(server, tmp_path), [*requests(2), torn])
    assert [(each.request.key, each.failure) for each in found] == [("torn", "its text is not valid Unicode")]
    assert len(server.asked("batch_0")) == 2


def test_without_a_key_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with refused(str(VARIABLE)):
        list(client(Batches("http://127.0.0.1:9/v1"), tmp_path, VARIABLE).answers(requests(1)))
