"""UKGovernmentBEIS/inspect_ai #1536: half a sentence with `finish_reason: error` was an answer.

Here an answer is data only if it is whole. Every kind is counted in the ledger, and a server's fault is never
final: the next run asks again.
"""

import json
import stat
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from synthbench.llm import retries
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.ledger import entries
from synthbench.llm.replies import ServerFaultError, UnreadableReplyError, described, read_completion
from synthbench.llm.requests import ChatAnswer, ChatRequest


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    monkeypatch.setattr(retries, "LONGEST_BACKOFF", 0.002)


def ask(folder: Path, body: Any, *, takes: bool = False) -> tuple[ChatAnswer, int]:
    """Return what a caller gets if the server always replies with this body, and the number of requests."""
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            reply = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        endpoint = Endpoint("mine", address, "model", takes_cut_off=takes)
        request = ChatRequest("r", ({"role": "user", "content": "Say."},), {})
        (found,) = ChatClient(endpoint, folder, Account("study", "stage")).answers([request])
        server.shutdown()
    return found, len(asked)


def completion(text: str | None, finish: str | None = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "model": "model"}


@pytest.mark.parametrize(
    ("body", "failure", "num_asked"),
    [
        (
            completion("Half a sen", "error"),
            "faulty answer: finish_reason 'error', given up after 8 tries",
            8,
        ),
        ({"choices": None}, "faulty answer: HTTP 200 without an answer, given up after 8 tries", 8),
        (
            {"error": {"message": "Overloaded", "code": 502}},
            "faulty answer: HTTP 200 with an error: Overloaded, given up after 8 tries",
            8,
        ),
    ],
)
def test_a_server_error_is_no_data_and_is_retried(
    tmp_path: Path, body: Any, failure: str, num_asked: int
) -> None:
    found, number = ask(tmp_path, body)
    assert (found.text, found.failure, number) == (None, failure, num_asked)
    (entry,) = entries(tmp_path)
    assert entry.num_faulty == num_asked
    assert ask(tmp_path, completion("Whole."))[0].text == "Whole."


@pytest.mark.parametrize(
    ("body", "failure", "num_asked", "kind"),
    [
        (completion("Half a sen", "length"), "cut off: limit on tokens", 1, "num_cut_off"),
        (completion("Half a sen", "content_filter"), "refused: content filter", 1, "num_filtered"),
        (completion(""), "empty answer", 3, "num_empty"),
        (completion(None), "empty answer", 3, "num_empty"),
        (completion(" \u200b"), "empty answer", 3, "num_empty"),
        (completion("\u3164\u2800"), "empty answer", 3, "num_empty"),
        (completion("A man", "?"), "faulty answer: finish_reason '?'", 4, "num_faulty"),
        (completion("A man", None), "faulty answer: finish_reason null", 4, "num_faulty"),
    ],
)
def test_an_incomplete_answer_is_counted_and_not_paid_again(
    tmp_path: Path, body: Any, failure: str, num_asked: int, kind: str
) -> None:
    found, number = ask(tmp_path, body)
    assert (found.text, found.failure, number) == (None, failure, num_asked)
    again, number = ask(tmp_path, completion("Whole."))
    assert (again, number) == (found, 0)
    (entry,) = entries(tmp_path)
    assert (getattr(entry, kind), entry.paid.num_attempts) == (num_asked, num_asked)


def test_a_setting_accepts_truncated_answers(tmp_path: Path) -> None:
    assert ask(tmp_path, completion("Half a sen", "length"))[0].text is None
    found, number = ask(tmp_path, completion("Other."), takes=True)
    assert (found.text, number) == ("Half a sen", 0)


def test_only_the_user_may_read_the_answers_even_those_stored_earlier(tmp_path: Path) -> None:
    ask(tmp_path, completion("Whole."))
    file = tmp_path / "answers.sqlite"
    file.chmod(0o644)
    ask(tmp_path, completion("Whole."))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"choices": [None]}, "without an answer"),
        ({"choices": [{"message": None, "finish_reason": "stop"}]}, "without an answer"),
        ({"choices": [{"finish_reason": "error"}]}, "without an answer"),
        ({"error": ["Overloaded"]}, "Overloaded"),
        ({"error": True, "message": "Overloaded"}, "Overloaded"),
        ({"error": {}}, '{"error": {}}'),
        ({"errors": [{"message": "Overloaded"}]}, "Overloaded"),
        ({"code": 503, "msg": "Overloaded"}, "Overloaded"),
        ({"detail": [{"msg": "Overloaded"}]}, "Overloaded"),
    ],
)
def test_an_error_in_any_format_shows_the_services_message(body: Any, said: str) -> None:
    with pytest.raises(ServerFaultError) as raised:
        read_completion(body, 1)
    assert described(raised.value.fault).endswith(said)


@pytest.mark.parametrize(
    "body", [{"choices": [{"text": "A man."}]}, {"choices": [{"message": "A man."}]}, {"content": "A man."}]
)
def test_an_answer_of_another_api_is_no_server_error(body: Any) -> None:
    with pytest.raises(UnreadableReplyError):
        read_completion(body, 1)
