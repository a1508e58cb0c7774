"""Results include the data's costs from the ledger, also of rows that only make data."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from faulty_server import Reply, faulty_server

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.llm.ledger import entries
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.files import write_report
from synthbench.reporting.results import ExperimentResult
from synthbench.results.collect import collect
from synthbench.worlds.sandbox.llm import MODEL
from synthbench.worlds.sandbox.llm.process import SandboxServer, running_server

TRAINING = """\
  train:
    trainer: fake
    base: {model: org/small}
    strength: 0.5
    selection: {evaluator: fake, sources: [dev]}
  evaluate:
    main:
      evaluator: fake
      tasks: [test]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def asking(experiment: ExperimentFile, server: SandboxServer) -> ExperimentFile:
    """The row silver asks an LLM whose tokens cost 1 and 2 US dollars for a million."""
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    price = "price: {input: 1, output: 2, date: '2026-05-01'}"
    return experiment.append(f"llm: {{name: mine, base_url: '{server.base_url}', model: {MODEL}, {price}}}\n")


def answers(number: int, body: dict[str, Any]) -> Reply:
    """Answer as another model than the requested one; every second answer is cut off."""
    choice = {"message": {"content": f"Text {number}."}, "finish_reason": ("stop", "length")[number % 2]}
    return Reply(body=json.dumps({"choices": [choice], "model": "a-cheaper-model"}).encode())


def test_the_table_names_other_models_that_answered_and_counts_incomplete_answers(
    experiment: ExperimentFile, store: Store, tmp_path: Path
) -> None:
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    with faulty_server(answers) as server:
        pacing = "max_failure_rate: 1, concurrency: 1"
        experiment.append(f"llm: {{name: mine, base_url: '{server.base_url}', model: big, {pacing}}}\n")
        found = results(experiment, store)
    write_report(found, tmp_path / "out")
    table = (tmp_path / "out" / "notes.md").read_text(encoding="utf-8")
    assert "Another LLM answered than was asked: a-cheaper-model instead of big." in table
    (row,) = csv.DictReader((tmp_path / "out" / "costs.csv").open(encoding="utf-8"))
    (stage,) = {data.stage for run in found.runs for data in run.datasets if data.llm}
    manifest = Artifacts(store).manifest(stage)
    assert (manifest.answered_by, manifest.unfinished_answers) == (
        {"big": ["a-cheaper-model"]},
        {"cut off": 2},
    )
    assert row["num_cut_off"] == str(entries(store.answers)[0].num_cut_off) == "2"


def data_only(experiment: ExperimentFile) -> ExperimentFile:
    """Leave the row silver with its generated data alone."""
    experiment.change(TRAINING, "").change("    gold: {source: gold}\n", "    gold: null\n")
    experiment.change("table:\n  columns: [test]\n", "").change("baseline: plain\n", "")
    return experiment


def results(experiment: ExperimentFile, store: Store, *assignments: str) -> ExperimentResult:
    plan, lines = make_plan(experiment.load(*assignments)), Lines()
    with llms_on_demand(lines) as llm:
        report = Runner(store, InProcess(), RUNTIME, lines, llm, plan.experiment.name).run(plan)
    assert not report.failed
    return collect(plan, Artifacts(store))


def test_the_results_have_the_cost_of_the_data(asking: ExperimentFile, store: Store) -> None:
    result = results(asking, store)
    (cost,) = result.costs
    assert (cost.method, cost.part, cost.rows, cost.llm) == ("fake-chat", "silver", ("silver",), MODEL)
    assert (cost.num_records, cost.num_requests) == (4, 4)
    assert cost.usd == pytest.approx((cost.prompt_tokens + 2 * cost.completion_tokens) / 1e6) != 0
    assert cost.is_priced
    assert ExperimentResult.model_validate_json(result.model_dump_json()).costs == result.costs


def test_samples_that_vary_with_the_seed_have_a_cost_for_each_seed(
    asking: ExperimentFile, store: Store
) -> None:
    first, second = results(asking, store, "sources.gold.sample={size: 3}", "vary=[sample]").costs
    assert (first.rows, second.rows) == (("silver seed 0",), ("silver seed 1",))


def test_a_row_whose_seeds_share_their_requests_is_named_without_a_seed(
    asking: ExperimentFile, store: Store
) -> None:
    (cost,) = results(asking, store, "sources.dev.sample={size: 2}", "vary=[sample]").costs
    assert cost.rows == ("silver",)


def test_the_data_name_their_llm(asking: ExperimentFile, store: Store) -> None:
    datasets = {each.part: each for run in results(asking, store).runs for each in run.datasets}
    assert (datasets["silver"].llm, datasets["gold"].llm) == (MODEL, "")
    assert datasets["silver"].notes == (f"LLM: {MODEL} (mine).",)


def test_another_experiment_with_the_same_data_includes_their_cost(
    asking: ExperimentFile, store: Store
) -> None:
    first = results(asking, store)
    assert results(asking, store, "experiment=another").costs == first.costs


def test_an_experiment_without_an_llm_costs_nothing(experiment: ExperimentFile, store: Store) -> None:
    result = results(experiment, store)
    assert result.costs == ()
    assert "costs" not in result.model_dump()


def test_a_row_may_end_with_its_data(asking: ExperimentFile, store: Store) -> None:
    result = results(data_only(asking), store, "sources.dev=null", "sources.test=null")
    (run,) = result.runs
    assert [(each.part, each.num_records) for each in run.datasets] == [("silver", 4)]
    assert (run.scores, len(result.costs), result.has_scores) == ((), 1, False)
    assert run.seconds > 0


def test_missing_data_give_no_result(asking: ExperimentFile, store: Store) -> None:
    plan = make_plan(data_only(asking).load("sources.dev=null", "sources.test=null"))
    result = collect(plan, Artifacts(store))
    assert result.runs == ()
    assert result.failures == ("silver seed 0 is not finished",)


def test_a_row_that_makes_no_data_needs_a_training(experiment: ExperimentFile) -> None:
    experiment.change(TRAINING, "")
    assert "train: missing; it has no default" in " ".join(experiment.faults())


def test_rows_with_different_llms_have_separate_costs(
    experiment: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    experiment.change("method: fake\n", "method: fake-chat\n      llm: cheap\n").change("      size: 3\n", "")
    row = "  better:\n    data.silver: {method: fake-chat, sources: {gold: gold}, llm: dear}\n"
    experiment.change("table:\n", f"{row}table:\n")
    llm = f"base_url: '{server.base_url}', model: {MODEL}, budget_usd: 1"
    experiment.append(
        "llms:\n"
        f"  cheap: {{name: cheap, {llm}, price: {{input: 1, output: 2, date: '2026-05-01'}}}}\n"
        f"  dear: {{name: dear, {llm}, price: {{input: 10, output: 20, date: '2026-05-01'}}}}\n"
    )
    result = results(experiment, store)
    cheap, dear = sorted(result.costs, key=lambda cost: cost.llm)
    assert [(cost.llm, cost.rows, cost.num_requests) for cost in (cheap, dear)] == [
        ("cheap", ("silver",), 4),
        ("dear", ("better",), 4),
    ]
    assert dear.usd == pytest.approx(10 * cheap.usd)
    notes = {run.variant: run.datasets[-1].notes for run in result.runs if run.variant != "plain"}
    assert notes["silver"] == (f"LLM cheap: {MODEL} (cheap).",)
    assert notes["better"] == (f"LLM dear: {MODEL} (dear).",)


def test_a_judge_reports_accepted_records_and_unclear_answers(
    experiment: ExperimentFile, store: Store
) -> None:
    judge = "[{step: judge, question: {prompt: 'Do both say the same? A: {sentence1} B: {sentence2}'}}]"
    experiment.change("method: fake\n", f"method: fake-chat\n      prepare: {judge}\n")
    experiment.change("      size: 3\n", "").append("llm: {endpoint: sandbox, malformed: 1.0}\n")
    plan, lines = make_plan(experiment.load()), Lines()
    with llms_on_demand(lines) as llms:
        Runner(store, InProcess(), RUNTIME, lines, llms, plan.experiment.name).run(plan)
    (said,) = [line.strip() for line in lines.said if "->" in line]
    sizes, *counts = re.split("; (?:dropped: )?", said)
    amount = {what: int(number) for number, what in (each.split(" × ") for each in counts if " × " in each)}
    assert amount["judge: unclear answer"] > 0
    assert f"judge: unclear answers: {amount['judge: unclear answer']}" in counts
    assert sizes == f"4 -> {4 - sum(amount.values())} scored_pair records"


def test_each_llm_has_its_own_budget(experiment: ExperimentFile, store: Store, server: SandboxServer) -> None:
    experiment.change("method: fake\n", "method: fake-chat\n      llm: free\n").change("      size: 3\n", "")
    row = "  better:\n    data.silver: {method: fake-chat, sources: {gold: gold}, llm: poor}\n"
    experiment.change("table:\n", f"{row}table:\n")
    llm = f"base_url: '{server.base_url}', model: {MODEL}, price: {{input: 1, output: 2, date: '2026-05-01'}}"
    experiment.append(
        f"llms:\n  free: {{name: free, {llm}}}\n  poor: {{name: poor, {llm}, budget_usd: 1e-9}}\n"
    )
    plan, lines = make_plan(experiment.load()), Lines()
    with llms_on_demand(lines) as llms:
        report = Runner(store, InProcess(), RUNTIME, lines, llms, plan.experiment.name).run(plan)
    ((_, messages),) = report.failed.values()
    assert messages[0].startswith("llms.poor.budget_usd: 1e-09 US dollars")
    assert {entry.endpoint: entry.answered.num_attempts for entry in entries(store.answers, "study")} == {
        "free": 4
    }
