"""Options of an endpoint: sent with each request, part of identity and cache key, refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer, Reply, answer, error, faulty_server
from pydantic import ValidationError
from wording import refused

from synthbench.base.errors import UserError
from synthbench.config.llm import EndpointLLM
from synthbench.llm.cache import key_of
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatAnswer, ChatRequest

MESSAGES = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"})
REQUEST = ChatRequest("one", MESSAGES, {"max_tokens": 7, "temperature": 0.5})


def llm(server: FaultyServer | None = None, **options: Any) -> EndpointLLM:
    url = server.base_url if server else "http://127.0.0.1:9/v1"
    return EndpointLLM.model_validate({"name": "mine", "base_url": url, "model": "m", **options})


def ask(settings: EndpointLLM, folder: Path) -> list[ChatAnswer]:
    client = ChatClient(settings.at(settings.address()), folder, Account("study", "stage"))
    return list(client.answers([REQUEST]))


def sent(folder: Path, **options: Any) -> dict[str, Any]:
    with faulty_server(lambda number, body: answer("fine")) as server:
        ask(llm(server, **options), folder)
        return server.bodies[0]


def test_options_are_sent_under_their_own_names(tmp_path: Path) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "pair", "schema": {"type": "object"}}}
    body = sent(
        tmp_path,
        reasoning_effort="low",
        response_format=schema,
        chat_template_kwargs={"enable_thinking": False},
        extra_body={"top_k": 20, "provider": {"order": ["a"]}},
    )
    assert body["reasoning_effort"] == "low"
    assert body["response_format"] == schema
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (body["top_k"], body["provider"]) == (20, {"order": ["a"]})
    assert (body["max_tokens"], body["temperature"]) == (7, 0.5)
    assert "extra_body" not in body


def test_max_completion_tokens_replaces_max_tokens(tmp_path: Path) -> None:
    body = sent(tmp_path, max_completion_tokens=500)
    assert body["max_completion_tokens"] == 500
    assert "max_tokens" not in body


def test_without_a_system_role_the_user_message_holds_the_system_prompt(tmp_path: Path) -> None:
    assert sent(tmp_path, system_prompt=False)["messages"] == [
        {"role": "user", "content": "Be brief.\n\nHello"}
    ]


def test_only_options_that_are_set_are_in_identity_and_cache_key() -> None:
    plain = llm()
    assert dict(plain.identity()) == {"endpoint": "mine", "model": "m", "cut_off": "drop"}
    others = [
        llm(**option)
        for option in (
            {"reasoning_effort": "low"},
            {"max_completion_tokens": 9},
            {"response_format": {"type": "json_object"}},
            {"system_prompt": False},
            {"chat_template_kwargs": {"a": 1}},
            {"extra_body": {"top_k": 1}},
        )
    ]
    identities = [json.dumps(dict(each.identity()), sort_keys=True) for each in (plain, *others)]
    keys = [key_of(each.at(each.address()), REQUEST) for each in (plain, *others)]
    assert len(set(identities)) == len(set(keys)) == 7
    assert key_of(plain.at(plain.address()), REQUEST) == key_of(
        llm(system_prompt=True).at(plain.address()), REQUEST
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"api_key": "abc123"}, "key_variable"),
        ({"provider": {"headers": {"Authorization": "Bearer abc123"}}}, "key_variable"),
        ({"model": "other"}, "'model'"),
        ({"max_completion_tokens": 3}, "'max_completion_tokens'"),
    ],
)
def test_extra_keys_may_hold_no_secret_and_nothing_set_elsewhere(body: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        llm(extra_body=body)
    (fault,) = raised.value.errors()
    assert said in fault["msg"]
    assert "abc123" not in fault["msg"]


def test_a_refused_option_is_reported_in_one_line_with_its_key(tmp_path: Path) -> None:
    def refuse(number: int, body: dict[str, Any]) -> Reply:
        return error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported")

    with faulty_server(refuse) as server, refused("llm.response_format", "'mine'", "400"):
        ask(llm(server, response_format={"type": "json_schema"}), tmp_path)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Grammar error: unimplemented keys: [uniqueItems]", None),
        ("The JSON Schema must have type 'object'", None),
        ("not supported by this model", "response_format"),
    ],
)
def test_a_refused_schema_is_recognised_under_other_names(
    message: str, param: str | None, tmp_path: Path
) -> None:
    def refuse(number: int, body: dict[str, Any]) -> Reply:
        return Reply(400, json.dumps({"error": {"message": message, "param": param}}).encode())

    with faulty_server(refuse) as server, refused("llm.response_format", "'mine'", message):
        ask(llm(server, response_format={"type": "json_schema"}), tmp_path)


def test_a_key_that_fastapi_refuses_is_reported_in_one_line_with_its_key(tmp_path: Path) -> None:
    def refuse(number: int, body: dict[str, Any]) -> Reply:
        detail = "Unexpected fields in the request: {'top_k'}"
        return Reply(422, json.dumps({"detail": detail}).encode())

    with faulty_server(refuse) as server, refused("llm.extra_body", "'mine'", "422", "top_k"):
        ask(llm(server, extra_body={"top_k": 20}), tmp_path)


def usage(finish: str = "stop") -> Reply:
    choice = {"message": {"role": "assistant", "content": "fine"}, "finish_reason": finish}
    counts = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    return Reply(body=json.dumps({"choices": [choice], "usage": counts}).encode())


def test_cached_and_reasoning_tokens_are_counted_and_priced(tmp_path: Path) -> None:
    price = {"input": 10.0, "output": 20.0, "cached_input": 1.0, "date": "2026-05-01"}
    with faulty_server(lambda number, body: usage()) as server:
        (told,) = ask(llm(server, price=price), tmp_path)
    assert told.text == "fine"
    (entry,) = entries(tmp_path, "study")
    assert (entry.cached_tokens, entry.reasoning_tokens, entry.num_cut_off) == (80, 30, 0)
    # 20 tokens at 10, 80 at 1 and 50 at 20 US dollars per million.
    assert entry.answered.usd == pytest.approx((20 * 10 + 80 * 1 + 50 * 20) / 1e6)
    assert "80 cached tokens of prompts" in str(entry)
    assert "30 tokens of thoughts" in str(entry)


def test_answers_truncated_by_a_token_limit_are_counted(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: usage("length")) as server:
        ask(llm(server), tmp_path)
    (entry,) = entries(tmp_path, "study")
    assert entry.num_cut_off == 1
    assert "1 cut off" in str(entry)


def test_cached_tokens_cost_the_input_price_by_default(tmp_path: Path) -> None:
    price = {"input": 10.0, "output": 20.0, "date": "2026-05-01"}
    with faulty_server(lambda number, body: usage()) as server:
        ask(llm(server, price=price), tmp_path)
    (entry,) = entries(tmp_path, "study")
    assert entry.answered.usd == pytest.approx((100 * 10 + 50 * 20) / 1e6)


def test_an_error_without_an_option_name_fails_only_its_request(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: error(400, "too long")) as server:
        try:
            (told,) = ask(llm(server, reasoning_effort="low"), tmp_path)
        except UserError as raised:
            pytest.fail(str(raised))
    assert told.failure == "HTTP 400: too long"
