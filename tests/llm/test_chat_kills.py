"""The client against the sandbox's LLM with its faults switched on, and killed in the middle."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer, Reply, echo, faulty_server, said
from wording import refused

from synthbench.base.processes import end_child
from synthbench.llm import retries
from synthbench.llm.cache import FILE
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Endpoint, Pacing
from synthbench.llm.requests import ChatRequest
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.process import SECONDS_TO_END, running_server

CONCURRENCY = 8
NUM_KILLS = 4
PROGRAM = """
import sys
from pathlib import Path
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Endpoint, Pacing
from synthbench.llm.requests import ChatRequest
url, folder, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
client = ChatClient(Endpoint("mine", url, "model", pacing=Pacing(concurrency=8)), folder)
asked = (ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(number))
print(len([each for each in client.answers(asked) if each.text]))
"""


def paraphrases(number: int) -> list[ChatRequest]:
    who = ("A man", "A woman", "A boy", "A girl", "A chef")
    return [
        ChatRequest(
            f"r{i}",
            ({"role": "user", "content": f"Paraphrase: {who[i % len(who)]} plays a harp."},),
            {"temperature": 1.0},
            i,
        )
        for i in range(number)
    ]


def texts(base_url: str, folder: Path) -> dict[str, str | None]:
    endpoint = Endpoint("sandbox", base_url, MODEL, pacing=Pacing(concurrency=CONCURRENCY))
    return {a.request.key: a.text for a in ChatClient(endpoint, folder).answers(paraphrases(60))}


def states(folder: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(folder / FILE) as database:
        return database.execute("SELECT key, state FROM attempts").fetchall()


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)


@pytest.mark.usefixtures("short_pauses")
def test_the_sandboxs_faults_change_no_answer(tmp_path: Path) -> None:
    content = {"noise": 0.1, "refusals": 0.1, "empty": 0.1, "malformed": 0.1}
    faults = {"rate_limited": 0.1, "retry_after": 0, "server_errors": 0.1, "drops": 0.1}
    with running_server(LLMSettings(**content)) as server:  # type: ignore[arg-type]
        undisturbed = texts(server.base_url, tmp_path / "undisturbed")
    with running_server(LLMSettings(**content, **faults)) as server:  # type: ignore[arg-type]
        assert texts(server.base_url, tmp_path / "disturbed") == undisturbed
    assert len(set(undisturbed.values())) > 10
    found = [state for _, state in states(tmp_path / "disturbed")]
    assert {state: found.count(state) > 0 for state in ("refused", "in doubt")} == {
        "refused": True,
        "in doubt": True,
    }
    assert found.count("answered") == 60


@pytest.mark.usefixtures("short_pauses")
def test_a_failing_service_is_reported_in_one_line_and_all_answers_are_preserved(
    tmp_path: Path,
) -> None:
    endpoint = Endpoint("sandbox", "", MODEL, pacing=Pacing(concurrency=2))
    with running_server() as server:
        asking = ChatClient(Endpoint("sandbox", server.base_url, MODEL, pacing=endpoint.pacing), tmp_path)
        answers = asking.answers(paraphrases(60))
        kept = [next(answers) for _ in range(10)]
        end_child(server.process, SECONDS_TO_END)
        with refused("LLM", "'sandbox'"):
            list(answers)
    with running_server() as server:
        found = texts(server.base_url, tmp_path)
    assert len(found) == 60
    assert {each.request.key: each.text for each in kept}.items() <= found.items()
    answered = [key for key, state in states(tmp_path) if state == "answered"]
    assert len(answered) == len(set(answered)) == 60


def start(server: FaultyServer, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, server.base_url, str(folder), "200"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after(server: FaultyServer, process: "subprocess.Popen[str]", num_requests: int) -> None:
    while len(server.bodies) < num_requests and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_killed_run_repeats_only_requests_in_flight_and_lists_them_as_in_doubt(tmp_path: Path) -> None:
    def slow(number: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.02)
        return echo(number, body)

    with faulty_server(slow) as server:
        for number in range(NUM_KILLS):
            kill_after(server, start(server, tmp_path), 25 * (number + 1) + CONCURRENCY * number)
        output, _ = start(server, tmp_path).communicate()
        assert output == "200\n"
        asked = [said(body) for body in server.bodies]
    assert len(set(asked)) == 200
    assert len(asked) - 200 <= NUM_KILLS * CONCURRENCY
    found = states(tmp_path)
    answered = [key for key, state in found if state == "answered"]
    doubted = [key for key, state in found if state == "in doubt"]
    assert len(answered) == len(set(answered)) == 200
    assert len(answered) + len(doubted) == len(found)
    assert len(doubted) <= NUM_KILLS * CONCURRENCY
    assert 200 <= len(asked) <= len(found)


def test_two_processes_pay_once_for_the_same_request(tmp_path: Path) -> None:
    lock = threading.Lock()

    def slow(number: int, body: dict[str, Any]) -> Reply:
        with lock:
            time.sleep(0.002)
        return echo(number, body)

    with faulty_server(slow) as server:
        both = [start(server, tmp_path) for _ in range(2)]
        assert [process.communicate()[0] for process in both] == ["200\n"] * 2
        asked = [said(body) for body in server.bodies]
    assert len(asked) == len(set(asked)) == 200
