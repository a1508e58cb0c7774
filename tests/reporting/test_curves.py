"""Scores against an amount: which points, where, and how they are drawn.

Intervals are worked out with a table of Student's t: 4.303 for two degrees of freedom.
"""

import csv
import io
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer

from synthbench.reporting.figures.curves import curves
from synthbench.reporting.figures.style import figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
ALONG_SIZE = {"curves": {"axis": "gold_size"}}


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with figure_style():
        yield


@pytest.fixture
def sizes(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    """Two encoders at three sizes that are named in no order."""
    scores = {"1000": (0.60, 0.61, 0.62), "250": (0.50, 0.51, 0.52), "4000": (0.70, 0.71, 0.72)}
    return make_result(
        *(
            make_runs(name, {"STSb": tuple(one + more for one in values)}, gold_size=size)
            for size, values in scores.items()
            for name, more in (("bi-encoder", 0.0), ("cross-encoder", 0.1))
        ),
        figures=ALONG_SIZE,
    )


def points(result: ExperimentResult) -> dict[tuple[str, str], list[tuple[float, float]]]:
    found = curves(Analysis(result))
    assert found is not None
    return {
        (title, line.label): [(point.x, round(point.cell.mean, 6)) for point in line.points]
        for title, lines in found.panels
        for line in lines
    }


def with_records(runs: tuple[RunResult, ...], **parts: int) -> tuple[RunResult, ...]:
    data = tuple(
        DatasetSummary(part=part, kind="scored_pair", num_records=number, content_hash=part, stage="s")
        for part, number in parts.items()
    )
    return tuple(run.model_copy(update={"datasets": data}) for run in runs)


def test_each_variant_has_a_line_from_the_smallest_to_the_largest_amount(sizes: ExperimentResult) -> None:
    assert points(sizes) == {
        ("STSb", "bi-encoder"): [(250, 51), (1000, 61), (4000, 71)],
        ("STSb", "cross-encoder"): [(250, 61), (1000, 71), (4000, 81)],
    }


def test_the_table_may_go_across_the_same_or_another_axis(
    sizes: ExperimentResult, make_runs: MakeRuns, make_result: MakeResult
) -> None:
    across = sizes.model_copy(update={"table": {"across": ["gold_size"], "figures": ALONG_SIZE}})
    assert points(across) == points(sizes)

    rows = [
        make_runs("gold", {task: (score,)}, gold_size=size, data_set=data_set)
        for data_set, task in (("mrpc", "MRPC"), ("stsb", "STSb"))
        for size, score in (("5", 0.5), ("6", 0.6))
    ]
    result = make_result(*rows, across="data_set", figures=ALONG_SIZE)
    assert points(result) == {("MRPC", "gold"): [(5, 50), (6, 60)], ("STSb", "gold"): [(5, 50), (6, 60)]}


def test_other_axes_give_separate_lines(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        make_runs("gold", {"A": (0.5,)}, base=base, gold_size=size)
        for base in ("small", "large")
        for size in ("5", "6")
    ]
    assert list(points(make_result(*rows, figures=ALONG_SIZE))) == [
        ("A", "gold (small)"),
        ("A", "gold (large)"),
    ]


def test_the_amount_may_be_the_number_of_records_with_0_without_data(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [
        with_records(make_runs("gold-only", {"A": (0.5,)}), gold=100),
        with_records(make_runs("bm25", {"A": (0.6,)}), gold=100, silver=3964),
        with_records(make_runs("kde", {"A": (0.7,)}), gold=100, silver=230364),
    ]

    found = points(make_result(*rows, figures={"curves": {"records": ["silver"]}}))

    assert found == {("A", "gold-only"): [(0, 50)], ("A", "bm25"): [(3964, 60)], ("A", "kde"): [(230364, 70)]}


def test_each_column_counts_its_own_records(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        with_records(make_runs("bm25", {task: (0.5,)}, data_set=task), silver=number)
        for task, number in (("A", 10), ("B", 20))
    ]
    result = make_result(
        *rows,
        across="data_set",
        averages={"both": ["A", "B"]},
        figures={"curves": {"records": ["silver"]}},
    )
    assert points(result) == {("A", "bm25"): [(10, 50)], ("B", "bm25"): [(20, 50)]}


def test_a_missing_score_has_no_point_and_without_scores_there_is_no_figure(sizes: ExperimentResult) -> None:
    runs = tuple(run for run in sizes.runs if run.axes["gold_size"] != "1000" or run.variant == "bi-encoder")
    partial = sizes.model_copy(update={"runs": runs})
    assert points(partial)["STSb", "cross-encoder"] == [(250, 61), (4000, 81)]

    assert curves(Analysis(sizes.model_copy(update={"runs": ()}))) is None
    assert curves(Analysis(sizes.model_copy(update={"table": {}}))) is None

    without_axis = tuple(run.model_copy(update={"axes": {}}) for run in sizes.runs[:3])
    assert curves(Analysis(sizes.model_copy(update={"runs": without_axis}))) is None


def test_intervals_equal_values_worked_out_by_hand(sizes: ExperimentResult) -> None:
    found = curves(Analysis(sizes))
    assert found is not None
    first = next(csv.DictReader(io.StringIO(csv_text(found.section.csv))))
    # sd 1 over three seeds: 4.303 / sqrt(3) = 2.484.
    assert [first[name] for name in ("panel", "line", "x", "sd", "n_seeds")] == [
        "STSb", "bi-encoder", "250", "1.000000", "3",
    ]  # fmt: skip
    assert [float(first[name]) for name in ("mean", "low", "high")] == pytest.approx(
        [51, 51 - 2.484, 51 + 2.484], abs=1e-3
    )


def test_lines_differ_in_marker_and_dashes_and_ceilings_are_diamonds(sizes: ExperimentResult) -> None:
    with_ceiling = sizes.model_copy(update={"table": {"ceiling": ["cross-encoder"], "figures": ALONG_SIZE}})
    for result, last in ((sizes, ("s", "--")), (with_ceiling, ("D", "--"))):
        found = curves(Analysis(result))
        assert found is not None
        (panel, legend) = found.draw().axes
        handles = legend.get_legend().legend_handles  # type: ignore[union-attr]
        looks = [(one.get_marker(), one.get_linestyle()) for one in handles]  # type: ignore[union-attr]
        assert looks == [("o", "-"), last]
        assert len([one for one in panel.containers if isinstance(one, ErrorbarContainer)]) == 6


@pytest.mark.parametrize(
    ("amounts", "scale"),
    [(("100", "900"), "linear"), (("100", "1001"), "log"), (("0", "100", "1001"), "symlog")],
)
def test_an_axis_longer_than_a_decade_is_logarithmic(
    make_runs: MakeRuns, make_result: MakeResult, amounts: tuple[str, ...], scale: str
) -> None:
    found = curves(
        Analysis(
            make_result(
                *(make_runs("one", {"A": (0.5,)}, gold_size=each) for each in amounts), figures=ALONG_SIZE
            )
        )
    )
    assert found is not None
    panel = found.draw().axes[0]
    assert panel.get_xscale() == scale
    assert [label.get_text() for label in panel.get_xticklabels()][-1] == f"{int(amounts[-1]):,}"
    low, high = panel.get_xlim()
    assert low < float(amounts[0]) < float(amounts[-1]) < high


def test_labels_of_close_amounts_do_not_overlap(make_runs: MakeRuns, make_result: MakeResult) -> None:
    amounts = ("1000", "1010", "1100", "2000")
    found = curves(
        Analysis(
            make_result(
                *(make_runs("one", {"A": (0.5,)}, gold_size=each) for each in amounts), figures=ALONG_SIZE
            )
        )
    )
    assert found is not None
    figure = found.draw()
    figure.draw_without_rendering()
    labels = [label for label in figure.axes[0].get_xticklabels() if label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    assert labels[-1].get_text() == "2,000"
    assert all(box.count_overlaps(boxes[index + 1 :]) == 0 for index, box in enumerate(boxes))


def test_many_panels_fit_into_the_figure(make_runs: MakeRuns, make_result: MakeResult) -> None:
    scores = {f"a-test-set-with-a-long-name-{number}": (0.5, 0.6) for number in range(5)}
    rows = [
        make_runs(f"variant-{number}", scores, gold_size=size) for number in range(9) for size in ("5", "6")
    ]
    found = curves(Analysis(make_result(*rows, figures=ALONG_SIZE, caption="WIDE WORDS " * 20)))
    assert found is not None
    figure = found.draw()
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    legend = figure.axes[-1].get_legend()
    assert legend is not None
    drawn = [panel.title for panel in figure.axes[:-1]] + list(figure.texts) + [legend]
    boxes = np.asarray([one.get_window_extent().extents for one in drawn])
    assert boxes[:, :2].min() >= 0
    assert boxes[:, 2].max() <= width
    assert boxes[:, 3].max() <= height
    assert legend.get_window_extent().count_overlaps([text.get_window_extent() for text in figure.texts]) == 0


def drawn_points(panel: Axes) -> np.ndarray:
    """Return the x positions of a panel's markers, in points from the figure's left edge, by line."""
    markers = [one.lines[0] for one in panel.containers if isinstance(one, ErrorbarContainer)]
    return np.asarray(
        [marker.get_transform().transform(np.asarray(marker.get_xydata()))[0] for marker in markers if marker]
    ) * (72 / panel.figure.dpi)


def test_points_at_the_same_amount_are_shifted_within_the_frame(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    records = {"random": 0, "bm25": 3964, "kde": 230364, "jaccard": 0, "gold-only": 0}
    rows = [with_records(make_runs(name, {"A": (0.5,)}), silver=number) for name, number in records.items()]
    found = curves(Analysis(make_result(*rows, figures={"curves": {"records": ["silver"]}})))
    assert found is not None
    figure = found.draw()
    figure.draw_without_rendering()
    panel = figure.axes[0]
    amounts = panel.transData.transform([(number, 0) for number in records.values()])[:, 0] * 72 / figure.dpi
    assert drawn_points(panel)[:, 0] - amounts == pytest.approx([-2, 0, 0, 0, 2], rel=0.1)
    frame = panel.get_window_extent().extents * 72 / figure.dpi
    assert drawn_points(panel)[:, 0].min() > frame[0] + 2
    assert drawn_points(panel)[:, 0].max() < frame[2] - 2
    labels = [label.get_text() for label in panel.get_xticklabels()]
    assert labels == ["0", "3,964", "230k"]


def test_many_lines_at_an_amount_stay_within_the_frame(make_runs: MakeRuns, make_result: MakeResult) -> None:
    scores = {f"task-{number}": (0.5, 0.6) for number in range(5)}
    rows = [
        make_runs(f"variant-{number}", scores, gold_size=size) for number in range(12) for size in ("5", "6")
    ]
    found = curves(Analysis(make_result(*rows, figures=ALONG_SIZE)))
    assert found is not None
    figure = found.draw()
    figure.draw_without_rendering()
    for panel in figure.axes[:-1]:
        frame = panel.get_window_extent().extents * 72 / figure.dpi
        assert drawn_points(panel)[:, 0].min() > frame[0] + 2
        assert drawn_points(panel)[:, 0].max() < frame[2] - 2
