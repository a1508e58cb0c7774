"""Tables on a terminal: on 80 characters, up to 5 columns fit whole."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.render.terminal import Notes, Shown, notes_of, terminal_report, terminal_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
MakeTable = Callable[[int, int], ExperimentResult]
SETS = (
    "STS-captions", "STS-headlines", "held-out-science", "UKP-cross-topic", "Quora", "MRPC", "STS12", "STS13",
    "STS14", "STS15", "STS16",
)  # fmt: skip


@pytest.fixture
def made(make_runs: MakeRuns, make_result: MakeResult) -> MakeTable:
    """Return a result with some rows and columns (the last an average), long names and a long caption."""

    def make(rows: int, columns: int) -> ExperimentResult:
        tasks = SETS[: columns - 1]
        names = ["dino-no-debiasing", *(f"augsbert-{number}" for number in range(2, rows)), "cross-encoder"]
        runs = [make_runs(name, dict.fromkeys(tasks, (0.6, 0.61, 0.65))) for name in names]
        return make_result(
            *runs,
            tasks=tasks,
            averages={"Average": list(tasks)},
            ceiling=["cross-encoder"],
            caption="What a caption of some length says " * 5,
        )

    return make


def shown(result: ExperimentResult, width: int = 80, *, fits: bool = True) -> tuple[list[str], Shown]:
    console = Console(width=width, file=io.StringIO())
    found = terminal_table(build_table(Analysis(result)), console, fits=fits)
    console.width = max(width, found.width)
    console.print(found.renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines(), found


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (7, 4), (14, 5), (14, 2)])
def test_a_table_of_up_to_5_columns_fits_completely(made: MakeTable, rows: int, columns: int) -> None:
    lines, found = shown(made(rows, columns))
    assert max(map(len, lines)) <= 80
    assert found.left_out == ()
    assert sum("62.00" in line for line in lines) == rows
    assert all(line.count("±2.65") + line.count("± 2.65") == columns for line in lines if "62.00" in line)


def test_deviations_then_columns_are_left_out_and_named_and_no_row_is(made: MakeTable) -> None:
    lines, found = shown(made(5, 7))
    assert found.left_out == ("±",)
    assert all(line.count("62.00") == 7 for line in lines if "62.00" in line)
    lines, found = shown(made(30, 12))
    assert max(map(len, lines)) <= 80
    scores = [line.count("62.00") for line in lines if "62.00" in line]
    assert len(scores) == 30
    assert found.left_out == ("±", f"{12 - scores[0]} of 12 columns")


def test_averages_are_left_out_last(made: MakeTable) -> None:
    lines, _ = shown(made(3, 12), width=40)
    assert any("Average" in line for line in lines)


def test_column_titles_are_wrapped_at_hyphens(made: MakeTable) -> None:
    lines, _ = shown(made(14, 5))
    header = lines[lines.index(next(line for line in lines if line.startswith("───"))) - 1]
    assert header.split() == ["variant", "STS-captions", "headlines", "science", "topic", "Average"]


def test_without_a_terminal_the_whole_table_is_printed_however_wide(made: MakeTable) -> None:
    lines, found = shown(made(30, 12), fits=False)
    assert found.left_out == ()
    assert found.width > 80
    assert sum(line.count("62.00 ± 2.65") for line in lines) == 30 * 12


def test_notes_and_warnings_are_counted_separately(small_result: ExperimentResult) -> None:
    found = notes_of(Report(small_result))
    assert (found.number, found.file) == (4, "notes.md")
    # The cross-encoder has no SICK-R and so no average; STS14 was not found.
    assert found.first == ("2 cells without a score", "1 warning")


def test_a_result_without_scores_and_sections_prints_nothing(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    data = DatasetSummary(
        part="k", kind="scored_pair", num_records=0, score_counts=(0, 0), content_hash="h", stage="s"
    )
    (run,) = make_runs("a", {"A": (0.5,)})
    report = Report(make_result((run.model_copy(update={"scores": (), "datasets": (data,)}),)))
    console = Console(width=80, file=io.StringIO())
    assert terminal_report(report, console).width == 0
    assert notes_of(report) == Notes(0, "notes.md", ())


def test_failures_are_the_first_count(small_result: ExperimentResult) -> None:
    late = small_result.model_copy(update={"failures": ("a", "b"), "pending": ("c",)})
    assert notes_of(Report(late)).first == (
        "2 failures",
        "1 result pending",
        "2 cells without a score",
        "1 warning",
    )


def test_one_seed_and_nearly_constant_labels_are_warnings(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    data = DatasetSummary(
        part="x2",
        kind="scored_pair",
        method="dino",
        num_records=9,
        figures={"score_sd": 0.0},
        content_hash="hash",
        stage="stage",
    )
    rows = (make_runs(name, {"STSb": (0.6,)}) for name in ("a", "b"))
    flat = [tuple(run.model_copy(update={"datasets": (data,)}) for run in runs) for runs in rows]
    assert notes_of(Report(make_result(*flat, tasks=("STSb",)))).first == ("2 warnings",)
    whole = (make_runs(name, {"STSb": (0.6, 0.7)}) for name in ("a", "b"))
    assert notes_of(Report(make_result(*whole, tasks=("STSb",)))).first == ()
