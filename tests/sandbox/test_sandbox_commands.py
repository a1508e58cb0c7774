"""`synthbench sandbox serve` as a command: one line, a log without contents, and clean ends."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from small_experiment import heed_interrupts
from wording import worded

SANDBOX = [sys.executable, "-c", "from synthbench.cli.main import main; main()", "sandbox"]
SERVE = [*SANDBOX, "serve"]


@contextmanager
def serving(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    process = subprocess.Popen(
        [*SERVE, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_one_line_says_where_it_is_and_how_to_try_it_and_it_ends_cleanly(ending: signal.Signals) -> None:
    with serving("--seed", "3") as (process, line):
        base_url, _, example = line.strip().partition("  try: ")
        assert base_url.endswith("/v1")
        tried = subprocess.run(["bash", "-c", example + " -s"], capture_output=True, check=True)
        assert json.loads(tried.stdout)["choices"][0]["finish_reason"] == "stop"
        process.send_signal(ending)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output == ""
    assert errors == "POST /v1/chat/completions 200 paraphrase\n"


def test_the_log_has_neither_keys_nor_contents() -> None:
    with serving("--server-errors", "1", "--max-faults-in-a-row", "1") as (process, line):
        url = line.split()[0] + "/chat/completions?q=hidden"
        body = {"model": "sandbox/llm", "messages": [{"role": "user", "content": "hidden"}], "user": "hidden"}
        headers = {"Authorization": "Bearer hidden"}
        for _ in range(2):
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            try:
                urllib.request.urlopen(request).close()
            except urllib.error.HTTPError as error:
                error.close()
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert errors.splitlines() == [
        "POST /v1/chat/completions 500 server error",
        "POST /v1/chat/completions 200 unclear",
    ]


def test_the_log_tells_a_refusal_from_an_answer() -> None:
    with serving("--refusals", "1") as (process, line):
        example = line.strip().partition("  try: ")[2]
        subprocess.run(["bash", "-c", example + " -s"], capture_output=True, check=True)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert errors == "POST /v1/chat/completions 200 refusal\n"


def test_the_log_tells_the_id_that_a_request_came_with_if_it_can_be_one() -> None:
    with serving() as (process, line):
        for name in ("a-7", "b 8"):
            url = line.split()[0] + "/chat/completions"
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(urllib.request.Request(url, b"{}", {"X-Client-Request-Id": name}))
        process.terminate()
        _, errors = process.communicate(timeout=60)
    worded(errors, "POST", "/v1/chat/completions", "a-7")


def test_a_taken_port_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([*SERVE, "--port", str(port)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: port {port} on 127.0.0.1 is taken; "
        "give another with --port, or --port 0 for any that is free\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "no.such.host.invalid"), "can't listen on no.such.host.invalid"),
        (("--refusals", "0.7", "--empty", "0.7"), "together they must not be more than 1"),
        (("--habits", "2"), "Invalid value for '--habits': must be less than or equal to 1"),
    ],
)
def test_what_cannot_be_is_one_clear_line(options: tuple[str, ...], message: str) -> None:
    done = subprocess.run([*SERVE, "--port", "0", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
