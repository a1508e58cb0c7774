"""Intended and judged labels, drawn: what each cell says, how many panels, what is waited for."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from synthbench.auditing.confusion import confusion
from synthbench.auditing.report import Audit
from synthbench.config.published_tables import PublishedAudit
from synthbench.data.records import RecordKind
from synthbench.reporting.figures.confusion import confusions
from synthbench.reporting.figures.style import figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.report import Report
from synthbench.reporting.results import AuditResult, ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGED = [("0", "different")] * 19 + [("0", "same")] + [("1", "same")] * 5 + [("1", "different")] * 5
PAPER = PublishedAudit(source="A & B 2021", cells={"same": {"1": "47"}, "different": {"0": "95"}})


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with figure_style():
        yield


def audit(*rows: str, labels: Sequence[tuple[str, str]] = JUDGED, paper: bool = False) -> AuditResult:
    """An audit of x2: 20 pairs were intended as 0, 19 are judged so; 10 as 1, of which half are."""
    columns = sorted({intended for intended, _ in labels})
    found = Audit(
        kind=RecordKind.SCORED_PAIR,
        judge="anna",
        num_records=40,
        num_items=len(labels),
        num_failures=0,
        failures={},
        confusion=confusion(labels, ["different", "same"], columns),
    )
    return AuditResult(
        name="labels",
        part="x2",
        rows=rows,
        stage="a",
        num_items=30,
        audit=found,
        published=PAPER if paper else None,
    )


def result(*audits: AuditResult) -> ExperimentResult:
    return ExperimentResult(
        experiment="table3", identity="i", description="Who is right?", runs=(), audits=audits
    )


def drawn(of: ExperimentResult) -> "Figure":
    found = confusions(Analysis(of))
    assert found is not None
    return found.draw()


def test_a_cell_has_percent_interval_and_the_papers_percent_and_darkens_with_it() -> None:
    figure = drawn(result(audit("dino", "dino_2", paper=True)))
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    # Wilson's interval of 19 of 20 by hand: (1.04604 ± 0.13545) / 1.19208.
    assert texts == [
        *("95.0", "76 to 99\npaper 95"),
        *("50.0", "24 to 76"),
        *("5.0", "1 to 24"),
        *("50.0", "24 to 76\npaper 47"),
    ]
    (mesh,) = [one for one in axes.collections if isinstance(one, QuadMesh)]
    assert np.asarray(mesh.get_array()) == pytest.approx(np.asarray([[95, 50], [5, 50]]))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0\nn = 20", "1\nn = 10"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["different", "same"]
    assert axes.get_title(loc="right") == "labels of x2 (dino, dino_2)"
    assert {text.get_color() for text in axes.texts[:2]} == {"white"}
    assert {text.get_color() for text in axes.texts[2:]} == {"black"}


def test_each_judged_audit_has_a_panel_and_others_a_note() -> None:
    waiting = AuditResult(name="labels", part="x2", rows=("plain",), stage="b", num_items=400)
    figure = drawn(result(audit("dino"), waiting, audit("other")))
    assert [axes.get_title(loc="right") for axes in figure.axes] == [
        "labels of x2 (dino)",
        "labels of x2 (other)",
    ]
    notes = " ".join(" ".join(text.get_text().split()) for text in figure.texts)
    assert "labels of x2 (plain): 400 items wait for judgement." in notes
    assert "Judged by: anna." in notes
    assert notes.startswith("Who is right: intended and judged labels")


def test_without_a_judgement_there_is_no_figure() -> None:
    waiting = AuditResult(name="labels", part="x2", rows=("plain",), stage="b", num_items=400)
    assert confusions(Analysis(result(waiting))) is None
    assert Report(result(waiting)).figures == ()
    assert [each.name for each in Report(result(audit("dino"))).figures] == ["confusion"]


def test_eight_scores_and_long_names_stay_within_the_width_of_a_paper() -> None:
    labels = [(f"0.{number}25", "same") for number in range(8)]
    figure = drawn(result(audit("a-row-with-a-very-long-name " * 6, labels=labels), audit("b")))
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    assert width <= 6.9 * figure.dpi
    for axes in figure.axes:
        titles = [axes.title, axes._right_title, *axes.get_xticklabels(), *axes.get_yticklabels()]  # type: ignore[attr-defined]
        boxes = np.asarray([one.get_window_extent().extents for one in titles if one.get_text()])
        assert boxes[:, :2].min() >= 0
        assert boxes[:, 2].max() <= width
        assert boxes[:, 3].max() <= height
