"""A report with everything in it: deleted, `synthbench report` writes every file again, byte for byte."""

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_experiment import Project, finished

from synthbench.auditing.confusion import confusion
from synthbench.auditing.report import Audit
from synthbench.config.experiment import Experiment
from synthbench.config.load import load_experiment
from synthbench.data.records import RecordKind
from synthbench.engine.jobs import environment
from synthbench.reporting.files import write_report
from synthbench.reporting.results import (
    AuditResult,
    CostResult,
    DataExcerpt,
    DatasetSummary,
    ExperimentResult,
    Overlap,
    RecordExcerpt,
    RunResult,
    TaskScores,
)
from synthbench.results.collect import request, to_yaml
from synthbench.statistics.histograms import score_counts
from synthbench.statistics.item_noise import ItemNoise
from synthbench.tracking.mlflow_tracker import MlflowTracker
from synthbench.tracking.redaction import redacted

SEEDS = (0, 1, 2)
TABLE = """
table:
  compare_to: gold-only
  caption: Gold & silver, 5 % µ — "drawn"
  figures:
    curves: {records: [silver]}
    densities: {parts: [silver], reference: gold}
"""
MORE_FIGURES = """\
    early_dev: true
    frontier: {costs: [dollars, tokens, seconds]}
"""
PARTS = ("table", "comparisons", "audit", "costs", "densities")
FIGURES = ("scores", "curves", "densities")
FILES = {
    "curves.csv",
    *(f"{name}.{ending}" for name in PARTS for ending in ("tex", "md", "csv")),
    *(f"{name}.{ending}" for name in FIGURES for ending in ("pdf", "png")),
}


@pytest.fixture
def project_to_report(project: Project, empty_database: Path) -> Project:
    """A project without any run or store."""
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def reported(project: Project, table: str) -> dict[str, bytes]:
    """Track a result and write its report; return all that it consists of."""
    project.change("seeds: [0, 1]", "seeds: [0, 1, 2]")
    project.file.write_text(project.file.read_text(encoding="utf-8") + table, encoding="utf-8")
    result = whole_result(load_experiment(project.file))
    folder = project.folder / "reports" / "small"
    write_report(redacted(result), folder)
    MlflowTracker(project.home).log(result, folder)
    return contents(project)


def whole_result(experiment: Experiment) -> ExperimentResult:
    """Two rows with all that a report can be made of; every figure is drawn by lot."""
    draw = random.Random(0)
    rows = ("gold-only", "augsbert")
    return ExperimentResult(
        experiment=experiment.name,
        description=experiment.description,
        identity="identity",
        request=request(experiment, ()),
        source=to_yaml(experiment.resolved),
        table=experiment.table.model_dump(mode="json"),
        baseline="gold-only",
        tasks=("test",),
        runs=tuple(run(row, seed, draw) for row in rows for seed in SEEDS),
        item_noise=(
            ItemNoise(
                axes={}, task="test", evaluator="sts", num_items=40, variants=rows, squared_errors=(1e-4,)
            ),
        ),
        audits=(audit("augsbert"), audit("gold-only", is_judged=False)),
        costs=(
            CostResult(
                method="syncse", part="silver", rows=("augsbert",), llm="an-llm", num_records=9,
                num_requests=10, prompt_tokens=1234, completion_tokens=567, usd=0.1 + 0.2, stage="silver",
            ),
        ),
        excerpts=(
            DataExcerpt(
                stage="silver", records=(RecordExcerpt(texts=(("sentence1", "A «dog» <runs>."),), score=0.1),)
            ),
        ),
        failures=("train augsbert seed 3: it broke",),
        notes=("A note with 50 % & more.",),
        environment=environment(),
    )  # fmt: skip


def run(row: str, seed: int, draw: random.Random) -> RunResult:
    parts = ("gold",) if row == "gold-only" else ("gold", "silver")
    score = TaskScores(
        task="test", evaluator="sts", main_score="spearman_all", title="Spearman correlation",
        scores={"spearman_all": draw.random(), "pearson_all": float("nan")}, num_items=40, stage="evaluation",
    )  # fmt: skip
    overlap = Overlap(
        task="test", items="pairs", num_items=40, sharing={"normalised": 3}, whole={"normalised": 1},
        as_pairs=1, by_part={"gold": 3},
    )  # fmt: skip
    return RunResult(
        variant=row,
        seed=seed,
        identity=f"{row}{seed}",
        parameters={"train.epochs": 1, "llm.api_key": "sk-1"},
        chosen={"k": 2},
        scores=(score,),
        datasets=tuple(data(part, draw) for part in parts),
        overlaps=(overlap,),
        history=tuple((step, "dev_score", draw.random()) for step in (1, 2, 3)),
        dev_score=draw.random(),
        num_steps=3,
        seconds=round(100 * draw.random(), 3),
    )


def data(part: str, draw: random.Random) -> DatasetSummary:
    return DatasetSummary(
        part=part,
        kind="scored_pair",
        method="" if part == "gold" else "augsbert",
        num_records=100,
        score_counts=score_counts([draw.random() for _ in range(100)]),
        figures={"distinct-2": draw.random()},
        content_hash=part,
        stage=part,
    )


def audit(row: str, *, is_judged: bool = True) -> AuditResult:
    labels = [("0", "different")] * 9 + [("0", "same")] * 2 + [("1", "same")] * 5
    judged = Audit(
        kind=RecordKind.SCORED_PAIR,
        judge="anna",
        num_records=100,
        num_items=len(labels),
        num_failures=0,
        failures={},
        confusion=confusion(labels, ["different", "same"], ["0", "1"]),
    )
    waiting = AuditResult(name="labels", part="silver", rows=(row,), stage=row, num_items=16)
    return waiting.model_copy(update={"audit": judged}) if is_judged else waiting


def contents(project: Project) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (project.folder / "reports" / "small").iterdir()}


def test_report_writes_every_file_again_byte_for_byte(project_to_report: Project) -> None:
    before = reported(project_to_report, TABLE)
    assert before.keys() >= FILES
    assert b"sk-1" not in b"".join(before.values())
    shutil.rmtree(project_to_report.folder / "reports")
    called = project_to_report.call("report", project_to_report.file)
    assert (called.code, called.err) == (0, "")
    assert_same(before, contents(project_to_report))


@pytest.mark.experiments
def test_another_hash_seed_and_locale_give_the_same_bytes(project_to_report: Project) -> None:
    before = reported(project_to_report, TABLE + MORE_FIGURES)
    assert before.keys() >= {"frontier.csv", "frontier.png", "early_dev.pdf"}
    shutil.rmtree(project_to_report.folder / "reports")
    other = {"PYTHONHASHSEED": "4", "LC_ALL": "C", "TZ": "Asia/Tokyo", "COLUMNS": "40"}
    project = replace(project_to_report, environment=other)
    called = finished(project.start("report", project.file))
    assert called.code == 0, called.err
    assert_same(before, contents(project))


def assert_same(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Compare files one by one, since a diff of PDFs is unreadable."""
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
