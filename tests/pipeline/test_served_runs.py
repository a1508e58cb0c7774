"""Runs that serve a local model themselves: when its server starts, how often, and that none is left."""

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import small_server
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from test_chat_runs import GenerationOnly, generated, texts
from typer.testing import CliRunner
from wording import refused, worded

from synthbench.cli.main import app
from synthbench.engine.local_executors import executor
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.llm.client import ChatClient
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server import ServedBackend, servers
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.plugins.files import ALLOWED

SECONDS = 30.0
KILLED_RUN = """
import sys, time
from dataclasses import replace
from pathlib import Path
from fakes import Lines
from synthbench.config.served_llm import ServedLLM
from synthbench.llm.server import ServedBackend, servers
llm = ServedLLM(serve=sys.argv[1], model="any")
with servers(Path(sys.argv[2])) as door:
    backend = ServedBackend(llm.at(replace(llm.address(), door=door)), Lines().say)
    while backend.address_if_ready() is None:
        time.sleep(0.05)
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file in which a test's servers record their actions; all servers have ended after the test."""
    return tmp_path / "notes.txt"


@pytest.fixture
def asking(
    experiment: ExperimentFile, tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ExperimentFile]:
    """An experiment whose LLM is a file that the small server serves."""
    monkeypatch.setenv(ALLOWED, str(tmp_path))
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    (tmp_path / "weights.gguf").write_text("weights", encoding="utf-8")
    yield experiment.append(f"llm:\n  serve: {command(notes)}\n  model: weights.gguf\n")
    assert living(notes) == []


def command(notes: Path, *flags: str) -> str:
    own = shlex.join([sys.executable, str(Path(small_server.__file__)), "--notes", str(notes), *flags])
    return f"{own} --port {{port}} --model {{model}}"


def noted(notes: Path, kind: str) -> list[str]:
    """Return the servers' records of a kind."""
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return [line.removeprefix(f"{kind} ") for line in lines if line.startswith(kind)]


def living(notes: Path) -> list[int]:
    """Return the processes of the servers that still run."""
    return [int(pid) for pid in noted(notes, "started") if _is_alive(int(pid))]


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def run(plan: Plan, store: Store, jobs: int = 1) -> tuple[RunReport, list[str]]:
    lines = Lines()
    plan = GenerationOnly(**vars(plan))
    with llms_on_demand(lines) as llm, executor(jobs) as workers:
        return Runner(store, workers, RUNTIME, lines, llm, plan.experiment.name).run(plan), lines.said


def message(report: RunReport, plan: Plan) -> str:
    _, (found,) = report.failed[generated(plan).identity]
    assert report.only_user_errors
    return found


def identity(experiment: ExperimentFile, *assignments: str) -> str:
    return generated(make_plan(experiment.load(*assignments))).identity


def test_the_command_has_exit_code_2_if_the_server_does_not_start(
    asking: ExperimentFile, notes: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ALLOWED)
    (asking.folder / "home").mkdir()
    shutil.copyfile(empty_database, asking.folder / "home" / "mlflow.db")
    asking.change(command(notes), command(notes, "--fails"))
    command_line = [
        "run",
        str(asking.file),
        "--output",
        str(asking.folder / "reports"),
        "--variant",
        "silver",
    ]
    failure = CliRunner().invoke(app, [*command_line, "--allow-code"])
    assert failure.exit_code == 2
    assert "runs command: " in failure.stderr
    assert "its server ended with exit code 1 before it was healthy" in failure.stderr
    assert "Traceback" not in failure.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_server_starts_with_the_first_request_and_ends_with_the_run(
    asking: ExperimentFile, store: Store, notes: Path, jobs: int
) -> None:
    plan = make_plan(asking.load())
    report, _ = run(plan, store, jobs)
    assert not report.failed
    assert all(text.endswith("letters by weights.gguf") for text in texts(plan, store))
    assert len(noted(notes, "started")) == 1
    assert {line.split()[0] for line in noted(notes, "asked")} == {"served-weights.gguf"}
    (entry,) = entries(store.answers, "study")
    assert (entry.model, entry.answered.num_attempts, entry.answered.usd) == ("weights.gguf", 4, 0.0)
    assert entry.answered.completion_tokens == 4 * 5


def test_no_server_starts_if_all_answers_are_cached(
    asking: ExperimentFile, store: Store, notes: Path
) -> None:
    plan = make_plan(asking.load())
    run(plan, store)
    before = texts(plan, store)
    store.discard(generated(plan).identity)
    report, said = run(plan, store)
    assert not report.failed
    assert texts(plan, store) == before
    assert len(noted(notes, "started")) == 1
    assert not [line for line in said if "starting" in line]


def test_the_servers_log_is_in_the_home_and_no_file_contains_a_key(
    asking: ExperimentFile, store: Store, notes: Path, tmp_path: Path
) -> None:
    asking.change(command(notes), command(notes, "--api-key", "hush-hush"))
    _, said = run(make_plan(asking.load()), store)
    (log,) = (tmp_path / "home" / "servers").iterdir()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file != asking.file]
    assert [file for file in files if b"hush-hush" in file.read_bytes()] == []
    assert "loading the weights" in log.read_text(encoding="utf-8")
    (started,) = [line for line in said if "starting" in line]
    assert started.startswith(f"llm: starting {sys.executable} ")
    assert started.endswith(f"log: {log}")


def llms(notes: Path, *models: str) -> str:
    entries = "".join(f"  {model}: {{serve: {command(notes)!r}, model: {model}}}\n" for model in models)
    return f"llms:\n{entries}"


def test_each_llm_has_its_own_server(
    experiment: ExperimentFile, store: Store, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED, str(experiment.folder))
    experiment.change("method: fake\n", "method: fake-chat\n      llm: one\n").change("      size: 3\n", "")
    row = "  better:\n    data.silver: {method: fake-chat, sources: {gold: gold}, llm: two}\n"
    experiment.change("table:\n", f"{row}table:\n").append(llms(notes, "one", "two"))
    plan = make_plan(experiment.load())
    wanted = [stage for stage in plan.stages.values() if stage.kind == "generate"]
    lines = Lines()
    with llms_on_demand(lines) as llm, executor(2) as workers:
        runner = Runner(store, workers, RUNTIME, lines, llm, "study")
        for stage in wanted:
            assert not runner.compute_again(stage, ArtifactDamagedError(stage.identity, "is gone")).failed
    assert len(noted(notes, "started")) == 2
    assert {entry.model for entry in entries(store.answers, "study")} == {"one", "two"}


def test_a_server_that_ends_before_it_is_healthy_is_reported_with_its_log(
    asking: ExperimentFile, store: Store, notes: Path
) -> None:
    plan = make_plan(asking.load(f"llm.serve={command(notes, '--fails')}"))
    report, said = run(plan, store)
    worded(message(report, plan), "llm: its server", "exit code 1", "ValueError: the weights are gone")
    assert "  | loading the weights" in said
    assert len(noted(notes, "started")) == 1


def test_a_server_that_is_not_healthy_in_time_is_reported_in_one_line(
    asking: ExperimentFile, store: Store, notes: Path
) -> None:
    plan = make_plan(asking.load(f"llm.serve={command(notes, '--sleeps')}", "llm.start_timeout_s=0.6"))
    report, _ = run(plan, store)
    worded(message(report, plan), "llm: its server", "0.6 s", "llm.start_timeout_s")


def test_a_missing_program_is_reported_in_one_line_before_any_work(
    asking: ExperimentFile, store: Store
) -> None:
    with refused("llm.serve", "no-such-program", "PATH"):
        run(make_plan(asking.load("llm.serve=no-such-program --port {port}")), store)


def test_a_missing_known_program_is_reported_with_its_installation(
    asking: ExperimentFile, store: Store, chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    for program, cure in (("vllm", "pip install vllm"), ("transformers", "synthbench[serve]")):
        with refused("llm.serve", f"'{program}'", cure):
            run(make_plan(asking.load(f"llm={{serve: {program}, model: {chat_model}}}")), store)


@contextmanager
def backend(asking: ExperimentFile, folder: Path) -> Iterator[ServedBackend]:
    """Yield what starts the experiment's server; it ends with the block."""
    llm = asking.load().llms["llm"]
    with servers(folder / "logs") as door:
        yield ServedBackend(llm.endpoint(replace(llm.settings.address(), door=door)), Lines().say)


def test_a_server_starts_though_another_process_deletes_old_logs(
    asking: ExperimentFile, notes: Path, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "gone.log").symlink_to(tmp_path / "nothing")
    with backend(asking, tmp_path) as server:
        wait_until(lambda: server.address_if_ready() is not None)


def test_a_server_that_died_is_restarted_by_the_next_stage(
    asking: ExperimentFile, notes: Path, tmp_path: Path
) -> None:
    with backend(asking, tmp_path) as server:
        wait_until(lambda: server.address_if_ready() is not None)
        (first,) = living(notes)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not server.address_if_ready())
        wait_until(lambda: server.address_if_ready() is not None)
        assert len(noted(notes, "started")) == 2


def test_a_request_after_the_run_is_an_error(asking: ExperimentFile, notes: Path, tmp_path: Path) -> None:
    with backend(asking, tmp_path) as server:
        pass
    with refused("run the same command again"):
        server.address_if_ready()
    assert not notes.exists()


def killed_run(arguments: Sequence[str], tmp_path: Path) -> "subprocess.Popen[str]":
    """Start a run in a process of its own, and wait until its server is ready."""
    paths = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_RUN, *arguments, str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_run_that_is_killed_leaves_no_server(notes: Path, tmp_path: Path) -> None:
    process = killed_run([command(notes)], tmp_path)
    assert len(living(notes)) == 1
    process.kill()
    process.communicate()
    wait_until(lambda: living(notes) == [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_a_guard_that_is_killed_leaves_no_server(asking: ExperimentFile, notes: Path, tmp_path: Path) -> None:
    with backend(asking, tmp_path) as server:
        wait_until(lambda: server.address_if_ready() is not None)
        (program,) = living(notes)
        guard = psutil.Process(program).parent()
        assert guard is not None
        guard.kill()
        wait_until(lambda: living(notes) == [])


def test_an_interruption_does_not_wait_until_the_server_is_healthy(
    asking: ExperimentFile, notes: Path, tmp_path: Path
) -> None:
    llm = asking.load(f"llm.serve={command(notes, '--sleeps')}").llms["llm"]
    address = llm.settings.address()

    def interrupted() -> Iterator[ChatRequest]:
        yield ChatRequest("a", ({"role": "user", "content": "a dog"},), {})
        wait_until(lambda: living(notes) != [])
        raise KeyboardInterrupt

    with servers(tmp_path / "logs") as door:
        endpoint = llm.endpoint(replace(address, door=door))
        with pytest.raises(KeyboardInterrupt):
            list(ChatClient(endpoint, tmp_path / "answers").answers(interrupted()))


@pytest.mark.experiments
def test_a_servers_child_processes_end_with_it_even_if_they_ignore_signals(
    notes: Path, tmp_path: Path
) -> None:
    process = killed_run([command(notes, "--child")], tmp_path)
    assert len(living(notes)) == 2
    process.kill()
    process.communicate()
    wait_until(lambda: living(notes) == [])


def test_only_model_weights_options_and_command_are_in_the_identity(
    asking: ExperimentFile, notes: Path
) -> None:
    plain = identity(asking)
    same = (
        "concurrency=2",
        "timeout=9",
        "start_timeout_s=9",
        "sends_sample=false",
        "offline=true",
        "tries=1",
    )
    for setting in same:
        assert identity(asking, f"llm.{setting}") == plain
    split = "[" + ", ".join(repr(part) for part in shlex.split(command(notes))) + "]"
    assert identity(asking, f"llm.serve={split}") == plain
    elsewhere = command(notes).replace(sys.executable, "/usr/bin/" + Path(sys.executable).name, 1)
    assert identity(asking, f"llm.serve={elsewhere}") == plain
    (asking.folder / "other.gguf").write_text("weights", encoding="utf-8")
    others = [
        identity(asking, f"llm.{change}")
        for change in ("model=other.gguf", "reasoning_effort=low", f"serve={command(notes, '--child')}")
    ]
    (asking.folder / "weights.gguf").write_text("new weights", encoding="utf-8")
    assert len({plain, identity(asking), *others}) == 5


def test_a_plan_shows_tokens_without_money_and_starts_nothing(
    asking: ExperimentFile, store: Store, notes: Path
) -> None:
    def lines(*assignments: str) -> Sequence[str]:
        ((_, found),) = costs(statuses(make_plan(asking.load(*assignments)), store), store)
        return found

    requests, money = lines()
    assert "): about 4 requests, 400,000 tokens of prompts" in requests
    assert money == "money: none, no provider is paid"
    _, money = lines("llm.price={input: 1, output: 2, date: '2026-05-01'}")
    assert money.startswith("money: about 0.80 US dollars")
    assert not notes.exists()
