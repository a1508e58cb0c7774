"""Audits as they are printed and written: one confusion for each data set, a paper's beside it."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_texts import PREAMBLE, text_of
from rich.console import Console, RenderableType
from wording import refused

from synthbench.auditing.confusion import confusion
from synthbench.auditing.report import Audit, audit_by_gold
from synthbench.config.published_tables import PublishedAudit, read_published_audit
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.reporting.files import write_report
from synthbench.reporting.render.terminal import terminal_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import AuditResult, ExperimentResult, LabelCost

JUDGED = [("0", "different")] * 19 + [("0", "same")] + [("1", "same")] * 5 + [("1", "different")] * 5
PUBLISHED = PublishedAudit(
    source="A & B 2021, Table 3", cells={"same": {"1": "47"}, "different": {"0": "95", "1": "0"}}
)
ROWS = """\
paper,table,row,encoder,generator,column,metric,split,aggregation,n,value,sd,flag,note
A & B 2021,3,human 1,,,ours 1,percent,,none,,47,,,
A & B 2021,3,human 0,,,ours 1,percent,,none,,0,,,
A & B 2021,3,human 0,,,ours 0,percent,,none,,95,,,
"""


@pytest.fixture
def audited() -> ExperimentResult:
    """Audits of two data sets: one judged, with a paper's beside it, one that waits for people."""
    audit = Audit(
        kind=RecordKind.SCORED_PAIR,
        judge="anna",
        question="How similar?",
        num_records=40,
        num_items=30,
        num_failures=0,
        failures={},
        confusion=confusion(JUDGED, ["different", "same"], ["0", "1"]),
    )
    judged = AuditResult(
        name="labels",
        part="x2",
        rows=("dino", "dino_2"),
        stage="a",
        num_items=30,
        audit=audit,
        published=PUBLISHED,
    )
    waiting = AuditResult(name="labels", part="x2", rows=("plain",), stage="b", num_items=400)
    return ExperimentResult(
        experiment="table3", identity="i", description="Who is right?", runs=(), audits=(judged, waiting)
    )


def printed(renderable: RenderableType) -> str:
    console = Console(width=160, file=io.StringIO())
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_shares_intervals_counts_and_published_shares(audited: ExperimentResult) -> None:
    text = printed(terminal_report(Report(audited), Console(width=160)).renderable)
    for expected in (
        "labels of x2 (dino, dino_2): judged labels (rows) of intended labels (columns)",
        "95.0% [76.4, 99.1] (19)",
        "50.0% [23.7, 76.3] (5)",
        "Published, in percent of the paper's own data: A & B 2021, Table 3",
        "│ different │ 95 │  0 │",
        "│ same      │  – │ 47 │",
        "Asked: How similar?",
        "Judged by: anna",
        "labels of x2 (plain): 400 items wait for judgement",
        "Who is right?",
    ):
        assert expected in text


def test_a_terminal_shows_audits_only_if_there_are_no_scores(
    audited: ExperimentResult, small_result: ExperimentResult
) -> None:
    both = small_result.model_copy(update={"audits": audited.audits})
    text = printed(terminal_report(Report(both), Console(width=160)).renderable)
    assert "Gold & silver" in text
    assert "labels of x2" not in text
    alone = printed(terminal_report(Report(audited), Console(width=160)).renderable)
    assert "labels of x2 (dino, dino_2)" in alone
    assert "variant" not in alone


def test_markdown_has_a_table_for_each_grid_and_all_notes(audited: ExperimentResult) -> None:
    lines = text_of(audited.model_copy(update={"overrides": ("--seeds 0",)}), "audit.md").splitlines()
    assert "|  | 0 | 1 |" in lines
    assert r"| same | 5.0% \[0.9, 23.6\] (1) | 50.0% \[23.7, 76.3\] (5) |" in lines
    assert "| judged | 20 | 10 |" in lines
    assert "| different | 95 | 0 |" in lines
    assert lines[-1] == "- Run with overrides: --seeds 0."


def test_csv_has_a_line_for_each_judged_cell(audited: ExperimentResult) -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(audited, "audit.csv"))))
    assert [
        (row["intended"], row["judged"], row["count"], row["total"], row["published"]) for row in rows
    ] == [
        ("0", "different", "19", "20", "95"),
        ("0", "same", "1", "20", ""),
        ("1", "different", "5", "10", "0"),
        ("1", "same", "5", "10", "47"),
    ]
    assert {(row["audit"], row["rows"], row["part"], row["judge"]) for row in rows} == {
        ("labels", "dino; dino_2", "x2", "anna")
    }
    assert (rows[0]["percent"], rows[0]["low"][:4], rows[0]["high"][:4]) == ("95.000000", "76.3", "99.1")


@pytest.mark.parametrize(
    ("usd", "shown", "exact"), [(0.03, "0.0500 | 0.0667", 0.03 / 450), (None, "– | –", None)]
)
def test_labels_against_gold_have_a_price_per_correct_label(
    audited: ExperimentResult, usd: float | None, shown: str, exact: float | None
) -> None:
    """600 labels, of which 3 of 4 are correct, for 0.03 US dollars."""
    gold = [
        ScoredPair(id=str(row), sentence1=str(row), sentence2="a", score=score)
        for row, score in enumerate((1.0, 0.0, 1.0, 0.0))
    ]
    made = [replace(pair, score=label) for pair, label in zip(gold, (0.9, 0.1, 0.2, 0.3), strict=True)]
    data, known = (SyntheticDataset.create(RecordKind.SCORED_PAIR, each) for each in (made, gold))
    audit = audit_by_gold(data, known, 0.5)
    cost = LabelCost(num_labels=600, usd=usd, seconds=12.0, training_seconds=5.0)
    judged = AuditResult(
        name="worth", part="x2", rows=("grade",), stage="a", num_items=4, audit=audit, cost=cost
    )
    result = audited.model_copy(update={"audits": (judged,)})
    assert f"| grade | {shown} | 20.0 | 5.0 |" in text_of(result, "labels.md").splitlines()
    (line,) = csv.DictReader(io.StringIO(text_of(result, "labels.csv")))
    assert line["usd_per_correct"] == ("" if exact is None else f"{exact:.9f}")


def test_a_real_pdflatex_compiles_the_latex(
    audited: ExperimentResult, compile_latex: Callable[[str], str]
) -> None:
    log = compile_latex(PREAMBLE + text_of(audited, "audit.tex") + r"\end{document}")
    assert "Overfull" not in log


def test_a_report_with_only_audits_has_no_score_tables(audited: ExperimentResult, tmp_path: Path) -> None:
    names = [file.name for file in write_report(audited, tmp_path)]
    assert {"audit.tex", "audit.md", "audit.csv"} <= set(names)
    assert not any(name.startswith(("table", "scores")) for name in names)


@pytest.mark.usefixtures("sketched_figures")
def test_outdated_tables_of_an_earlier_run_are_removed(
    audited: ExperimentResult, small_result: ExperimentResult, tmp_path: Path
) -> None:
    write_report(small_result.model_copy(update={"audits": audited.audits}), tmp_path)
    assert (tmp_path / "audit.md").is_file()
    (tmp_path / "audit-labels-plain.csv").write_text("answers")
    write_report(small_result, tmp_path)
    assert not (tmp_path / "audit.md").exists()
    assert (tmp_path / "audit-labels-plain.csv").is_file()
    write_report(audited, tmp_path)
    assert not (tmp_path / "table.md").exists()


def test_published_audits_are_read_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "table3.csv"
    file.write_text(ROWS, encoding="utf-8")
    names = {"same": "human 1", "different": "human 0"}, {"0": "ours 0", "1": "ours 1"}
    found = read_published_audit(file, *names)
    assert found.cells == PUBLISHED.cells | {"different": {"0": "95", "1": "0"}}
    with refused("columns.1", "'ours 2'", "'ours 1'"):
        read_published_audit(file, names[0], {"1": "ours 2"})
