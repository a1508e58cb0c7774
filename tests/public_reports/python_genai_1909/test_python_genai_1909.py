"""googleapis/python-genai #1909: a batch gives its responses in another order than its requests.

An answer of a batch belongs to the request whose id it names: order means nothing, and answers of an
unknown id are no answers.
"""

from pathlib import Path

import pytest
from batch_server import batch_server

from synthbench.base.errors import PendingError
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.requests import ChatRequest

REQUESTS = [ChatRequest(f"r{n}", ({"role": "user", "content": f"text {n}"},), {}) for n in range(6)]


def test_answers_of_a_batch_are_matched_to_their_requests_in_any_order(tmp_path: Path) -> None:
    with batch_server() as server:
        endpoint = Endpoint("mine", server.base_url, "model", "", Pacing(batch=True))
        client = ChatClient(endpoint, tmp_path, Account("study", "stage"))
        with pytest.raises(PendingError):
            list(client.answers(REQUESTS))
        server.finish()
        (name,) = (batch["output_file_id"] for batch in server.batches.values())
        lines = server.files[name].splitlines()
        assert b"text 5" in lines[0], "the server answers the last request first"
        found = {each.request.key: each.text for each in client.answers(REQUESTS)}
    assert found == {f"r{n}": f"echo text {n}" for n in range(6)}
