"""The sandbox's LLM as a service: what OpenAI's own client and curl get from it, faults among it."""

import json
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wording import refused

from synthbench.base.processes import end_child
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.faults import ServiceFault, ServiceFaults
from synthbench.worlds.sandbox.llm.process import SECONDS_TO_END, SandboxServer, running_server
from synthbench.worlds.sandbox.parsing import parse

HARP = "A man plays a harp."
PARAPHRASE = f"Paraphrase: {HARP}"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: SandboxServer) -> openai.OpenAI:
    return client_of(server)


def client_of(server: SandboxServer, timeout: float = 60) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0, timeout=timeout)


def ask(client: openai.OpenAI, text: str = PARAPHRASE, **options: Any) -> Any:
    return client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], **options
    )


def content(client: openai.OpenAI, text: str = PARAPHRASE, **options: Any) -> str:
    return str(ask(client, text, **options).choices[0].message.content)


def content_at_last(client: openai.OpenAI, text: str) -> str:
    while True:
        try:
            return content(client, text, temperature=1.1)
        except (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError):
            continue


def post(server: SandboxServer, body: bytes, path: str = "/chat/completions") -> tuple[int, Any]:
    request = urllib.request.Request(server.base_url + path, body)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_openais_client_gets_choices_and_token_counts(client: openai.OpenAI) -> None:
    answer = ask(client, n=3, temperature=1.3, top_p=0.9, presence_penalty=0.3, frequency_penalty=0.3, seed=4)
    assert answer.object == "chat.completion"
    assert answer.model == MODEL
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    texts = [choice.message.content for choice in answer.choices]
    assert {parse(text) for text in texts} == {parse(HARP)}
    assert {choice.finish_reason for choice in answer.choices} == {"stop"}
    assert answer.usage.prompt_tokens == len(("Paraphrase", ":", "A", "man", "plays", "a", "harp", "."))
    assert answer.usage.completion_tokens == sum(len(text.rstrip(".").split()) + 1 for text in texts)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_plain_curl_needs_no_key(server: SandboxServer) -> None:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": PARAPHRASE}]})
    command = ["curl", "--silent", "--fail", server.base_url + "/chat/completions", "--data", body]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert parse(answer["choices"][0]["message"]["content"]) == parse(HARP)


def test_the_server_lists_its_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError) as raised:
        client.models.retrieve("gpt-5")
    assert raised.value.code == "model_not_found"


def test_a_message_may_have_several_parts(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "Contradict this sentence."}, {"type": "text", "text": HARP}]
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": parts}],  # type: ignore[list-item,misc]
    )
    assert answer.choices[0].message.content not in (None, HARP)
    assert parse(str(answer.choices[0].message.content)) not in (None, parse(HARP))


@pytest.mark.parametrize("option", ["max_tokens", "max_completion_tokens"])
def test_an_answer_is_truncated_at_the_token_limit(client: openai.OpenAI, option: str) -> None:
    limit: dict[str, Any] = {option: 3}
    whole, cut = ask(client), ask(client, **limit)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage.completion_tokens == 3
    assert whole.choices[0].message.content.startswith(cut.choices[0].message.content)


def test_an_answer_ends_before_a_stop_text(client: openai.OpenAI) -> None:
    listed = "Write 5 headlines on crime."
    assert "\n" in content(client, listed)
    assert content(client, listed, stop="\n") == content(client, listed).partition("\n")[0]
    assert content(client, listed, stop=["\n", "1."]) == ""


def test_an_unknown_model_gives_404(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hm"}])
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


def test_the_server_refuses_streaming(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, stream=True)
    assert raised.value.param == "stream"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"seed": 1.5}, "seed"),
        ({"temprature": 1}, "temprature"),
        ({"tools": []}, "tools"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
        ({"model": 5}, "model"),
    ],
)
def test_a_malformed_body_is_refused_with_the_parameter_named(
    server: SandboxServer, change: dict[str, Any], param: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], **change}
    status, answer = post(server, json.dumps(body).encode())
    assert status == 400
    assert answer["error"].keys() == {"message", "type", "param", "code"}
    assert (answer["error"]["type"], answer["error"]["param"]) == ("invalid_request_error", param)
    assert param.partition("[")[0].partition(".")[0] in answer["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"model": "\\ud800"}'])
def test_a_body_that_is_no_request_is_refused(server: SandboxServer, body: bytes) -> None:
    status, answer = post(server, body)
    assert status == 400
    assert answer["error"]["type"] == "invalid_request_error"


def test_wrong_paths_and_methods_give_errors_in_the_same_format(server: SandboxServer) -> None:
    status, answer = post(server, b"{}", "/completions")
    assert (status, answer["error"]["code"]) == (404, "unknown_url")
    status, answer = post(server, b"{}", "/models")
    assert (status, answer["error"]["code"]) == (405, "method_not_allowed")


def test_a_429_reply_has_a_retry_after_header() -> None:
    with running_server(LLMSettings(rate_limited=1.0, max_faults_in_a_row=1, retry_after=2)) as running:
        client = client_of(running)
        with pytest.raises(openai.RateLimitError) as raised:
            ask(client)
        assert raised.value.response.headers["Retry-After"] == "2"
        assert raised.value.code == "rate_limit_exceeded"
        assert parse(content(client)) == parse(HARP)


def test_a_server_error_is_temporary() -> None:
    with running_server(LLMSettings(server_errors=1.0, max_faults_in_a_row=2)) as running:
        client = client_of(running)
        for _ in range(2):
            with pytest.raises(openai.InternalServerError):
                ask(client)
        assert parse(content(client)) == parse(HARP)


def test_a_dropped_connection_has_no_answer_at_all() -> None:
    with running_server(LLMSettings(drops=1.0, max_faults_in_a_row=1)) as running:
        client = client_of(running)
        with pytest.raises(openai.APIConnectionError):
            ask(client)
        assert parse(content(client)) == parse(HARP)


def test_the_server_bills_dropped_answers_like_real_services() -> None:
    faults = LLMSettings(seed=3, rate_limited=0.25, retry_after=0, server_errors=0.25, drops=0.25)
    with running_server(faults) as running:
        client = client_of(running)
        texts = [f"Paraphrase: {who} plays a harp." for who in ("A man", "A woman", "A boy", "A girl")]
        answers = [content_at_last(client, text) for text in texts]
        post(running, b"no request")
        with urllib.request.urlopen(running.base_url + "/usage") as response:
            usage = json.load(response)
    answered, dropped = usage["answered"], usage["dropped"]
    assert answered["requests"] == 4
    assert answered["prompt_tokens"] == 4 * 8
    assert answered["completion_tokens"] == sum(len(text.rstrip(".").split()) + 1 for text in answers)
    assert answered["total_tokens"] == answered["prompt_tokens"] + answered["completion_tokens"]
    assert dropped["requests"] > 0
    assert dropped["prompt_tokens"] == dropped["requests"] * 8
    assert dropped["completion_tokens"] >= dropped["requests"]
    assert usage["turned_away"].keys() == {"400", "429", "500"}
    assert usage["turned_away"]["400"] == 1


def test_latency_makes_impatient_clients_disconnect() -> None:
    with running_server(LLMSettings(latency=600)) as running, pytest.raises(openai.APITimeoutError):
        ask(client_of(running, timeout=0.3))


def test_refusals_and_empty_answers_come_as_ordinary_answers() -> None:
    with running_server(LLMSettings(refusals=1.0)) as running:
        assert "paraphrase" in content(client_of(running)) or "rephrase" in content(client_of(running))
    with running_server(LLMSettings(empty=1.0)) as running:
        answer = ask(client_of(running))
    assert answer.choices[0].message.content == ""
    assert answer.usage.completion_tokens == 0


def test_requests_above_the_limit_per_minute_get_429() -> None:
    with running_server(LLMSettings(requests_per_minute=2)) as running:
        client = client_of(running)
        assert content(client) == content(client)
        with pytest.raises(openai.RateLimitError) as raised:
            ask(client)
    assert 50 <= int(raised.value.response.headers["Retry-After"]) <= 60


def test_the_rate_limit_uses_a_sliding_minute() -> None:
    clock = iter((0.0, 10.0, 20.5, 59.0, 60.0, 61.0, 70.0)).__next__
    faults = ServiceFaults(LLMSettings(requests_per_minute=2), clock)
    troubles = [faults.on_arrival("x") for _ in range(7)]
    assert [trouble and trouble.retry_after for trouble in troubles] == [None, None, 40, 1, None, 9, None]


SHARES = st.floats(0, 0.33)


@settings(max_examples=60)
@given(SHARES, SHARES, SHARES, st.integers(1, 5), st.sampled_from(("attempt", "arrival")), st.integers(0, 99))
def test_a_retried_request_is_finally_answered(
    limited: float, errors: float, drops: float, in_a_row: int, by: Any, seed: int
) -> None:
    faults = ServiceFaults(
        LLMSettings(
            seed=seed,
            faults_by=by,
            max_faults_in_a_row=in_a_row,
            rate_limited=limited,
            server_errors=errors,
            drops=drops,
        )
    )
    for request in ("a", "b"):
        befell = [faults.on_arrival(request) is not None for _ in range(60)]
        runs = "".join("x" if fault else " " for fault in befell).split()
        assert max(map(len, runs), default=0) <= in_a_row


def test_a_fault_depends_on_the_attempt_or_the_arrival() -> None:
    def befallen(by: Any, requests: list[str]) -> dict[str, list[ServiceFault | None]]:
        faults = ServiceFaults(LLMSettings(faults_by=by, rate_limited=0.2, server_errors=0.2, drops=0.2))
        found: dict[str, list[ServiceFault | None]] = {}
        for request in requests:
            trouble = faults.on_arrival(request)
            found.setdefault(request, []).append(trouble.fault if trouble else None)
        return found

    in_turn, one_by_one = ["a", "b"] * 30, ["a"] * 30 + ["b"] * 30
    by_attempt = befallen("attempt", in_turn)
    assert by_attempt == befallen("attempt", one_by_one)
    assert set(by_attempt["a"]) == {None, *ServiceFault}
    assert befallen("arrival", in_turn) != befallen("arrival", one_by_one)


def test_answers_do_not_depend_on_restarts_order_clients_or_faults() -> None:
    requests = [f"{verb}: {HARP}" for verb in ("Paraphrase", "Contradict")]
    requests += [f"Write {number} sentences on music." for number in range(3, 13)]
    with running_server(LLMSettings(malformed=0.2, noise=0.2)) as running:
        client = client_of(running)
        known = {text: content(client, text, temperature=1.1) for text in requests}
    shaky = LLMSettings(
        malformed=0.2,
        noise=0.2,
        rate_limited=0.2,
        retry_after=0,
        server_errors=0.2,
        drops=0.2,
        max_faults_in_a_row=2,
        faults_by="arrival",
    )
    with running_server(shaky) as running, ThreadPoolExecutor(8) as pool:
        shuffled = Random(0).sample(requests * 3, len(requests) * 3)
        answers = pool.map(partial(content_at_last, client_of(running)), shuffled)
        assert all(answer == known[text] for text, answer in zip(shuffled, answers, strict=True))


def test_a_server_can_be_stopped_twice_or_after_being_killed() -> None:
    with running_server() as running:
        running.process.kill()
        running.process.wait()
        with pytest.raises(openai.APIConnectionError):
            ask(client_of(running))
        end_child(running.process, SECONDS_TO_END)


def test_a_server_without_a_port_is_an_error(server: SandboxServer) -> None:
    port = int(server.base_url.split(":")[2].split("/")[0])
    with refused(str(port), "127.0.0.1"), running_server(port=port):
        pass


def test_a_server_ends_with_its_parent_process() -> None:
    script = """
        import os
        from synthbench.worlds.sandbox.llm.process import running_server
        with running_server() as server:
            print(server.base_url, flush=True)
            os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    base_url = started.stdout.strip()
    assert base_url.startswith("http://127.0.0.1:")
    for _ in range(600):
        try:
            urllib.request.urlopen(base_url + "/models").close()
        except urllib.error.URLError:
            return
        time.sleep(0.1)
    raise AssertionError("the server outlives its parent")
