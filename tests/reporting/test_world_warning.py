"""The warning that scores of the sandbox are no evidence stands on every first screen."""

from collections.abc import Callable
from pathlib import Path

import pytest

from synthbench.cli.last_screen import print_last_screen
from synthbench.reporting.files import text_files
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.render.html.notebook import html_cell
from synthbench.reporting.render.html.page import html_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult, Ingredient, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
WARNING = "In the sandbox: generated texts, toy models. The scores are no evidence about real ones."


@pytest.fixture
def real(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    return make_result(make_runs("gold", {"A": (0.5, 0.6)}), make_runs("silver", {"A": (0.5, 0.7)}))


def of_sandbox(result: ExperimentResult) -> ExperimentResult:
    return result.model_copy(update={"revisions": (("sandbox", "2"), ("sandbox/encoder", "abc"))})


def asking_about(result: ExperimentResult, source: str) -> ExperimentResult:
    """The result, whose data the sandbox's LLM wrote from this source."""
    read = Ingredient(role="sentences", kind="source", name="s", stage="r", revisions=((source, "1"),))
    data = DatasetSummary(
        part="p",
        kind="triplet",
        num_records=9,
        llm="sandbox/llm",
        content_hash="h",
        stage="s",
        made_of=(read,),
    )
    runs = tuple(run.model_copy(update={"datasets": (data,)}) for run in result.runs)
    return result.model_copy(update={"runs": runs, "revisions": ((source, "1"),)})


def test_it_names_what_is_of_the_sandbox(real: ExperimentResult) -> None:
    assert list(world_warning(real)) == []
    assert list(world_warning(of_sandbox(real))) == [WARNING]


def test_the_sandboxs_llm_on_real_texts_proves_the_plumbing_only(real: ExperimentResult) -> None:
    (own,) = world_warning(asking_about(real, "sandbox"))
    # The file may hold texts that the sandbox wrote, as a new project's do.
    (foreign,) = world_warning(asking_about(real, "tickets.csv"))
    understood = (
        "understands only texts that the sandbox wrote: on others, these rows prove the plumbing only."
    )
    assert "a simulated LLM" in own and "plumbing" not in own
    assert "a simulated LLM" in foreign and foreign.endswith(understood)


def test_an_llm_whose_name_only_resembles_the_sandboxs_is_real(real: ExperimentResult) -> None:
    runs = asking_about(real, "tickets.csv").runs
    asked = tuple(data.model_copy(update={"llm": "my-sandbox/llm"}) for data in runs[0].datasets)
    changed = tuple(run.model_copy(update={"datasets": asked}) for run in runs)
    assert list(world_warning(real.model_copy(update={"runs": changed}))) == []


def test_it_is_on_the_first_screen_of_page_and_terminal_and_below_the_table(
    real: ExperimentResult, capsys: pytest.CaptureFixture[str]
) -> None:
    result = of_sandbox(real)
    page = html_report(Report(result))
    assert page.index(WARNING) < page.index("<nav")
    texts = dict(text_files(Report(result)))
    assert WARNING in texts["table.md"]
    assert WARNING in texts["table.tex"] + texts["notes.tex"]
    assert WARNING in html_cell(Report(result))
    print_last_screen(result, Path("reports"), {}, "next")
    assert f"warning: {WARNING}" in capsys.readouterr().out
    print_last_screen(real, Path("reports"), {}, "next")
    assert "warning: " not in capsys.readouterr().out


def test_the_terminal_says_in_one_line_whether_comparisons_were_declared(
    real: ExperimentResult, capsys: pytest.CaptureFixture[str]
) -> None:
    print_last_screen(real, Path("reports"), {}, "next")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("registration: ")]
    assert line == "registration: Not registered: what was declared before the first score is unknown."
