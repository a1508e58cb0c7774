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
from functools import partial
from pathlib import Path

import pytest
import torch
from small_experiment import Project, heed_interrupts
from wording import worded

from synthbench.worlds.sandbox import building
from synthbench.worlds.sandbox.building import Recipes, Training
from synthbench.worlds.sandbox.cli import figures as sandbox_figures
from synthbench.worlds.sandbox.cli.figures import Figures

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
def test_serve_prints_address_and_example_and_ends_cleanly(ending: signal.Signals) -> None:
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


def test_the_log_contains_neither_keys_nor_contents() -> None:
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


def test_the_log_distinguishes_refusals_and_answers() -> None:
    with serving("--refusals", "1") as (process, line):
        example = line.strip().partition("  try: ")[2]
        subprocess.run(["bash", "-c", example + " -s"], capture_output=True, check=True)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert errors == "POST /v1/chat/completions 200 refusal\n"


def test_the_log_has_valid_request_ids() -> None:
    with serving() as (process, line):
        for name in ("a-7", "b 8"):
            url = line.split()[0] + "/chat/completions"
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(urllib.request.Request(url, b"{}", {"X-Client-Request-Id": name}))
        process.terminate()
        _, errors = process.communicate(timeout=60)
    worded(errors, "POST", "/v1/chat/completions", "a-7")


def test_a_taken_port_is_reported_in_one_line() -> None:
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
def test_impossible_settings_are_refused_in_one_line(options: tuple[str, ...], message: str) -> None:
    done = subprocess.run([*SERVE, "--port", "0", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("ending", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_stopped_build_ends_its_processes_and_leaves_no_checkpoints(
    tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    process = subprocess.Popen(
        [*SANDBOX, "build", "--output", str(tmp_path / "built")],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    assert process.stderr is not None
    assert "words of 60,000 texts" in process.stderr.readline()
    process.send_signal(ending)
    # The pipe closes when the last process that writes to it is gone.
    process.communicate(timeout=60)
    assert process.returncode == code
    assert not (tmp_path / "built").exists()
    assert ending == signal.SIGKILL or not list(tmp_path.iterdir())


@pytest.mark.experiments
def test_a_build_writes_the_checkpoints_and_prints_their_figures(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Training(num_steps=1, batch_size=4, learning_rate=1e-3, vocabulary_texts=300)
    built_tiny = partial(building.build_checkpoints, recipes=Recipes(tiny, tiny, tiny))
    monkeypatch.setattr(building, "build_checkpoints", built_tiny)
    measure_few = partial(sandbox_figures.measure, num_sentences=2, num_pairs=20)
    monkeypatch.setattr(sandbox_figures, "measure", measure_few)
    threads = torch.get_num_threads()
    try:
        called = project.call("sandbox", "build", "--output", "built")
    finally:
        torch.set_num_threads(threads)
    built = project.folder / "built"
    assert (called.code, called.errors) == (0, [])
    files = {"lm", "encoder", "cross-encoder", "checksums.json", "figures.json"}
    assert {path.name for path in built.iterdir()} == files
    assert {path.name for path in built.parent.iterdir() if path.name.startswith(".")} == set()
    figures = Figures.model_validate_json((built / "figures.json").read_text(encoding="utf-8"))
    assert f"untrained: {figures.encoder_spearman:.3f}\n" in called.out
    assert "checkpoints: built, built in " in called.out
