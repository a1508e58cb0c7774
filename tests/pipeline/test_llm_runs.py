"""Experiments that name an LLM: its server comes and goes with the run, and may die in the middle."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import fakes
import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines, work_done
from typer.testing import CliRunner
from wording import refused, worded

from synthbench.cli.main import app
from synthbench.engine.artifacts import read_dataset
from synthbench.engine.local_executors import executor
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage, difference
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.stages.asking import Context


@pytest.fixture
def asking(experiment: ExperimentFile) -> Iterator[ExperimentFile]:
    """An experiment whose method asks the sandbox's LLM; no server is left in the end."""
    experiment.change("method: fake\n", "method: fake-llm\n").change("      size: 3\n", "")
    yield experiment.append("llm: sandbox\n")
    assert fakes.llm_servers() == []


class GenerationOnly(Plan):
    """A plan that ends with the generated data: the fake models of the rest live in one process only."""

    @property
    def targets(self) -> list[Stage]:
        return [generated(self)]


def run(plan: Plan, store: Store, jobs: int = 1) -> tuple[RunReport, list[str]]:
    lines = Lines()
    plan = GenerationOnly(**vars(plan))
    with llms_on_demand(lines) as llm, executor(jobs) as workers:
        return Runner(store, workers, RUNTIME, lines, llm).run(plan), lines.said


def generated(plan: Plan) -> Stage:
    (stage,) = [stage for stage in plan.stages.values() if stage.kind == "generate"]
    return stage


def identity(experiment: ExperimentFile, *assignments: str) -> str:
    return generated(make_plan(experiment.load(*assignments))).identity


def starts(said: list[str]) -> int:
    return sum(line.startswith("started the LLM 'sandbox' at http://127.0.0.1:") for line in said)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_llm_starts_only_when_a_stage_needs_it(
    asking: ExperimentFile, store: Store, work_log: Path, jobs: int
) -> None:
    plan = make_plan(asking.load())
    report, said = run(plan, store, jobs)
    assert not report.failed
    assert starts(said) == 1
    assert sum(line.startswith("asked") for line in work_done(work_log)) == 4
    dataset = read_dataset(store.folder(generated(plan).identity))
    assert all(dataset.column("sentence2"))
    assert dataset.manifest.config["experiment.llm"]["endpoint"] == "sandbox"
    _, said = run(plan, store, jobs)
    assert starts(said) == 0


def test_answers_do_not_depend_on_the_number_of_jobs(asking: ExperimentFile, tmp_path: Path) -> None:
    plan = make_plan(asking.load("llm={endpoint: sandbox, noise: 0.5}"))
    texts = []
    for jobs in (1, 2):
        store = Store(tmp_path / f"store {jobs}")
        run(plan, store, jobs)
        texts.append(read_dataset(store.folder(generated(plan).identity)).column("sentence2"))
    assert texts[0] == texts[1]


def test_only_settings_that_change_answers_are_in_the_identity(asking: ExperimentFile) -> None:
    plain = identity(asking)
    assert identity(asking, "llm={endpoint: sandbox}") == plain
    shaky = "drops: 0.1, rate_limited: 0.1, server_errors: 0.1, latency: 0.5, requests_per_minute: 9"
    assert (
        identity(asking, f"llm={{endpoint: sandbox, {shaky}, retry_after: 3, faults_by: arrival}}") == plain
    )
    for change in ("seed: 1", "noise: 0.1", "habits: 0.1", "refusals: 0.1", "empty: 0.1", "malformed: 0.1"):
        assert identity(asking, f"llm={{endpoint: sandbox, {change}}}") != plain
    noisy = generated(make_plan(asking.load("llm={endpoint: sandbox, noise: 0.1}")))
    spec = generated(make_plan(asking.load())).spec
    assert difference(spec, noisy.spec) == "experiment.llm.noise 0.0 -> 0.1"
    assert "127.0.0.1" not in json.dumps(spec)


def test_an_llm_that_no_method_uses_changes_no_identity(experiment: ExperimentFile) -> None:
    without = make_plan(experiment.load()).stages.keys()
    assert make_plan(experiment.load("llm=sandbox")).stages.keys() == without


def test_a_method_without_an_llm_gets_none(tmp_path: Path) -> None:
    context = Context({}, Workspace(tmp_path, RUNTIME, Lines()), ())
    with pytest.raises(RuntimeError, match="uses_llm = True"):
        _ = context.llm


def test_a_method_that_needs_an_llm_requires_one_in_the_file(experiment: ExperimentFile) -> None:
    experiment.change("method: fake\n", "method: fake-llm\n").change("      size: 3\n", "")
    worded(
        experiment.faults(), f"study.yaml:{experiment.line('method: fake-llm')}", "data.silver.method", "LLM"
    )


@pytest.mark.parametrize(
    ("llm", "fault"),
    [
        ("llm: sandbx", "llm: must be 'sandbox', is \"sandbx\"; did you mean 'sandbox'?"),
        ("llm: {endpoint: sandbox, nois: 0.1}", "llm.nois: unknown key; did you mean 'noise'?"),
        ("llm: {noise: 0.1}", "llm.endpoint: missing; it has no default"),
        ("llm: {endpoint: sandbox, noise: 2}", "llm.noise: must be at most 1, is 2"),
        ("llm: {endpoint: sandbox, habits: 2}", "llm.habits: must be at most 1, is 2"),
        (
            "llm: {endpoint: sandbox, drops: 0.9, server_errors: 0.9}",
            "llm: rate_limited, server_errors, drops: together they must not be more than 1",
        ),
    ],
)
def test_an_invalid_llm_is_reported_with_its_line(experiment: ExperimentFile, llm: str, fault: str) -> None:
    experiment.append(llm + "\n")
    (found,) = experiment.faults()
    assert found.startswith(f"study.yaml:{experiment.line(llm)}: {fault}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_server_is_reported_in_one_line_and_no_answer_is_lost(
    asking: ExperimentFile, store: Store, work_log: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    plan = make_plan(asking.load())
    monkeypatch.setenv(fakes.KILL_LLM_AT_UNIT, "2")
    report, _ = run(plan, store, jobs)
    _, (message,) = report.failed[generated(plan).identity]
    assert message.startswith("the LLM 'sandbox")
    assert message.endswith("Its answers are cached; run the same command again to resume")
    assert report.only_user_errors
    monkeypatch.delenv(fakes.KILL_LLM_AT_UNIT)
    report, _ = run(plan, store, jobs)
    assert not report.failed
    asked = [line for line in work_done(work_log) if line.startswith("asked")]
    assert len(asked) == len(set(asked)) == 4


def test_a_run_with_a_failed_server_has_exit_code_2_and_can_be_resumed(
    asking: ExperimentFile, work_log: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path
) -> None:
    home = asking.folder / "home"
    home.mkdir()
    shutil.copyfile(empty_database, home / "mlflow.db")
    command = ["run", str(asking.file), "--output", str(asking.folder / "reports"), "--variant", "silver"]
    monkeypatch.setenv(fakes.KILL_LLM_AT_UNIT, "1")
    called = CliRunner().invoke(app, command)
    assert called.exit_code == 2
    assert "Its answers are cached; run the same command again to resume" in called.stderr
    assert "Traceback" not in called.stderr
    monkeypatch.delenv(fakes.KILL_LLM_AT_UNIT)
    assert CliRunner().invoke(app, command).exit_code == 0
    assert sum(line.startswith("asked") for line in work_done(work_log)) == 4


def test_a_server_that_died_between_two_stages_is_restarted(asking: ExperimentFile) -> None:
    lines = Lines()
    with llms_on_demand(lines) as llm:
        named = asking.load().llms["llm"]
        first = llm(named)
        assert llm(named) == first
        fakes.kill_llm()
        assert llm(named) != first
    assert starts(lines.said) == 2


def test_a_server_that_fails_to_start_ends_the_run_with_one_line(
    asking: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.worlds.sandbox.llm.process.HOST", "no.such.host.invalid")
    monkeypatch.setattr("sys.executable", "/bin/false")
    with refused("LLM"):
        run(make_plan(asking.load()), store)
