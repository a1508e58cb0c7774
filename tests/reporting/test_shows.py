"""`table.shows`: a sentence on what each row shows, beside the table."""

import html
from collections.abc import Callable

from synthbench.reporting.files import text_files
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.render.html.page import html_report
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult

SHOWS = {"augsbert_k": "Whether <silver> pairs add to gold.", "gold": "What gold alone is worth."}
LISTED = """\

What each row shows:

- gold: What gold alone is worth.
- augsbert\\_k: Whether \\<silver\\> pairs add to gold.

Notes:

- """


def told(result: ExperimentResult, **table: object) -> ExperimentResult:
    return result.model_copy(update={"table": {**result.table, "shows": SHOWS, **table}})


def test_sentences_on_rows_are_below_the_table_in_row_order(small_result: ExperimentResult) -> None:
    result = told(small_result)
    assert LISTED in markdown_table(build_table(Analysis(result)))
    page = html_report(Report(result))
    assert "<h3>What each row shows</h3>" in page
    places = [page.index(f"<dd>{html.escape(SHOWS[name])}</dd>") for name in ("gold", "augsbert_k")]
    assert places == sorted(places)
    assert "What each row shows" not in html_report(Report(small_result))


def test_latex_prints_sentences_on_rows_among_the_notes_to_cite(small_result: ExperimentResult) -> None:
    files = dict(text_files(Report(told(small_result))))
    assert "gold: What gold alone is worth." in files["notes.tex"]
    assert "What gold alone is worth." not in files["table.tex"]


def test_missing_rows_have_no_sentence(small_result: ExperimentResult) -> None:
    runs = tuple(run for run in small_result.runs if run.variant == "gold")
    table = build_table(Analysis(told(small_result).model_copy(update={"runs": runs})))
    assert table.shows == (("gold", SHOWS["gold"]),)


def test_a_result_without_sentences_is_unchanged(make_result: Callable[..., ExperimentResult]) -> None:
    from synthbench.config.table_options import TableOptions

    assert "shows" not in TableOptions().model_dump(mode="json")
    assert TableOptions(shows=SHOWS).model_dump(mode="json")["shows"] == SHOWS
