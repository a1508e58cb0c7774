"""The page that lists all reports of a home."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded

from synthbench.reporting.files import place_index
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


@pytest.fixture
def results(make_runs: MakeRuns, make_result: MakeResult) -> tuple[ExperimentResult, ...]:
    first = make_result(make_runs("gold", {"STSb": (0.7, 0.71)}), tasks=("STSb",))
    part = first.model_copy(update={"overrides": ("--seeds 0",), "failures": ("bm25 is not finished",)})
    return first, part


def test_each_report_is_listed_with_its_answer_and_an_existing_page(
    results: tuple[ExperimentResult, ...], tmp_path: Path
) -> None:
    index, number = place_index(results, tmp_path)
    assert number == 2
    text = index.read_text(encoding="utf-8")
    for address in ("example/report.html", "example/seeds-0/report.html"):
        assert f'<a href="{address}">' in text
        assert (tmp_path / address).is_file()
    assert text.count("gold scores highest on STSb: 70.50") == 2
    assert text.count("<small>unfinished</small>") == 1


def test_a_current_report_is_not_written_again(results: tuple[ExperimentResult, ...], tmp_path: Path) -> None:
    place_index(results[:1], tmp_path)
    page = tmp_path / "example" / "report.html"
    written = page.stat().st_mtime_ns
    place_index(results[:1], tmp_path)
    assert page.stat().st_mtime_ns == written
    page.unlink()
    place_index(results[:1], tmp_path)
    assert page.is_file()


def test_a_file_and_all_reports_exclude_each_other(project: Project) -> None:
    both, none = project.call("report", "small.yaml", "--all"), project.call("report")
    assert (both.code, none.code) == (2, 2)
    worded(both.errors[0], "--all", "small.yaml")
    worded(none.errors[0], "--all")
