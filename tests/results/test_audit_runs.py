"""Audits as stages of an experiment: by the oracle, by people's sheets, and before anybody has judged."""

import csv
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from wording import refused

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.results import AuditResult, ExperimentResult
from synthbench.results.audits import deliver_sheet, sheet_name
from synthbench.results.collect import collect

AUDITED = """\
experiment: study
sources:
  world: {sandbox: pairs, split: train, size: 60}
seeds: [0, 1]
defaults:
  data:
    pairs: {source: world, prepare: [{step: split, dev: 0.2}]}
  audit:
    labels: {part: pairs, per_label: 5, oracle: sandbox}
baseline: whole
variants:
  unsplit: {data.pairs.prepare: []}
"""


@pytest.fixture
def audited(experiment: ExperimentFile) -> ExperimentFile:
    """An experiment whose rows end with an audit of their data."""
    experiment.file.write_text(AUDITED, encoding="utf-8")
    return experiment


def run(plan: Plan, store: Store) -> RunReport:
    return Runner(store, InProcess(), RUNTIME, Lines()).run(plan)


def result_of(experiment: ExperimentFile, store: Store, *assignments: str) -> ExperimentResult:
    plan = make_plan(experiment.load(*assignments))
    assert not run(plan, store).failed
    return collect(plan, Artifacts(store))


def answer(sheet: Path, copy: Path, label: str) -> None:
    """Write a copy of a sheet in which every answer is the same."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    with copy.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *([*row[:-1], label] for row in rows)])


def test_a_row_may_end_with_an_audit_and_then_runs_once(audited: ExperimentFile, store: Store) -> None:
    plan = make_plan(audited.load())
    assert [planned.label for planned in plan.runs] == ["whole seed 0", "unsplit seed 0"]
    assert [str(stage) for stage in plan.stages.values()] == [
        "source world",
        "prepare pairs for whole seed 0",
        "audit labels of pairs for whole seed 0",
        "audit labels of pairs for unsplit seed 0",
    ]
    result = result_of(audited, store)
    assert [(one.variant, one.scores, one.model_folder) for one in result.runs] == [
        ("whole", (), ""),
        ("unsplit", (), ""),
    ]
    assert [part.num_records for part in result.runs[0].datasets] == [60]
    assert result.failures == ()
    assert not run(plan, store).executed


def test_the_oracle_judges_the_configured_number_of_each_label(audited: ExperimentFile, store: Store) -> None:
    first, second = result_of(audited, store).audits
    assert (first.title, second.title) == ("labels of pairs (whole)", "labels of pairs (unsplit)")
    assert first.audit is not None
    totals = first.audit.confusion.totals
    assert first.num_items == sum(totals.values())
    assert max(totals.values()) == 5
    assert first.audit.judge.startswith("oracle sandbox")
    assert first.audit.confusion.cells["outside the grammar"][first.audit.confusion.columns[0]].count == 0


def test_equal_data_are_audited_once_whatever_model_is_trained_on_them(
    experiment: ExperimentFile, store: Store
) -> None:
    experiment.change("  evaluate:\n", "  audit.labels: {part: gold, oracle: sandbox}\n  evaluate:\n")
    result = result_of(experiment, store)
    assert [audit.rows for audit in result.audits] == [("plain", "silver")]
    assert len(result.runs) == 4


def test_data_that_vary_with_the_seed_are_audited_for_each_seed(
    audited: ExperimentFile, store: Store
) -> None:
    result = result_of(audited, store, "sources.world.sample={size: 40}", "vary=[sample]", "variants=null")
    assert [audit.rows for audit in result.audits] == [("whole seed 0",), ("whole seed 1",)]


def test_without_an_oracle_a_sheet_for_people_is_written_without_intended_labels(
    audited: ExperimentFile, store: Store, tmp_path: Path
) -> None:
    first, _ = result_of(audited, store, "audit.labels.oracle=null").audits
    assert first.audit is None
    line = deliver_sheet(first, Artifacts(store), tmp_path)
    sheet = tmp_path / "audit-labels-whole.csv"
    assert line.startswith(f"{sheet}: {first.num_items} to answer; give each annotator a copy")
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    assert header[:-1] == ["id", "sentence1", "sentence2"]
    assert header[-1].endswith("Answer: different | a little | similar | same")
    assert len(rows) == first.num_items


def test_a_sheet_with_answers_is_never_overwritten_but_a_blank_one_is(
    audited: ExperimentFile, store: Store, tmp_path: Path
) -> None:
    first, other = result_of(audited, store, "audit.labels.oracle=null").audits
    deliver_sheet(first, Artifacts(store), tmp_path)
    sheet = tmp_path / sheet_name(first)
    blank = sheet.read_bytes()
    assert deliver_sheet(first, Artifacts(store), tmp_path).startswith(
        f"{sheet}: {first.num_items} to answer"
    )
    answer(sheet, sheet, "same")
    answered = sheet.read_bytes()
    assert "has answers and is kept" in deliver_sheet(first, Artifacts(store), tmp_path)
    assert sheet.read_bytes() == answered != blank
    sheet.write_text("my notes", encoding="utf-8")
    assert "has answers" in deliver_sheet(first, Artifacts(store), tmp_path)
    assert sheet.read_text(encoding="utf-8") == "my notes"
    assert sheet_name(other) == "audit-labels-unsplit.csv"


def test_answered_sheets_are_read_and_a_changed_answer_repeats_the_audit(
    audited: ExperimentFile, store: Store
) -> None:
    waiting = result_of(audited, store, "audit.labels.oracle=null", "variants=null").audits[0]
    deliver_sheet(waiting, Artifacts(store), audited.folder)
    for name, label in (("anna", "same"), ("ben", "similar")):
        answer(audited.folder / sheet_name(waiting), audited.folder / f"{name}.csv", label)
    judged = ("audit.labels={part: pairs, oracle: null, sheets: [anna.csv, ben.csv]}", "variants=null")
    (found,) = result_of(audited, store, *judged).audits
    assert found.audit is not None
    assert found.num_items == waiting.num_items
    assert found.audit.judge == "anna, ben"
    assert found.audit.agreement is not None
    assert found.audit.agreement.raw == 0.0
    answer(audited.folder / "anna.csv", audited.folder / "anna.csv", "similar")
    plan = make_plan(audited.load(*judged))
    (status,) = [each for each in statuses(plan, store) if each.stage.kind == "audit"]
    assert status.state == "to run"
    (later,) = result_of(audited, store, *judged).audits
    assert later.audit is not None
    assert later.audit.agreement is not None
    assert later.audit.agreement.raw == 1.0


def test_a_faulty_sheet_fails_its_audit_but_keeps_all_scores(
    experiment: ExperimentFile, store: Store
) -> None:
    (experiment.folder / "anna.csv").write_text("id,sentence1,sentence2,Same? Answer: yes | no\nq1,a,b,yes\n")
    experiment.change("  evaluate:\n", "  audit.labels: {part: gold, sheets: [anna.csv]}\n  evaluate:\n")
    plan = make_plan(experiment.load("seeds=[0]", "variants=null"))
    report = run(plan, store)
    ((stage, lines),) = report.failed.values()
    assert stage.kind == "audit"
    sheet = experiment.folder / "anna.csv"
    assert lines == (f"{sheet}: was made from another data set: none of its ids is one of this one's",)
    result = collect(plan, Artifacts(store))
    assert [one.variant for one in result.runs] == ["plain"]
    assert (result.audits, result.failures) == (
        (),
        ("audit labels of gold for plain seed 0 is not finished",),
    )


def test_an_audits_settings_are_only_in_its_own_identity(audited: ExperimentFile) -> None:
    before, after = (
        make_plan(audited.load(f"audit.labels.per_label={size}", "variants=null")) for size in (5, 6)
    )
    kinds = {stage.kind for identity, stage in before.stages.items() if identity not in after.stages}
    assert kinds == {"audit"}


def test_per_label_0_judges_all_records(audited: ExperimentFile, store: Store) -> None:
    whole, unsplit = result_of(audited, store, "audit.labels.per_label=0").audits
    assert (whole.num_items, unsplit.num_items) == (60, 60)


def test_a_result_with_audits_survives_json(audited: ExperimentFile, store: Store) -> None:
    result = result_of(audited, store)
    assert ExperimentResult.model_validate_json(result.model_dump_json()) == result
    assert isinstance(result.audits[0], AuditResult)


def test_a_missing_sheet_is_named_before_planning(audited: ExperimentFile) -> None:
    with refused("audit.labels.sheets.0", "anna.csv"):
        audited.load("audit.labels={part: pairs, oracle: null, sheets: [anna.csv]}")
