"""Tables of the data's costs: a line per stage, the sum, and a paper's costs, in every format."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_texts import PREAMBLE, text_of
from rich.console import Console

from synthbench.base.errors import UserError
from synthbench.config.published_tables import PublishedValue, chosen_costs, read_published
from synthbench.config.table_options import PublishedCosts
from synthbench.reporting.files import place_report, write_report
from synthbench.reporting.render.terminal import terminal_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import CostResult, ExperimentResult

MakeResult = Callable[..., ExperimentResult]
FILE = Path(__file__).parents[2] / "reports" / "published" / "syncse_table13.csv"
COSTS = {
    "file": "syncse_table13.csv",
    "row": "cost (% per sentence)",
    "columns": {
        "writer": ["Unlabeled Sentence"],
        "labeller": ["Positive Label", "Hard Negative Label"],
        "all": ["All"],
    },
}


def cost(method: str, num_records: int, usd: float, **more: Any) -> CostResult:
    """Two prompt tokens per completion token."""
    fields = {"part": "triplets", "rows": ("plain",), "llm": "an-llm", "num_requests": 10, "stage": method}
    tokens = {"prompt_tokens": 2_000, "completion_tokens": 1_000}
    return CostResult(method=method, num_records=num_records, usd=usd, **{**fields, **tokens, **more})


@pytest.fixture
def result(make_result: MakeResult) -> ExperimentResult:
    """200 sentences for 0.02 and 100 triplets for 0.14 US dollars; no scores."""
    made = make_result(costs=COSTS)
    costs = (cost("writer", 200, 0.02), cost("labeller", 100, 0.14))
    return made.model_copy(update={"costs": costs, "published": published(), "description": "An example"})


def published() -> tuple[PublishedValue, ...]:
    return chosen_costs(PublishedCosts.model_validate(COSTS), read_published(FILE))


def lines(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]


def test_each_stage_has_a_line_and_each_part_a_sum(result: ExperimentResult) -> None:
    header, _, *body = lines(text_of(result, "costs.md"))
    assert header[2:] == [
        *("records", "requests", "tokens in", "tokens out", "US dollars", "per record", "published"),
    ]
    counts = ["10", "2,000", "1,000"]
    assert body == [
        ["writer", "triplets (plain)", "200", *counts, "0.0200", "0.000100", "0.00007"],
        ["labeller", "triplets (plain)", "100", *counts, "0.1400", "0.001400", "0.00143 (0.00067 + 0.00076)"],
        ["all", "triplets (plain)", "100", "20", "4,000", "2,000", "0.1600", "0.001600", "0.0015"],
    ]


def test_notes_are_below_the_table(result: ExperimentResult) -> None:
    listed = {"in_doubt_usd": 0.5, "price_list": "2026-11-09 (genai-prices 0.2.3)"}
    doubtful = (cost("writer", 200, 0.02, **listed), cost("other", 9, 0.0, is_priced=False))
    made = result.model_copy(update={"costs": doubtful})
    text = text_of(made, "costs.md") + text_of(made, "notes.md")
    for note in (
        "In doubt, since requests were cut off and may have been billed: 0.5000 more at most.",
        "– No price is known",
        "Prices of an-llm: 2026-11-09 (genai-prices 0.2.3).",
        "Published, US dollars per sentence: Zhang, Lan",
        "An example",
    ):
        assert note in text
    assert [line[-3:] for line in lines(text)[3:4]] == [["–", "–", "–"]]


def test_notes_without_room_below_a_papers_table_are_among_the_notes_to_cite(
    result: ExperimentResult,
) -> None:
    long = result.model_copy(update={"runs": (), "description": "Too long. " * 200})
    files = {name: text_of(long, name) for name in ("costs.md", "costs.tex", "notes.tex")}
    below = [line.removeprefix("- ") for line in files["costs.md"].splitlines() if line.startswith("- ")]
    assert below[0].startswith("Too long.")
    for note in below:
        assert (note in files["costs.tex"]) != (note in files["notes.tex"]), note
    assert below[0].strip() in files["notes.tex"]


def test_a_stage_shared_by_two_parts_counts_once_in_the_sums_by_llm(result: ExperimentResult) -> None:
    """`small` wrote once for both rows: 0.02 and 0.5 in doubt, not twice that; `large` judged one of them."""
    written = {"llm": "small", "stage": "w", "in_doubt_usd": 0.5, "cached_tokens": 7}
    costs = (
        cost("writer", 200, 0.02, rows=("raw",), **written),
        cost("writer", 200, 0.02, rows=("judged",), **written),
        cost("judge", 100, 0.1, rows=("judged",), llm="large", stage="j"),
    )
    changed = result.model_copy(update={"costs": costs})
    text = text_of(changed, "costs.md")
    notes = text + text_of(changed, "notes.md")
    assert "US dollars by LLM: small 0.0200, large 0.1000; in all 0.1200." in notes
    assert "small: 7 tokens in that the service had cached." in notes
    assert "may have been billed: 0.5000 more at most." in notes
    assert "counts once in sums" in notes
    assert [line[:2] for line in lines(text)][2:] == [
        ["writer", "triplets (raw), small"],
        ["writer", "triplets (judged), small"],
        ["judge", "triplets (judged), large"],
        ["all", "triplets (judged), small and large"],
    ]


def test_a_sum_with_an_unknown_price_is_unknown(result: ExperimentResult) -> None:
    costs = (cost("writer", 200, 0.0, is_priced=False), cost("labeller", 100, 0.14))
    *_, together = lines(text_of(result.model_copy(update={"costs": costs}), "costs.md"))
    assert together[6:8] == ["–", "–"]


def test_an_llm_without_a_price_costs_an_unknown_amount(result: ExperimentResult) -> None:
    small = cost("writer", 200, 0.0, llm="small", is_priced=False)
    costs = (small, cost("labeller", 100, 1.5, llm="large"))
    found = result.model_copy(update={"costs": costs})
    notes = text_of(found, "costs.md") + text_of(found, "notes.md")
    assert "US dollars by LLM: small –, large 1.5000; of the priced 1.5000." in notes
    unknown = (small, cost("labeller", 100, 0.0, llm="large", is_priced=False))
    found = result.model_copy(update={"costs": unknown})
    assert "by LLM:" not in text_of(found, "costs.md") + text_of(found, "notes.md")


def test_without_published_costs_there_is_no_column_for_them(make_result: MakeResult) -> None:
    made = make_result().model_copy(update={"costs": (cost("writer", 200, 0.02),)})
    header, _, *body = lines(text_of(made, "costs.md"))
    assert (header[-1], len(body)) == ("per record", 1)


def test_every_format_has_the_same_numbers(result: ExperimentResult) -> None:
    *_, together = csv.DictReader(io.StringIO(text_of(result, "costs.csv")))
    assert (together["data"], together["usd"], together["usd_per_record"]) == (
        "all",
        "0.160000000",
        "0.001600000",
    )
    assert (together["published_usd_per_sentence"], together["rows"]) == ("0.0015", "plain")
    assert "labeller & triplets (plain) & 100 & 10 & 2,000 & 1,000 & 0.1400 & 0.001400 &" in text_of(
        result, "costs.tex"
    )
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(terminal_report(Report(result), console).renderable)
    shown = console.export_text()
    assert "0.001600" in shown and "variant" not in shown


def test_incomplete_answers_are_counted_by_kind(
    result: ExperimentResult,
) -> None:
    counts = {"num_cut_off": 1, "num_empty": 2, "num_filtered": 3, "num_faulty": 4}
    costs = (cost("writer", 200, 0.02, **counts), cost("labeller", 100, 0.14, num_empty=5))
    rows = csv.DictReader(io.StringIO(text_of(result.model_copy(update={"costs": costs}), "costs.csv")))
    assert [[row[name] for name in counts] for row in rows] == [
        ["1", "2", "3", "4"],
        ["0", "5", "0", "0"],
        ["1", "7", "3", "4"],
    ]


def test_a_real_pdflatex_compiles_the_latex(
    result: ExperimentResult, compile_latex: Callable[[str], str]
) -> None:
    log = compile_latex(PREAMBLE + text_of(result, "costs.tex") + r"\end{document}")
    assert "Overfull" not in log


def test_an_experiment_that_only_makes_data_has_only_cost_tables(
    result: ExperimentResult, tmp_path: Path
) -> None:
    # Not the test's own folder: matplotlib keeps its settings there.
    folder = tmp_path / "out"
    folder.mkdir()
    place_report({"table.md": b"of an earlier run"}, folder)
    written = write_report(result, folder)
    assert {file.name for file in written} == {
        *("costs.tex", "costs.md", "costs.csv", "notes.md", "notes.tex", "report.html")
    }
    assert {file.name for file in folder.glob("[!.]*")} == {
        "costs.tex",
        "costs.md",
        "costs.csv",
        "notes.md",
        "notes.tex",
        "report.html",
    }


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"row": "cost"}, "row: no 'cost' in US dollars"),
        ({"columns": {"all": ["Al"]}}, "columns.all: no 'Al'; did you mean 'All'?"),
    ],
)
def test_a_missing_published_figure_is_named(changed: dict[str, Any], fault: str) -> None:
    options = PublishedCosts.model_validate({**COSTS, **changed})
    with pytest.raises(UserError) as raised:
        chosen_costs(options, read_published(FILE))
    assert raised.value.messages[0].startswith(fault)
