"""`synthbench validate`, `plan`, `run` and `report` of an experiment that audits its data."""

import csv
import shutil
from pathlib import Path

import pytest
from small_experiment import Project

AUDITED = """\
experiment: small
description: What the sandbox's own labels are worth
sources:
  world: {sandbox: pairs, split: train, size: 60}
defaults:
  data:
    pairs: {source: world}
  audit:
    labels: {part: pairs, per_label: 5}
"""


@pytest.fixture
def audited(project: Project, empty_database: Path) -> Project:
    """An experiment without training whose labels people are to judge, and a profile that has an oracle."""
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    project.file.write_text(AUDITED, encoding="utf-8")
    (project.folder / "profiles").mkdir()
    (project.folder / "profiles" / "sandbox.yaml").write_text("substitute: {oracle: sandbox}\n")
    return project


def test_plan_names_the_audits(audited: Project) -> None:
    called = audited.call("validate", audited.file)
    assert (called.code, called.errors) == (0, [])
    assert "valid: 1 variant" in called.out
    assert called.out.rstrip().endswith("audits: labels")
    assert "audit labels of pairs for small seed 0" in audited.call("plan", audited.file, "--stages").out


def test_the_oracle_of_a_profile_judges_and_report_shows_it_again(audited: Project) -> None:
    called = audited.call("run", audited.file, "--profile", "sandbox")
    assert (called.code, called.errors) == (0, [])
    confusion = called.out[: called.out.index("page: ")]
    for text in (
        "labels of pairs (small): judged labels (rows) of intended labels (columns)",
        "mean similarity",
        "Judged by: oracle sandbox, version 2",
        "What the sandbox's own labels are worth",
    ):
        assert text in confusion
    assert " in reports/small/profile-sandbox/notes.md\n" in called.out
    again = audited.call("report", audited.file, "--profile", "sandbox", "--output", "again")
    assert again.out.startswith(confusion)
    written = (audited.folder / folder / "small/profile-sandbox/audit.md" for folder in ("reports", "again"))
    assert len({file.read_bytes() for file in written}) == 1


def test_annotators_get_a_sheet_whose_answers_are_read_and_kept(audited: Project) -> None:
    called = audited.call("run", audited.file)
    assert (called.code, called.errors) == (0, [])
    assert "sheet: reports/small/audit-labels-small.csv: " in called.out
    assert "20 items wait for judgement" in called.out
    assert called.out.splitlines()[-1] == "next: answer 1 sheet, named above, and run again"
    sheet = audited.folder / "reports" / "small" / "audit-labels-small.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *([*row[:-1], "same"] for row in rows)])
    answered = sheet.read_bytes()
    assert "has answers and is kept" in audited.call("run", audited.file).out
    audited.change("per_label: 5", "sheets: [reports/small/audit-labels-small.csv]")
    called = audited.call("run", audited.file)
    assert (called.code, called.errors) == (0, [])
    assert "Judged by: audit-labels-small" in called.out
    assert "sheet: " not in called.out
    assert sheet.read_bytes() == answered
