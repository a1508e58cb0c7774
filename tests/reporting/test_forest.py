"""The forest plot of the primary differences: the same lines in terminal, page and figure."""

import io
import re
from collections.abc import Callable

import pytest
from matplotlib.text import Text
from rich.console import Console

from synthbench.reporting.figures.forest import forest_figure
from synthbench.reporting.figures.style import HIGHEST, WIDEST, figure_style
from synthbench.reporting.model.forest import Forest
from synthbench.reporting.render.html.page import html_report
from synthbench.reporting.render.terminal_forest import terminal_forest
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
GOLD = (0.700, 0.702, 0.698)
BETTER, SIMILAR = (0.750, 0.753, 0.749), (0.701, 0.699, 0.703)


@pytest.fixture
def report(make_runs: MakeRuns, make_result: MakeResult) -> Report:
    """Worked out by hand in the tests of the page's answer: bm25 is 5.07 +- .46 above gold on A by itself."""
    rows = [
        make_runs("gold", {"A": GOLD, "B": GOLD}),
        make_runs("bm25", {"A": BETTER, "B": SIMILAR}),
        make_runs("single", {"A": (0.8,), "B": (0.8,)}),
    ]
    return Report(make_result(*rows, compare_to="gold"))


def forest_of(report: Report) -> Forest:
    assert report.forest is not None
    return report.forest


def in_terminal(forest: Forest, width: int = 100) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    return [str(line) for line in terminal_forest(forest, console)]


def test_each_primary_difference_has_its_interval_and_its_star(report: Report) -> None:
    better, single, similar, _ = forest_of(report).lines
    assert (better.column, better.name, better.direction) == ("A", "bm25 − gold", 1)
    assert better.text.startswith("+5.07* (+")
    assert better.low < better.value < better.high
    assert (similar.column, similar.direction) == ("B", 0)
    assert "*" not in similar.text
    # One seed has a difference, but no test.
    assert (single.name, single.is_tested, single.text) == ("single − gold", False, "+10.00")


def test_all_formats_have_the_same_lines(report: Report) -> None:
    forest = forest_of(report)
    page = html_report(report)
    terminal = in_terminal(forest)
    with figure_style():
        figure = forest_figure(forest)
        drawn = [text.get_text() for text in figure.findobj(Text)]
    for each in forest.lines:
        assert f'<span class="value">{each.text}</span>' in page
        assert any(each.name in line and line.endswith(each.text) for line in terminal)
        assert each.text in drawn
        assert each.name in drawn
    assert page.count('class="mark bold') == sum(bool(each.direction) for each in forest.lines)


def test_a_terminals_lines_fit_its_width_and_mark_zero(report: Report) -> None:
    for width in (70, 100, 160):
        lines = in_terminal(forest_of(report), width)[1:]
        assert max(map(len, lines)) <= width
        (better,) = [line for line in lines if "+5.07*" in line]
        track = re.search(r"[│┼─●○ ]{12,}", better)
        assert track is not None
        # Significant: its interval does not touch 0.
        assert "┼" not in better
        assert track[0].index("│") < track[0].index("●")
        assert any("┼" in line or "│" in line for line in lines if "B" not in line)


def test_of_many_differences_the_significant_and_the_largest_are_plotted(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs(f"row{n}", {"A": tuple(each + n / 400 for each in GOLD)}) for n in range(60)]
    report = Report(make_result(*rows, compare_to="row0"))
    shown = forest_of(report).cut(12)
    assert [line.name for line in shown.lines] == [f"row{n} − row0" for n in range(48, 60)]
    assert shown.more == "47 smaller or not significant: see comparisons.csv."
    assert in_terminal(forest_of(report))[-1] == shown.more
    with figure_style():
        figure = forest_figure(forest_of(report))
    assert figure.get_figheight() <= HIGHEST
    assert figure.get_figwidth() <= WIDEST
    assert 30 < len(figure.axes[0].get_yticklabels()) < 60


def test_titles_of_columns_count_as_lines(make_runs: MakeRuns, make_result: MakeResult) -> None:
    tasks = [f"task{number}" for number in range(20)]
    rows = [make_runs(name, dict.fromkeys(tasks, GOLD)) for name in ("gold", "a" * 60, "b" * 60)]
    forest = forest_of(Report(make_result(*rows, compare_to="gold")))
    assert len(forest.labels) == 60
    assert len(forest.cut(12).labels) == 12
    with figure_style():
        assert forest_figure(forest).get_figheight() <= HIGHEST


def test_the_page_has_the_summary_if_its_plot_is_cut(make_runs: MakeRuns, make_result: MakeResult) -> None:
    """Six differences on each of three test sets, with their titles, are 21 lines."""
    rows = [
        make_runs(f"row{n}", {task: tuple(each + n / 50 for each in GOLD) for task in "ABC"})
        for n in range(7)
    ]
    page = html_report(Report(make_result(*rows, compare_to="row0")))
    assert "smaller or not significant" in page
    assert 'id="summary"' in page


def test_without_primary_comparisons_there_is_no_plot(make_runs: MakeRuns, make_result: MakeResult) -> None:
    assert Report(make_result(make_runs("gold", {"A": GOLD}))).forest is None
