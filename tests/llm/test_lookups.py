"""Checks of an endpoint before anything is computed, without chat requests."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from faulty_server import Reply, echo, error, faulty_server
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.llm import retries
from synthbench.llm.endpoint import Endpoint, Pacing
from synthbench.llm.endpoint_check import check_endpoint

VARIABLE = "SYNTHBENCH_TEST_LLM_KEY"
KEY = "sk-very-private-1234"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    monkeypatch.setenv(VARIABLE, KEY)


def endpoint(base_url: str, model: str = "small", **pacing: Any) -> Endpoint:
    return Endpoint("mine", base_url, model, VARIABLE, Pacing(**pacing))


def models(*names: str) -> Callable[[str], Reply]:
    """Return the replies of a service with these models, by path."""
    listed = Reply(body=json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode())
    return lambda path: listed if path == "/v1/models" else error(404, "no such model")


def test_a_listed_model_is_found_with_the_key_and_without_a_chat_request() -> None:
    with faulty_server(echo, models("large", "small")) as server:
        check_endpoint(endpoint(server.base_url))
    assert (server.paths, server.keys, server.bodies) == (["/v1/models"], [f"Bearer {KEY}"], [])


@pytest.mark.parametrize(
    ("listed", "model"),
    [("models/small", "small"), ("small:latest", "small"), ("org/Small", "org/small:fast")],
)
def test_omitted_prefixes_and_tags_do_not_change_the_model(listed: str, model: str) -> None:
    with faulty_server(echo, models(listed)) as server:
        check_endpoint(endpoint(server.base_url, model))


@pytest.mark.parametrize(
    ("listed", "model"),
    [("llama3:70b", "llama3:8b"), ("llama3:70b", "llama3"), ("llama3:latest", "llama3:8b")],
)
def test_a_listed_model_under_another_tag_is_another_model(listed: str, model: str) -> None:
    with faulty_server(echo, models(listed)) as server, pytest.raises(UserError, match="has no model"):
        check_endpoint(endpoint(server.base_url, model))
    assert server.paths == ["/v1/models", f"/v1/models/{model}"]


def test_an_unlisted_model_is_requested_by_name() -> None:
    with faulty_server(
        echo, lambda path: Reply(body=b"{}") if "huge" in path else models("a")(path)
    ) as server:
        check_endpoint(endpoint(server.base_url, "org/huge"))
    assert server.paths == ["/v1/models", "/v1/models/org/huge"]


def test_an_unknown_model_is_reported_in_one_line_that_names_the_nearest() -> None:
    with (
        faulty_server(echo, models("large", "smaller", "tiny")) as server,
        pytest.raises(UserError) as raised,
    ):
        check_endpoint(endpoint(server.base_url))
    worded(raised.value.messages, "LLM", "'mine'", str(server.base_url), "'small'")
    assert server.bodies == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_reported_in_one_line_without_the_key(status: int) -> None:
    refusal = error(status, f"Incorrect API key provided: {KEY}")
    with faulty_server(echo, lambda path: refusal) as server, pytest.raises(UserError) as raised:
        check_endpoint(endpoint(server.base_url))
    assert f"HTTP {status}" in str(raised.value)
    assert KEY not in str(raised.value)


def test_an_unavailable_endpoint_is_reported_in_one_line() -> None:
    with faulty_server(echo) as server:
        pass
    with refused("Connection"):
        check_endpoint(endpoint(server.base_url))


def test_an_unset_key_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    with faulty_server(echo) as server, refused(str(VARIABLE)):
        check_endpoint(endpoint(server.base_url))
    assert server.paths == []


@pytest.mark.parametrize(
    "instead",
    [
        error(404),
        error(405),
        error(429),
        error(500),
        error(403, "You have insufficient permissions. Missing scopes: api.model.read"),
        error(403, "Permission to list models is missing"),
        Reply(body=b"<html></html>", content_type="text/html"),
        Reply(body=b"[" * 100_000),
        Reply(body=b'{"data": []}'),
        Reply(body=b'{"data": [{"id": 7}, null]}'),
        Reply(body=b'{"data": {"id": "other"}}'),
        Reply(cut=0),
    ],
)
def test_an_endpoint_without_a_model_list_passes(instead: Reply) -> None:
    with faulty_server(echo, lambda path: instead) as server:
        check_endpoint(endpoint(server.base_url))


def test_offline_nothing_is_requested() -> None:
    with faulty_server(echo, models()) as server:
        check_endpoint(endpoint(server.base_url, offline=True))
    assert server.paths == []


def test_a_model_list_with_endless_names_is_not_printed_in_full() -> None:
    with faulty_server(echo, models("large" * 100_000)) as server, pytest.raises(UserError) as raised:
        check_endpoint(endpoint(server.base_url))
    assert len(raised.value.messages[0]) < 400
