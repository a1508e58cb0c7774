"""Services whose requests differ from the chat API's first version: limits, temperatures, lists of models."""

import json
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Reply, answer, error, faulty_server, said
from wording import refused

from synthbench.config.llm import EndpointLLM
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.endpoint_check import check_endpoint
from synthbench.llm.requests import ChatRequest

VARIABLE, KEY = "SYNTHBENCH_TEST_API_KEY", "sk-very-private-0815"


def client(base_url: str, folder: Path, **options: Any) -> ChatClient:
    endpoint = Endpoint("openai", base_url, "gpt-5-mini", pacing=Pacing(concurrency=2), options=options)
    return ChatClient(endpoint, folder, Account("study"))


def requests(number: int, **sampling: float) -> list[ChatRequest]:
    return [ChatRequest(f"{i}", ({"role": "user", "content": f"{i}"},), sampling) for i in range(number)]


def unsupported(param: str, message: str) -> Reply:
    fault = {"message": message, "param": param, "code": "unsupported_value", "type": "invalid_request_error"}
    return Reply(400, json.dumps({"error": fault}).encode())


def newer(number: int, body: dict[str, Any]) -> Reply:
    """Answer as OpenAI's models with thoughts do."""
    if "max_tokens" in body:
        return unsupported(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead.",
        )
    if body.get("temperature", 1) != 1:
        return unsupported(
            "temperature", "Unsupported value: 'temperature' does not support 0 with this model."
        )
    return answer(said(body))


def test_a_limit_on_tokens_is_sent_by_its_newer_name_once_the_older_is_refused(tmp_path: Path) -> None:
    with faulty_server(newer) as server:
        assert len(list(client(server.base_url, tmp_path).answers(requests(9, max_tokens=50)))) == 9
        limits = [body.get("max_completion_tokens") for body in server.bodies]
    assert limits.count(50) == 9
    assert limits.count(None) <= 2, "no more than were in flight"
    with faulty_server(newer) as server:
        assert len(list(client(server.base_url, tmp_path).answers(requests(9, max_tokens=50)))) == 9
        assert server.bodies == [], "the cache knows the answers by the request as it was made"


def test_a_limit_that_is_refused_by_its_newer_name_is_not_sent_again(tmp_path: Path) -> None:
    too_large = unsupported("max_completion_tokens", "max_completion_tokens is too large: 50")
    with faulty_server(lambda number, body: newer(number, body) if number == 0 else too_large) as server:
        asking = client(server.base_url, tmp_path)
        for each in requests(3, max_tokens=50):
            list(asking.answers([each]))
        limits = [body.get("max_completion_tokens") for body in server.bodies]
    assert limits.count(50) == 3, "once for each request"


def test_a_refused_temperature_stops_in_one_line_that_says_how_to_leave_it_out(tmp_path: Path) -> None:
    with (
        faulty_server(newer) as server,
        refused("refuses temperature", "gpt-5-mini", "unsent: [temperature]"),
    ):
        list(client(server.base_url, tmp_path).answers(requests(9, temperature=0)))
    assert len(server.bodies) <= 2
    with faulty_server(newer) as server:
        asking = client(server.base_url, tmp_path, unsent=["temperature"])
        assert len(list(asking.answers(requests(9, temperature=0)))) == 9
        assert all("temperature" not in body for body in server.bodies)


def test_a_parameter_that_is_left_out_makes_other_answers() -> None:
    section = {"name": "openai", "base_url": "https://api.openai.com/v1", "model": "m"}
    plain, without = (
        EndpointLLM.model_validate({**section, "unsent": names}) for names in ((), ("temperature",))
    )
    assert plain.identity() == EndpointLLM.model_validate(section).identity()
    assert without.identity() == {**plain.identity(), "unsent": ["temperature"]}


def test_a_list_of_models_that_reads_the_key_elsewhere_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    seen: list[tuple[str, str]] = []

    def lookups(path: str, headers: Any) -> Reply:
        seen.append((headers.get("x-api-key", ""), headers.get("anthropic-version", "")))
        if headers.get("x-api-key") != KEY:
            return error(401, "x-api-key header is required")
        listed = Reply(body=json.dumps({"data": [{"id": "claude-x"}]}).encode())
        return listed if path.endswith("/models") else error(404)

    with faulty_server(newer, headed=lookups) as server:
        check_endpoint(Endpoint("anthropic", server.base_url, "claude-x", VARIABLE))
        with refused("'claude-y'", "claude-x"):
            check_endpoint(Endpoint("anthropic", server.base_url, "claude-y", VARIABLE))
    assert seen[:2] == [("", ""), (KEY, "2023-06-01")]
