"""langchain-ai/langchainjs #1929: an account without credit answers 429, and is asked again.

An empty account ends the work at once with one line; it costs a single request, and the answers so far are
kept.
"""

from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, echo, error, faulty_server
from wording import refused

from synthbench.llm import retries
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.requests import ChatRequest


def test_a_request_from_an_account_without_credit_is_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)

    def script(number: int, body: dict[str, Any]) -> Reply:
        return (
            echo(number, body) if number < 2 else error(429, "You exceeded your quota", "insufficient_quota")
        )

    requests = [ChatRequest(f"r{n}", ({"role": "user", "content": f"text {n}"},), {}) for n in range(5)]
    with faulty_server(script) as server:
        endpoint = Endpoint("mine", server.base_url, "model", "", Pacing(concurrency=1))
        client = ChatClient(endpoint, tmp_path, Account("study", "stage"))
        with refused("credit"):
            list(client.answers(requests))
        assert len(server.bodies) == 3
        found = list(client.answers(requests[:2]))
    assert sorted(each.text or "" for each in found) == ["echo text 0", "echo text 1"]
    assert len(server.bodies) == 3
