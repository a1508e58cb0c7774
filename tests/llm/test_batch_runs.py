"""Runs whose LLM answers in batches: they end pending, and the same command goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from batch_server import Batches, Result, batch_server, result
from experiment_files import ExperimentFile
from fakes import Lines
from small_experiment import Called, Project, artifact

from synthbench.base.runtime import Runtime
from synthbench.engine.artifacts import read_dataset
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.stages.generation import Generate
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers

MOST_ROUNDS = 6
"""Batches in a row for one stage: the first, and those that ask for empty and faulty answers again."""


def sandbox(body: dict[str, Any]) -> Result:
    """Answer as the generated world's chat model, which misbehaves now and then."""
    settings = LLMSettings(refusals=0.05, empty=0.03, malformed=0.08)
    return result(Answers(settings, body).choice(0))


@pytest.fixture
def server() -> Iterator[Batches]:
    with batch_server() as running:
        yield running


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Batches) -> ExperimentFile:
    """An experiment with fake plug-ins whose method asks in batches."""
    fakes.install(monkeypatch)
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    file = ExperimentFile(tmp_path).change("method: fake\n", "method: fake-chat\n")
    file = file.change("      size: 3\n", "")
    file.append(f"llm: {{name: mine, base_url: '{server.base_url}', model: m, batch: true}}\n")
    return file


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def run(plan: Plan, store: Store) -> RunReport:
    lines = Lines()
    with llms_on_demand(lines) as llm:
        return Runner(store, InProcess(), Runtime(device="cpu"), lines, llm, plan.experiment.name).run(plan)


def generated(plan: Plan) -> Stage:
    (stage,) = [stage for stage in plan.stages.values() if isinstance(stage.operation, Generate)]
    return stage


def test_a_pending_stage_is_no_failure_and_delays_only_its_dependants(
    asking: ExperimentFile, store: Store, server: Batches
) -> None:
    plan = make_plan(asking.load())
    report = run(plan, store)
    ((stage, lines),) = report.pending.values()
    assert stage == generated(plan)
    assert lines == (
        "batch batch_0 of 'mine': 4 requests submitted; run the same command again to collect it",
    )
    assert not report.failed
    assert not report.skipped
    held_up = {each.identity for each in report.held_up}
    done = {each.identity for each in report.executed}
    assert {*held_up, *done, stage.identity} == set(plan.stages)
    assert {"train", "evaluate"} <= {each.kind for each in report.held_up}
    assert {"train", "evaluate"} <= {each.kind for each in report.executed}
    server.finish()
    report = run(plan, store)
    assert {each.identity for each in report.executed} == {*held_up, stage.identity}
    assert not report.pending
    texts = read_dataset(store.folder(stage.identity)).column("sentence2")
    assert all(text.startswith("echo ") for text in texts)


def test_batched_requests_do_not_change_an_identity(asking: ExperimentFile) -> None:
    in_batches, directly = (make_plan(asking.load(f"llm.batch={given}")) for given in ("true", "false"))
    assert in_batches.stages.keys() == directly.stages.keys()


def test_the_sandboxs_own_server_has_no_batches(asking: ExperimentFile) -> None:
    address = asking.file.read_text(encoding="utf-8").partition("llm:")[2]
    faults = asking.change(address, " {endpoint: sandbox, batch: true}\n")
    (fault,) = faults.faults()
    assert "llm.batch: unknown key" in fault


def test_a_plan_shows_the_price_of_batches(asking: ExperimentFile, store: Store, server: Batches) -> None:
    run(make_plan(asking.load()), store)
    price = "llm.price={input: 1.5, output: 2, batch: 0.5, date: '2026-05-01'}"
    plan = make_plan(asking.load("llm.model=larger", price))
    ((_, (_, money)),) = costs(statuses(plan, store), store)
    assert money == "money: about 0.50 US dollars at the batch prices of 2026-05-01"


EXPERIMENT = """\
experiment: small
llm: {{name: mine, base_url: "{base_url}", model: m, batch: true}}
sources:
  test: {{sandbox: pairs, split: test, size: 40}}
  gold: {{sandbox: pairs, split: train, size: 40}}
seeds: [0]
defaults:
  data:
    triplets: {{method: syncse-scratch, size: 60}}
  train:
    trainer: bi-encoder
    base: {{model: sandbox/encoder}}
    max_steps: 1
    batch_size: 8
  evaluate:
    sts: {{evaluator: sts, tasks: [test]}}
baseline: written
variants:
  gold: {{data: {{triplets: null, gold: {{source: gold}}}}}}
runtime: {{device: cpu, threads: 1}}
"""
SENTENCES = "generate syncse-sentences for sentences of syncse-scratch for written seed 0"
TRIPLETS = "generate syncse-scratch for written seed 0"


def new_project(folder: Path, server: Batches, database: Path | None = None) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.file.write_text(EXPERIMENT.format(base_url=server.base_url), encoding="utf-8")
    project.home.mkdir()
    if database is not None:
        shutil.copyfile(database, project.home / "mlflow.db")
    return project


def written(project: Project) -> dict[str, bytes]:
    return {
        f"{label}/{file.name}": file.read_bytes()
        for label in (SENTENCES, TRIPLETS)
        for file in (artifact(project, label) / "dataset").iterdir()
    }


def pending(called: Called) -> list[str]:
    assert called.code == 4, called.err
    lines = called.err.splitlines()
    return [line.removeprefix("pending: ") for line in lines if line.startswith("pending: ")]


def test_a_run_with_pending_batches_has_exit_code_4(tmp_path: Path) -> None:
    with batch_server(sandbox) as server:
        project = new_project(tmp_path, server)
        called = project.call("run", "small.yaml", "--variant", "written")
        assert pending(called) == [
            f"{SENTENCES}: batch batch_0 of 'mine': 3 requests submitted; run the same command"
            " again to collect it"
        ]
    assert called.err.splitlines()[-1] == (
        "what is finished is kept; to go on later: synthbench run small.yaml --variant written"
    )
    assert ", 1 pending, " in called.err
    assert not called.errors


def finished_in_the_end(project: Project, server: Batches, awaited: str = "") -> Called:
    """Finish batches until none (of `awaited`) is pending, since empty answers are requested again."""
    for _ in range(MOST_ROUNDS):
        server.finish()
        called = project.call("run", "small.yaml")
        if called.code != 4 or (awaited and awaited not in {each.split(":")[0] for each in pending(called)}):
            break
    return called


@pytest.mark.experiments
def test_batches_give_the_same_sentences_and_labels_as_direct_requests(
    tmp_path: Path, empty_database: Path
) -> None:
    with batch_server(sandbox) as server:
        project = new_project(tmp_path / "in batches", server, empty_database)
        called = project.call("run", "small.yaml")
        assert [line.split(":")[0] for line in pending(called)] == [SENTENCES]
        report = project.folder / "reports" / "small"
        assert "gold" in (report / "table.md").read_text(encoding="utf-8")
        notes = (report / "notes.md").read_text(encoding="utf-8")
        assert f"Pending: {SENTENCES}: batch" in notes
        assert "Pending: written seed 0 is not finished" in notes
        assert "Failed" not in notes
        called = finished_in_the_end(project, server, SENTENCES)
        assert [line.split(":")[0] for line in pending(called)] == [TRIPLETS]
        server.finish("expired", num_done=70)
        assert [line.split(":")[0] for line in pending(project.call("run", "small.yaml"))] == [TRIPLETS]
        called = finished_in_the_end(project, server)
        assert called.code == 0, called.err
        notes = (report / "notes.md").read_text(encoding="utf-8")
        assert "Pending" not in notes
        asked = len(server.bodies)
        directly = new_project(tmp_path / "directly", server, empty_database)
        directly.change("batch: true", "batch: false")
        assert directly.call("run", "small.yaml").code == 0
        assert len(server.bodies) == 2 * asked
    assert written(project) == written(directly)
