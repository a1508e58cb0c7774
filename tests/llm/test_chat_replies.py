"""Whatever comes over HTTP: an answer, or a failure that is counted and not bought again."""

import gzip
import json
import sqlite3
import tracemalloc
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer, Reply, Script, answer, echo, faulty_server
from hypothesis import given, settings
from hypothesis import strategies as st

from synthbench.base.errors import UserError
from synthbench.llm import connection, retries
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing, Price
from synthbench.llm.ledger import entries
from synthbench.llm.replies import MAX_REPLY_BYTES
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.llm.retries import MAX_RETRY_AFTER, FailedAttemptError, FailureKind

PRICE = Price(input=1, output=1, date="2026-01-01")
DEEP = b"[" * 100_000


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    monkeypatch.setattr(retries, "LONGEST_BACKOFF", 0.002)


def ask(server: FaultyServer, folder: Path, number: int = 1) -> list[ChatAnswer]:
    endpoint = Endpoint("mine", server.base_url, "model", "", Pacing(concurrency=4, price=PRICE))
    requests = (ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(number))
    return list(ChatClient(endpoint, folder, Account("study", "stage")).answers(requests))


def reply(message: Any, usage: Any = None, **choice: Any) -> Reply:
    return Reply(body=json.dumps({"choices": [{"message": message, **choice}], "usage": usage}).encode())


def parts(*content: Any) -> Reply:
    return reply({"role": "assistant", "content": list(content)})


TEXT = {"type": "text", "text": "A man "}
MORE = {"type": "text", "text": "rides."}
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}


@pytest.mark.parametrize(
    ("given", "text", "failure"),
    [
        (parts(TEXT, MORE), "A man rides.", ""),
        (parts(THINKING, TEXT), "A man ", ""),
        (parts(7, None, {"type": "text"}, {"type": ["text"]}, TEXT), "A man ", ""),
        (reply({"content": "A man rides.", "reasoning_content": "Hm."}), "A man rides.", ""),
        (reply({"content": "<think>Hm.</think>\n\nA man rides."}), "A man rides.", ""),
        (parts({"type": "refusal", "refusal": "I cannot."}), None, "refused: by the model"),
        (reply({"content": None, "refusal": "I cannot."}), None, "refused: by the model"),
        (reply({"content": "A man"}, finish_reason="content_filter"), None, "refused: content filter"),
        (reply({"content": "A man"}, finish_reason="SAFETY"), None, "refused: content filter"),
        (reply({"content": "A man"}, finish_reason="length"), None, "cut off: limit on tokens"),
        (reply({"content": "A man"}, finish_reason="MAX_TOKENS"), None, "cut off: limit on tokens"),
        (
            reply({"content": "", "reasoning": "Hm."}, finish_reason="length"),
            None,
            "cut off: limit on tokens, before any answer",
        ),
        (
            reply({"content": "<think>Hm."}, finish_reason="length"),
            None,
            "cut off: limit on tokens, before any answer",
        ),
    ],
)
def test_any_completion_is_an_answer_or_a_failure_requested_once(
    tmp_path: Path, given: Reply, text: str | None, failure: str
) -> None:
    with faulty_server(lambda number, body: given) as server:
        for _ in range(2):
            (found,) = ask(server, tmp_path)
            assert (found.text, found.failure) == (text, failure)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "many",
        7,
        {"prompt_tokens": None, "completion_tokens": "5"},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": 10**30, "completion_tokens": 10**30},
        {"prompt_tokens": True, "completion_tokens": [5]},
        {"prompt_tokens": 1e300, "completion_tokens": {}},
    ],
)
def test_invalid_token_counts_are_replaced_by_estimates(tmp_path: Path, usage: Any) -> None:
    with faulty_server(lambda number, body: reply({"content": "A man rides."}, usage)) as server:
        (found,) = ask(server, tmp_path)
    assert found.text == "A man rides."
    (entry,) = entries(tmp_path)
    assert (entry.answered.prompt_tokens, entry.answered.completion_tokens) == (2, 4)
    assert entry.answered.usd == pytest.approx(6e-6)


UNREADABLE = [
    Reply(body=b""),
    Reply(204),
    Reply(body=b"null"),
    Reply(body=b"{}"),
    Reply(body=b'{"choices": {"0": 1}}'),
    Reply(body=b'{"choices": [[]]}'),
    Reply(body=b'{"choices": [{"message": []}]}'),
    Reply(body=b'{"choices": [{"message": "text"}]}'),
    Reply(body=DEEP),
    Reply(body=b'{"choices": ' + DEEP),
    Reply(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    Reply(body=b"9" * 5000),
    Reply(body=answer("text").body, headers={"Content-Encoding": "gzip"}),
    Reply(body=gzip.compress(answer("text").body, mtime=0)[:-20], headers={"Content-Encoding": "gzip"}),
    Reply(body=answer("text").body, headers={"Content-Encoding": "br"}),
    Reply(body=b"hello", content_type="text/plain; charset=no-such"),
]


@pytest.mark.parametrize("fault", UNREADABLE, ids=lambda fault: repr(fault.body[:40]))
def test_an_unreadable_reply_is_retried_a_few_times_then_counted_and_not_paid_again(
    tmp_path: Path, fault: Reply
) -> None:
    def script(number: int, body: dict[str, Any]) -> Reply:
        return fault if body["messages"][0]["content"] == "text 0" else echo(number, body)

    with faulty_server(script) as server:
        first = {each.request.key: each for each in ask(server, tmp_path, 5)}
        num_asked = len(server.bodies)
        again = {each.request.key: each for each in ask(server, tmp_path, 5)}
        assert len(server.bodies) == num_asked == 4 + retries.FEW
    assert first == again
    assert first["r0"].text is None
    assert first["r0"].failure.endswith("given up after 4 tries")
    (entry,) = entries(tmp_path)
    assert (entry.answered.num_attempts, entry.in_doubt.num_attempts) == (4, 4)


def test_an_html_reply_costs_nothing_and_is_requested_again_by_a_later_run(tmp_path: Path) -> None:
    page = Reply(200, b"<html>Sign in</html>", "text/html")
    with faulty_server(lambda number, body: page if number < 4 else echo(number, body)) as server:
        assert [each.text for each in ask(server, tmp_path)] == [None]
        assert [each.text for each in ask(server, tmp_path)] == ["echo text 0"]


def test_paid_failures_are_stored_if_another_request_ends_the_run(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def script(number: int, body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"]
        asked[text] += 1
        if text == "text 0":
            return Reply(body=b"{}")
        if text == "text 1":  # refused, once the other was given up
            asked["since"] += asked["text 0"] >= 4
            return Reply(404, b"{}") if asked["since"] > 2 else Reply(429, b"", headers={"Retry-After": "0"})
        return echo(number, body)

    with faulty_server(script) as server:
        for _ in range(2):
            with pytest.raises(UserError):
                ask(server, tmp_path, 5)
            assert asked["text 0"] == 4


def test_paid_failures_are_stored_before_the_run_ends(tmp_path: Path) -> None:
    def script(number: int, body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"]
        asked[text] += 1
        if text == "text 1" and asked["text 0"] == 4:
            on_disk.append(num_failures(tmp_path))
        waits = text == "text 1" and on_disk.count(1) < 1
        return (
            Reply(429, b"", headers={"Retry-After": "0"})
            if waits
            else (Reply(body=b"{}") if text == "text 0" else echo(number, body))
        )

    asked: Counter[str] = Counter()
    on_disk: list[int] = []
    with faulty_server(script) as server:
        ask(server, tmp_path, 2)
    assert on_disk[-1] == 1  # while the other request was still under way


def num_failures(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "answers.sqlite")) as database:
        (number,) = database.execute("SELECT count(*) FROM answers WHERE failure != ''").fetchone()
    return int(number)


def test_a_failed_run_stores_no_failures(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: Reply(body=b"{}")) as server, pytest.raises(UserError):
        ask(server, tmp_path, 30)
    with faulty_server(echo) as server:
        assert all(each.text for each in ask(server, tmp_path, 30))


@pytest.mark.parametrize(
    "fault",
    [
        Reply(500, b"\xff\xfe", "text/plain; charset=no-such"),
        Reply(500, b"\xff", "text/plain; charset=hex"),
        Reply(503, DEEP),
        Reply(502, json.dumps({"error": {"message": "\ud800", "code": ["a"]}}).encode()),
        Reply(429, b"", headers={"Retry-After": "Mon, 01 Jan 99999999999 00:00:00 GMT"}),
        Reply(429, b"", headers={"Retry-After": "nan", "Set-Cookie": "=;;;=", "X": "\xff"}),
        Reply(200, json.dumps({"error": {"message": "overloaded", "code": 529}}).encode()),
    ],
)
def test_a_refusal_in_any_format_is_retried(tmp_path: Path, fault: Reply) -> None:
    with faulty_server(lambda number, body: fault if number < 3 else echo(number, body)) as server:
        assert [each.text for each in ask(server, tmp_path)] == ["echo text 0"]
    (entry,) = entries(tmp_path)
    assert (entry.num_refused, entry.in_doubt.num_attempts) == (3, 0)


def test_a_run_does_not_wait_longer_than_the_maximum_for_a_busy_service() -> None:
    assert FailedAttemptError(FailureKind.BUSY, "HTTP 429", MAX_RETRY_AFTER).can_pass(1, 8)
    assert not FailedAttemptError(FailureKind.BUSY, "HTTP 429", MAX_RETRY_AFTER + 1).can_pass(1, 8)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "refusal", "usage", "text", "type", "error", "code"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_MESSAGES = st.fixed_dictionaries({}, optional={"content": _JSON, "refusal": _JSON, "reasoning": _JSON})
_COMPLETIONS = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"message": _MESSAGES | _JSON}) | _JSON, max_size=2)},
    optional={"usage": _JSON, "error": _JSON},
)


@settings(max_examples=15)
@given(
    st.lists(
        (_COMPLETIONS | _JSON).map(lambda each: json.dumps(each).encode()) | st.binary(),
        min_size=6,
        max_size=15,
    )
)
def test_no_body_raises_a_traceback_and_stored_failures_are_not_requested_again(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("cache")

    def script(number: int, body: dict[str, Any]) -> Reply:
        place = int(body["messages"][0]["content"].removeprefix("text "))
        return Reply(body=bodies[place])

    with faulty_server(script) as server:
        first = {each.request.key: each for each in ask(server, folder, len(bodies))}
        assert first.keys() == {f"r{i}" for i in range(len(bodies))}
        assert all((each.text is None) == bool(each.failure) for each in first.values())
        passing = {key for key, each in first.items() if "HTTP" in each.failure}
        server.bodies.clear()
        again = {each.request.key: each for each in ask(server, folder, len(bodies))}
        asked = {f"r{body['messages'][0]['content'].removeprefix('text ')}" for body in server.bodies}
    assert asked <= passing
    assert again == first


BOMB = 200 * 2**20


def packed(size: int, level: int = 9) -> bytes:
    """Return a compressed completion whose text has `size` letters."""
    before, after = answer("@").body.split(b"@")
    packer = zlib.compressobj(level, wbits=31)
    body = packer.compress(before)
    for _ in range(size // 2**20):
        body += packer.compress(b"a" * 2**20)
    return body + packer.compress(after) + packer.flush()


def test_an_oversized_answer_is_a_failure_and_requested_once(tmp_path: Path) -> None:
    too_large = answer("a" * MAX_REPLY_BYTES)
    with faulty_server(lambda number, body: too_large) as server:
        for _ in range(2):
            (found,) = ask(server, tmp_path)
            assert (found.text, found.failure) == (None, "faulty answer: the answer exceeds 4 MiB")
    assert len(server.bodies) == 1


def test_a_compressed_answer_is_read_and_a_decompression_bomb_is_stopped(tmp_path: Path) -> None:
    headers = {"Content-Encoding": "gzip"}
    replies = [Reply(body=packed(2**20), headers=headers), Reply(body=packed(BOMB), headers=headers)]
    with faulty_server(lambda number, body: replies[number]) as server:
        (found,) = ask(server, tmp_path / "one")
        assert found.text == "a" * 2**20
        tracemalloc.start()
        (found,) = ask(server, tmp_path / "other")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (found.text, found.failure) == (None, "faulty answer: the answer exceeds 4 MiB")
    assert peak < 4 * MAX_REPLY_BYTES


def redirecting(location: str, status: int = 307) -> Script:
    return lambda number, body: Reply(status, headers={"Location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_server_is_refused_in_one_line_and_nothing_is_sent_there(
    tmp_path: Path, status: int
) -> None:
    with faulty_server(echo) as other:
        location = f"{other.base_url}/chat/completions?token=abc"
        script = redirecting(location, status)
        with faulty_server(script) as server, pytest.raises(UserError) as raised:
            ask(server, tmp_path)
    assert other.bodies == []
    assert str(raised.value) == (
        f"the LLM 'mine' at {server.base_url} redirects to {other.base_url}/chat/completions, another"
        " server; if that is the right one, set llm.base_url to it"
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_same_server_is_followed(tmp_path: Path, status: int) -> None:
    once = redirecting("/v2/chat", status)
    with faulty_server(lambda number, body: (echo if number else once)(number, body)) as server:
        assert [each.text for each in ask(server, tmp_path)] == ["echo text 0"]


def test_a_redirect_loop_is_reported_in_one_line(tmp_path: Path) -> None:
    circle = redirecting("/v1/chat/completions")
    with faulty_server(circle) as server, pytest.raises(UserError, match="redirects too often"):
        ask(server, tmp_path)
    assert len(server.bodies) == connection.MAX_REDIRECTS + 1


def test_a_redirect_without_a_target_is_a_counted_failure(tmp_path: Path) -> None:
    with faulty_server(redirecting("http://999.999.999.999/")) as server:
        (found,) = ask(server, tmp_path)
    assert (found.text, found.failure) == (None, "a redirect to an invalid address")
