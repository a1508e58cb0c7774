"""The figure of scores, checked through matplotlib's objects.

Intervals are worked out with a table of Student's t: 12.706 for one degree of freedom, 4.303 for two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from synthbench.reporting.figures.scores import scores_figure, scores_parts
from synthbench.reporting.figures.style import HIGHEST, figure_style
from synthbench.reporting.files import figures
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
LABELS = [
    "base: MiniLM",
    "gold",
    "augsbert_k",
    "cross-encoder †",
    "base: static",
    "gold",
    "augsbert_k",
]


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with figure_style():
        yield


@dataclass(frozen=True)
class Point:
    mean: float
    ends: tuple[float, float] | None
    marker: str
    colour: str
    is_hollow: bool


def points(panel: "Axes") -> dict[int, Point]:
    """The content of a panel, by line from the top."""
    found = {}
    for drawn in panel.containers:
        assert isinstance(drawn, ErrorbarContainer)
        marker, _, bars = drawn.lines
        assert marker is not None
        ((mean, height),) = np.asarray(marker.get_xydata()).tolist()
        ends = tuple(np.asarray(bars[0].get_segments()[0])[:, 0].tolist()) if bars else None
        is_hollow = marker.get_markerfacecolor() == "white"
        found[int(height)] = Point(mean, ends, str(marker.get_marker()), str(marker.get_color()), is_hollow)
    return found


def draw(result: ExperimentResult) -> "Figure":
    return scores_figure(build_table(Analysis(result)))


def dashed(panel: "Axes") -> list[tuple[list[float], list[float]]]:
    lines = [line for line in panel.lines if line.get_linestyle() == "--"]
    return [(np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()) for line in lines]


def labels(panel: "Axes") -> list[str]:
    return [label.get_text() for label in panel.get_yticklabels() if label.get_visible()]


def test_each_column_has_a_panel_in_table_order(small_result: ExperimentResult) -> None:
    figure = draw(small_result)

    assert [panel.get_title() for panel in figure.axes] == ["STSb", "SICK-R", "Average"]
    assert figure.get_suptitle() == "Gold & silver"


def test_lines_are_named_once_from_top_to_bottom_and_each_group_has_a_heading(
    small_result: ExperimentResult,
) -> None:
    first, *others = draw(small_result).axes

    assert labels(first) == LABELS
    assert list(first.get_yticks()) == list(range(len(LABELS)))
    bottom, top = first.get_ylim()
    assert bottom > top
    for panel in others:
        assert panel.get_ylim() == (bottom, top)
        assert not panel.yaxis.get_tick_params()["labelleft"]


def test_points_and_interval_ends_equal_values_worked_out_by_hand(small_result: ExperimentResult) -> None:
    shown = points(draw(small_result).axes[0])

    assert sorted(shown) == [1, 2, 3, 5, 6]
    assert shown[1].mean == pytest.approx(71.0)
    # Mean 71, standard deviation 1, three seeds: 4.303 x 1 / sqrt(3) = 2.484.
    assert shown[1].ends == pytest.approx((68.516, 73.484), abs=1e-3)
    # Mean 51, two seeds that differ by 2: 12.706 x 1.4142 / sqrt(2) = 12.706.
    assert shown[5].ends == pytest.approx((38.294, 63.706), abs=1e-3)
    # 88 with every seed.
    assert (shown[3].mean, shown[3].ends) == (pytest.approx(88.0), None)


def test_every_interval_is_within_its_panel(small_result: ExperimentResult) -> None:
    for panel in draw(small_result).axes:
        left, right = panel.get_xlim()
        intervals = [point.ends for point in points(panel).values() if point.ends is not None]
        assert len(intervals) >= 3
        assert all(left < low <= high < right for low, high in intervals)


def test_variants_have_distinct_markers_that_are_equal_in_all_groups(
    small_result: ExperimentResult,
) -> None:
    shown = points(draw(small_result).axes[0])

    looks = {height: (point.colour, point.marker) for height, point in shown.items()}
    assert (looks[1], looks[2]) == (looks[5], looks[6])
    for part in range(2):
        assert len({looks[height][part] for height in (1, 2, 3)}) == 3  # the ceiling is the third


def test_points_have_the_same_width_in_every_panel_and_the_axes_are_named(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"A": (0.50, 0.52), "B": (0.2, 0.8), "C": (0.97, 0.99)}
    figure = draw(make_result(make_runs("one", scores)))

    spans = [high - low for low, high in (panel.get_xlim() for panel in figure.axes)]
    assert spans == pytest.approx([spans[1]] * 3)
    for panel in figure.axes:
        ((_, point),) = points(panel).items()
        assert panel.get_xlim()[0] < point.mean < panel.get_xlim()[1]
        assert panel.get_xlabel() == "score × 100"


def test_a_figure_for_a_paper_has_neither_title_nor_notes(small_result: ExperimentResult) -> None:
    bare = small_result.model_copy(update={"table": {**small_result.table, "figures": {"caption": False}}})
    with figure_style():
        (with_both,), (without,) = (
            [figure for name, _, figure in figures(Report(result)) if name == "scores"]
            for result in (small_result, bare)
        )

    assert with_both.get_suptitle() == "Gold & silver"
    assert without.get_suptitle() == without.get_supxlabel() == ""
    assert without.get_figheight() < with_both.get_figheight()


def test_a_ceilings_mean_is_a_dashed_line_through_its_group(small_result: ExperimentResult) -> None:
    stsb, sick, _ = draw(small_result).axes

    ((across, along),) = dashed(stsb)
    assert across == pytest.approx([88.0, 88.0])
    assert along == [-0.5, 3.5]
    assert dashed(sick) == []


def test_a_ceiling_of_all_groups_is_drawn_through_all_of_them(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"A": (0.5, 0.6)}
    rows = [make_runs("gold", scores, base=base) for base in ("x", "y")]
    figure = draw(make_result(*rows, make_runs("best", {"A": (0.9, 0.9)}), ceiling=["best"]))

    (panel,) = figure.axes
    assert labels(panel) == ["base: x", "gold", "base: y", "gold", "every base", "best †"]
    assert dashed(panel)[0][1] == [-0.5, 5.5]


def test_a_single_score_is_a_hollow_point_without_interval(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    figure = draw(make_result(make_runs("once", {"A": (0.5,)}), make_runs("twice", {"A": (0.6, 0.7)})))

    once, twice = points(figure.axes[0]).values()
    assert (once.ends, once.is_hollow) == (None, True)
    assert twice.ends is not None
    assert not twice.is_hollow
    assert "Hollow: no interval, since there is one value." in figure.get_supxlabel().replace("\n", " ")


def test_scores_equal_for_all_seeds_are_a_hollow_point(make_runs: MakeRuns, make_result: MakeResult) -> None:
    figure = draw(make_result(make_runs("equal", {"A": (0.5, 0.5)}), make_runs("other", {"A": (0.6, 0.7)})))
    equal, _ = points(figure.axes[0]).values()
    assert (equal.ends, equal.is_hollow) == (None, True)
    hollow = "Hollow: no interval, since there is one value or all seeds gave the same."
    assert hollow in figure.get_supxlabel().replace("\n", " ")


def test_panels_do_not_extend_beyond_possible_scores(make_runs: MakeRuns, make_result: MakeResult) -> None:
    figure = draw(make_result(make_runs("wild", {"A": (0.2, 0.9)}), make_runs("other", {"A": (0.6, 0.7)})))
    low, high = figure.axes[0].get_xlim()
    assert -115 < low < -100
    assert 100 < high < 115


def test_a_text_replaces_a_missing_score(make_runs: MakeRuns, make_result: MakeResult) -> None:
    diverged = make_runs("diverged", {"A": (float("nan"), 0.1), "B": (0.1, 0.2)})
    figure = draw(make_result(diverged, make_runs("partial", {"A": (0.5, 0.6)})))

    first, second = figure.axes
    assert [(text.get_text(), text.get_position()[1]) for text in first.texts] == [("nan", 0)]
    assert [(text.get_text(), text.get_position()[1]) for text in second.texts] == [("–", 1)]
    assert sorted(points(first)) == [1]


def test_unusual_numbers_of_seeds_are_printed_at_the_point(small_result: ExperimentResult) -> None:
    stsb = draw(small_result).axes[0]

    assert [text.get_text() for text in stsb.texts] == ["[n=2]"]


@pytest.mark.parametrize(("number", "columns"), [(1, 1), (5, 5), (6, 3), (7, 4), (8, 4)])
def test_many_panels_are_arranged_in_several_lines_each_with_its_labels(
    number: int, columns: int, make_runs: MakeRuns, make_result: MakeResult
) -> None:
    figure = draw(make_result(make_runs("only", {f"task{index}": (0.5, 0.6) for index in range(number)})))

    assert len(figure.axes) == number
    named = [panel.yaxis.get_tick_params()["labelleft"] for panel in figure.axes]
    assert [index for index, is_named in enumerate(named) if is_named] == list(range(0, number, columns))
    assert 3.4 <= figure.get_figwidth() <= 6.9


def test_no_text_is_cut_off_or_overlaps_another(make_runs: MakeRuns, make_result: MakeResult) -> None:
    tasks = {f"{'ALongNameWithoutSpaces' * 2}{index}": (0.5, 0.61, 0.63) for index in range(7)}
    names = ("a_variant_with_" + "underscores_" * 4, "a-variant-" + "with-hyphens-" * 4, "WWW " * 12)
    rows = [
        make_runs(name, tasks, base=base) for base in ("MiniLM-with-two-layers", "B" * 60) for name in names
    ]
    figure = draw(make_result(*rows, averages={"Average": list(tasks)}, caption="WIDE WORDS " * 30))

    figure.draw_without_rendering()

    width, height = figure.get_size_inches() * figure.dpi
    drawn = [panel.title for panel in figure.axes]
    drawn += [label for panel in figure.axes for label in panel.get_yticklabels() if label.get_text()]
    drawn += list(figure.texts)
    boxes = [text.get_window_extent() for text in drawn if text.get_visible()]
    for box in boxes:
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height
    for index, box in enumerate(boxes):
        assert box.count_overlaps(boxes[index + 1 :]) == 0


def test_names_are_drawn_as_plain_text(make_runs: MakeRuns, make_result: MakeResult) -> None:
    figure = draw(make_result(make_runs("$x_1$ \\frac{", {"$": (0.5, 0.6)})))

    figure.draw_without_rendering()

    assert labels(figure.axes[0]) == ["$x_1$ \\frac{"]


def test_a_single_score_still_gives_an_axis_range(make_runs: MakeRuns, make_result: MakeResult) -> None:
    (panel,) = draw(make_result(make_runs("only", {"A": (0.5,)}))).axes

    assert panel.get_xlim() == pytest.approx((49.5, 50.5))


def test_a_long_or_wide_table_is_drawn_in_parts_no_higher_than_a_page(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    tasks = [f"task{index}" for index in range(12)]
    rows = [
        make_runs(f"row{number}", dict.fromkeys(tasks, (0.5, 0.6)), base=base)
        for base in ("one", "two", "three")
        for number in range(14)
    ]
    table = build_table(Analysis(make_result(*rows, caption="WIDE WORDS " * 20)))
    parts = list(scores_parts(table))
    cells = [(row.key, column.title) for part in parts for row in part.rows for column in part.columns]
    assert sorted(cells, key=str) == sorted(
        ((row.key, column.title) for row in table.rows for column in table.columns), key=str
    )
    with figure_style():
        assert all(scores_figure(part).get_figheight() <= HIGHEST for part in parts)


def test_a_table_that_fits_is_one_figure(small_result: ExperimentResult) -> None:
    table = build_table(Analysis(small_result))
    assert list(scores_parts(table)) == [table]
