"""Runs with labellers and written negatives: gold judges labels, and reports count and price them."""

from pathlib import Path

import pytest
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import statuses
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs, llm_totals
from synthbench.estimates.facts import StageFacts
from synthbench.llm.ledger import entries
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult
from synthbench.results.collect import collect

EXPERIMENT = """\
experiment: judged
sources:
  known-pairs: {sandbox: pairs, split: train, size: 24}
  asked: {sandbox: answers, as: pair, split: train, size: 64, sample: {size: 3}}
  passages: {sandbox: passages, split: train, size: 16}
llm:
  {endpoint: sandbox, habits: 0.0, malformed: 0.2, price: {input: 1, output: 2, date: "2026-01-01"}}
defaults:
  data:
    known: {source: known-pairs, prepare: [{step: split, dev: 0.4}, {step: add-swapped}]}
    labels: {method: relabel, sources: {pairs: {part: known}}, labeller: {judge: {expected: true}}}
  audit: {worth: {part: labels, gold: known}}
baseline: expected
variants:
  grade: {data.labels.labeller.judge.expected: false}
  queries:
    audit: null
    data:
      known: null
      labels: null
      queries: {source: asked, prepare: [{step: relabel-retrieved, source: passages, number: 3}]}
  drawn:
    audit: null
    data:
      known: null
      labels: null
      queries:
        source: asked
        prepare: [{step: relabel-retrieved, source: passages, number: 3, negative: drawn}]
  negatives:
    audit: null
    data:
      known: null
      labels: null
      queries: {source: asked, prepare: [{step: write-negatives, number: 2}]}
"""


class Study:
    """The experiment in a folder, with a store."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        file = folder / "judged.yaml"
        file.write_text(EXPERIMENT, encoding="utf-8")
        self.plan = make_plan(load_experiment(file, Overrides()))
        self.store = Store(folder / "store")

    def run(self) -> RunReport:
        lines = Lines()
        with llms_on_demand(lines) as llm:
            return Runner(self.store, InProcess(), RUNTIME, lines, llm, "judged").run(self.plan)

    @property
    def result(self) -> ExperimentResult:
        return collect(self.plan, Artifacts(self.store))

    def queries(self, row: str) -> DatasetSummary:
        (found,) = (
            data
            for run in self.result.runs
            if run.variant == row
            for data in run.datasets
            if data.part == "queries"
        )
        return found


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    made = Study(tmp_path_factory.mktemp("judged") / "study")
    assert not made.run().failed
    return made


def test_gold_judges_each_rows_labels_and_the_report_prices_them(study: Study) -> None:
    expected, graded = study.result.audits
    for audit in (expected, graded):
        assert audit.name == "worth"
        assert audit.audit is not None
        assert audit.audit.quality is not None
        assert audit.cost is not None
        assert audit.audit.quality.num_pairs + audit.audit.quality.num_dev <= 24
        assert audit.cost.num_labels == 48
    assert expected.audit is not None
    assert expected.audit.quality is not None
    assert expected.audit.quality.correlation is not None
    assert expected.audit.quality.correlation.value > 0.7
    assert expected.audit.quality.swapped is not None
    assert expected.cost is not None
    assert expected.cost.usd == pytest.approx(study.result.costs[0].usd)
    assert graded.cost is not None
    assert graded.cost.usd == pytest.approx(study.result.costs[1].usd)
    section = Report(study.result).tables.get("Labels")
    assert section is not None
    (block,) = section.blocks
    assert [grid.title for grid in block.grids] == [
        "agreement with gold",
        "biases",
        "costs",
        "agreement with each other",
    ]
    assert len(section.csv.lines) == 2


def test_both_labels_are_kept_and_the_share_of_changed_positives_is_reported(study: Study) -> None:
    queries = study.queries("queries")
    share = queries.measured["relabel-retrieved: share of positives changed"]
    stored = Artifacts(study.store).dataset(queries.stage)
    from synthbench.data.dataset import SyntheticDataset

    records = list(SyntheticDataset.read(stored))
    assert share == sum(one.positive != one.former_positive for one in records) / len(records)


def test_written_negatives_are_paid_and_counted_and_the_table_says_whose_prompt_asks(study: Study) -> None:
    queries = study.queries("negatives")
    assert queries.num_records == 3
    assert queries.measured == {"write-negatives: negatives fewer than asked for": 0}
    assert "Prompts for hard negatives: reconstructed prompts, in our own words." in queries.notes
    answered = {entry.stage: entry.answered.num_attempts for entry in entries(Artifacts(study.store).answers)}
    assert answered[queries.stage] == 6


def test_a_plan_counts_the_requests_of_steps(study: Study, tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty")
    found = list(costs(statuses(study.plan, empty), empty))
    for step, number in (("relabel-retrieved", 24), ("write-negatives", 6)):
        lines = [lines[0] for stage, lines in found if stage.operation.component == step]
        assert all(f"about {number} requests" in line for line in lines)


def test_a_plans_total_counts_equal_requests_of_steps_once(study: Study, tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty")
    line, *_ = llm_totals(statuses(study.plan, empty), StageFacts(empty))
    assert "about 126 requests" in line
