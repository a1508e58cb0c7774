"""open-compass/opencompass #2583: a service that always fails is asked for ever; keys are logged.

Attempts are bounded for each request, what failed is counted as a failure, and no message holds the key.
"""

import json
from pathlib import Path

import pytest
from faulty_server import error, faulty_server

from synthbench.base.errors import UserError
from synthbench.llm import retries
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatRequest

KEY = "sk-very-private-2583"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_never_responds_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    monkeypatch.setattr(retries, "LONGEST_BACKOFF", 0.001)
    monkeypatch.setenv("SYNTHBENCH_TEST_LLM_KEY", KEY)
    request = ChatRequest("r", ({"role": "user", "content": "text"},), {})
    with faulty_server(lambda number, body: error(status, f"no, {KEY}")) as server:
        pacing = Pacing(concurrency=1, tries=3)
        endpoint = Endpoint("mine", server.base_url, "model", "SYNTHBENCH_TEST_LLM_KEY", pacing)
        said: list[str] = []
        try:
            said += [
                each.failure
                for each in ChatClient(endpoint, tmp_path, Account("study", "s")).answers([request])
            ]
        except UserError as refusal:
            said += refusal.messages
    assert said
    assert KEY not in " ".join(said)
    assert len(server.bodies) == 3
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert KEY not in json.dumps([str(each) for each in entries(tmp_path)])
