"""Whatever shape a reply has: no traceback, no data of one that is not whole, and each is counted."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, faulty_server

from synthbench.llm import retries
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatRequest

ABSENT = object()
FINISHES = ["stop", "STOP", ABSENT, "length", "MAX_TOKENS", "content_filter", "error", None, "?", 7, ["stop"]]
CONTENTS = [
    "A man rides.",
    [{"type": "text", "text": "A man rides."}],
    *("", None, " \u200b", "<think>Hm.", 7, {"text": "A man"}, ["A man"], "A man \ud83d"),
]
REFUSALS = [ABSENT, "I cannot.", {"why": "no"}]
ERRORS = [ABSENT, None, {"message": "Overloaded", "code": 502}, "Overloaded"]
OTHERS = [
    *(None, [], {}, 7, "text", {"choices": None}, {"choices": []}, {"choices": {}}, {"choices": [None]}),
    *({"choices": [{"message": None}]}, {"error": {"code": 429}}, {"error": "busy"}, {"detail": "busy"}),
    *({"object": "error", "message": "busy"}, {"choices": [{"error": {"message": "busy"}}]}),
]
SHAPES = [*itertools.product(FINISHES, CONTENTS, REFUSALS, ERRORS)]
WHOLE = (("stop", "STOP", ABSENT), CONTENTS[:2])


def completion(finish: Any, content: Any, refusal: Any, error: Any) -> dict[str, Any]:
    message = {"content": content, "refusal": refusal}
    choice = {"message": {name: value for name, value in message.items() if value is not ABSENT}}
    if finish is not ABSENT:
        choice["finish_reason"] = finish
    return {"choices": [choice], **({} if error is ABSENT else {"error": error})}


def is_whole(finish: Any, content: Any, refusal: Any, error: Any) -> bool:
    ends, texts = WHOLE
    is_clean = refusal is ABSENT and error in (ABSENT, None)
    return is_clean and any(finish is end for end in ends) and content in texts


def test_only_complete_answers_become_data_and_every_reply_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.0)
    bodies = [*(completion(*shape) for shape in SHAPES), *OTHERS]
    assert len(bodies) == 1335

    def script(number: int, body: dict[str, Any]) -> Reply:
        return Reply(body=json.dumps(bodies[int(body["messages"][0]["content"])]).encode())

    with faulty_server(script) as server:
        pacing = Pacing(tries=1, max_failure_rate=1, concurrency=16)
        client = ChatClient(
            Endpoint("mine", server.base_url, "model", "", pacing), tmp_path, Account("study")
        )
        asked = (
            ChatRequest(str(number), ({"role": "user", "content": str(number)},), {})
            for number in range(len(bodies))
        )
        found = {int(each.request.key): each for each in client.answers(asked)}
    assert len(found) == len(bodies)
    expected = {number for number, shape in enumerate(SHAPES) if is_whole(*shape)}
    assert {number for number, each in found.items() if each.text is not None} == expected
    assert {each.text for each in found.values()} == {"A man rides.", None}
    (entry,) = entries(tmp_path)
    counts = (entry.num_cut_off, entry.num_empty, entry.num_filtered, entry.num_faulty)
    assert all(counts)
    assert sum(counts) == len(bodies) - len(expected)
