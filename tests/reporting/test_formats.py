import csv
import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from wording import refused

from synthbench.base.escaping import markdown_text
from synthbench.reporting.files import (
    make_report_folder,
    place_report,
    report_files,
    report_folder,
    text_files,
    write_report,
)
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.render.csv_files import csv_table, seeds_csv
from synthbench.reporting.render.latex import latex_table
from synthbench.reporting.render.latex_floats import FONTS, MACRO, MOST_LINES, ORIGIN
from synthbench.reporting.render.latex_text import escape
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.render.terminal import terminal_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

LATEX = (
    rf"""{{\small\setlength{{\tabcolsep}}{{4pt}}{FONTS}
"""
    r"""\global\setbox\synthbenchbox\hbox{%
\begin{tabular}{llS[table-format=2.1]@{\,}lS[table-format=2.1]@{\,}lS[table-format=2.1]@{\,}l}
\toprule
base & variant & \multicolumn{2}{c}{STSb} & \multicolumn{2}{c}{SICK-R} & \multicolumn{2}{c}{Average} \\
\midrule
MiniLM & gold & 71.0 & {\scriptsize $\pm$ 1.0} & 62.0 & {\scriptsize $\pm$ 2.0} & """
)
LATEX_BOLD = r"""66.5 & {\scriptsize $\pm$ 1.5} \\
 & augsbert\_k & \bfseries 76.0 & {\scriptsize $\pm$ 1.0} & 63.0 & {\scriptsize $\pm$ 2.0} & 69.5 & """
LATEX_MIDDLE = r"""\cmidrule{2-8}
 & cross-encoder † & 88.0 & {\scriptsize $\pm$ 0.0} & {–} &  & {–} &  \\
\midrule
static & gold & 51.0 & {\scriptsize $\pm$ 1.4 {[}n=2{]}} & 42.0 & {\scriptsize $\pm$ 2.0} & """
LATEX_END = (
    r"""\end{tabular}
}}
\synthbenchfloat{table}{1.25\columnwidth}{\caption{Gold \& silver}\label{tab:example}}{%
Scores × 100: cosine\_spearman. Mean ± sample standard deviation over n = 3 seeds (0, 1, 2)."""
    r""" {[}n=...{]}: another number of seeds. † Ceiling, compared with no other row: cross-encoder."""
    r""" – Not scored. \\
Primary: 2 comparisons with gold on STSb, over seeds, on these test items; Welch's t-test; adjusted"""
    r""" for both together (single-step max-t). Bold: significantly above a baseline in a primary"""
    r""" comparison (5 \%). \\
Not registered: what was declared before the first score is unknown.}
"""
)

MARKDOWN = """**Gold \\& silver**

| base | variant | STSb | SICK-R | Average |
| --- | --- | ---: | ---: | ---: |
| MiniLM | gold | 71.0 ± 1.0 | 62.0 ± 2.0 | 66.5 ± 1.5 |
| MiniLM | augsbert\\_k | **76.0** ± 1.0 | 63.0 ± 2.0 | 69.5 ± 1.5 |
| MiniLM | cross-encoder † | 88.0 ± 0.0 | – | – |
| static | gold | 51.0 ± 1.4 \\[n=2\\] | 42.0 ± 2.0 | 46.0 ± 1.4 \\[n=2\\] |
| static | augsbert\\_k | 52.0 ± 1.0 | 42.0 ± 1.0 | 47.0 ± 1.0 |

- Scores × 100: cosine\\_spearman. Mean ± sample standard deviation over n = 3 seeds (0, 1, 2). \
\\[n=...\\]: another number of seeds. † Ceiling, compared with no other row: cross-encoder. – Not scored.
- Primary: 2 comparisons with gold on STSb, over seeds, on these test items; Welch's t-test; adjusted \
for both together (single-step max-t). Bold: significantly above a baseline in a primary comparison (5 %).
- Not registered: what was declared before the first score is unknown.

Further notes: [notes.md](notes.md).
"""
NOTES = """## Scores

- Each seed redraws: order of training.
- Average: mean of STSb, SICK-R per seed.
- Items scored: STSb 100, SICK-R 100.
- Not found, so not scored: STS14.
"""

# All that `escape` may write: commands, escaped signs, braced signs, math, and plain characters, either ASCII
# or in pdflatex's default fonts.
LATEX_TOKEN = re.compile(
    r"\\[a-zA-Z]+\{[^{}\\]*\}|\\[a-zA-Z]+\{\\[a-zA-Z]+\{[^{}\\]*\}\}|\\[`'^~=.\"uHvdcr]\{\\?[a-zA-Z]\}"
    r"|\\ensuremath\{\\[a-zA-Z]+\}|\\ensuremath\{-\}"
    r"|\\char34\{\}|\\[{}$&#%_]|\{[\[\]*]\}|\{\}"
    r"|(?![\\{}$&#%_~^<>|`\"\[\]*])[ -~¡-ž–—‘’“”…†‡‰€]"
)


@pytest.fixture(scope="module")
def drawn(small_result: ExperimentResult) -> dict[str, bytes]:
    """The files of the small result's report, drawn once."""
    return dict(report_files(small_result))


def test_latex_equals_a_table_written_by_hand(small_result: ExperimentResult) -> None:
    text = latex_table(build_table(Analysis(small_result)), Analysis(small_result))

    assert text.startswith(f"{ORIGIN}\n")
    assert f"{MACRO}\n{LATEX}{LATEX_BOLD}" in text
    assert LATEX_MIDDLE in text
    assert text.endswith(LATEX_END)


def with_latex(result: ExperimentResult, **latex: object) -> str:
    changed = result.model_copy(update={"table": {**result.table, "latex": latex}})
    return latex_table(build_table(Analysis(changed)), Analysis(changed))


def test_latex_for_a_paper_has_its_label_and_both_columns_but_no_notes(
    small_result: ExperimentResult,
) -> None:
    text = with_latex(small_result, label="tab:main", wide=True, notes="none")

    assert r"\synthbenchfloat{table}{0pt}" in text
    assert r"\label{tab:main}" in text
    assert "Scores" not in text


def test_each_note_stands_below_the_table_or_in_the_notes_to_cite(small_result: ExperimentResult) -> None:
    noted = small_result.model_copy(update={"notes": ("Whatever the data are like.",)})
    files = dict(text_files(Report(noted)))

    for table, notes in (("table.md", "notes.md"), ("table.tex", "notes.tex")):
        found = [files[name].replace("\\", "") for name in (table, notes)]
        for note in ("Scores × 100", "± sample standard", "Ceiling, compared", "Whatever the data", "Bold: "):
            assert sum(note in text for text in found) == 1, note
    assert r"\label{sec:example-notes}" in files["notes.tex"]
    assert files["table.md"].replace("Not registered", "\n- ").count("\n- ") <= 4


def test_notes_take_no_more_room_than_the_table(
    make_runs: Callable[..., tuple[RunResult, ...]], make_result: Callable[..., ExperimentResult]
) -> None:
    rows = [make_runs(name, {"STSb": (0.5, 0.6)}) for name in ("gold", "silver")]
    text = with_latex(make_result(*rows, compare_to="gold"))

    notes = text.rpartition("{%\n")[2]
    # Three lines of 11.4 pt, and rules: five lines of 9.5 pt, of about 50 characters.
    assert 0 < len(notes) < 300


def test_results_of_earlier_versions_ask_for_all_notes(small_result: ExperimentResult) -> None:
    assert with_latex(small_result, notes="all") == with_latex(small_result, notes="short")


def test_latex_labels_are_unique_and_without_special_characters(
    small_result: ExperimentResult,
) -> None:
    named = small_result.model_copy(update={"experiment": "50 % & more", "baseline": "gold"})

    texts = [text for name, text in text_files(Report(named)) if name.endswith(".tex")]
    labels = [label for text in texts for label in re.findall(r"\\label\{(.*?)\}", text)]
    assert labels[:2] == ["tab:50-more", "sec:50-more-notes"]
    assert labels[2:4] == ["tab:50-more-comparisons-1", "tab:50-more-comparisons-2"]
    assert len(set(labels)) == len(labels)


def test_a_long_table_is_split_into_environments(
    make_runs: Callable[..., tuple[RunResult, ...]], make_result: Callable[..., ExperimentResult]
) -> None:
    rows = [make_runs(f"row-{number}", {"STSb": (0.5, 0.6)}) for number in range(MOST_LINES + 1)]
    text = with_latex(make_result(*rows, caption="Long"))

    first, second = text.split(r"\global\setbox")[1:]
    assert r"\caption{Long}\label{tab:example}" in first
    assert r"\caption{Long (continued)}" in second
    assert r"\label" not in second
    assert r"\multicolumn{2}{c}{STSb}" in second
    assert [text.count(f"row-{number} ") for number in range(len(rows))] == [1] * len(rows)
    assert "Scores" not in first
    assert "Scores" in second


def test_markdown_equals_a_table_written_by_hand(small_result: ExperimentResult) -> None:
    assert markdown_table(build_table(Analysis(small_result))) == MARKDOWN
    assert dict(text_files(Report(small_result)))["notes.md"].startswith(NOTES)


def test_csv_equals_a_table_written_by_hand(small_result: ExperimentResult) -> None:
    lines = csv_table(build_table(Analysis(small_result))).splitlines()

    assert len(lines) == 1 + 5 * 3
    assert lines[0] == (
        "row,axis,column,mean,sd,n_seeds,n_items,n_dropped,metric,bold,ceiling,"
        "published,published_sd,published_source,published_flag,published_differs"
    )
    assert (
        lines[4] == "augsbert_k,base=MiniLM,STSb,76.000000,1.000000,3,100,0,cosine_spearman,true,false,,,,,"
    )
    assert lines[8] == "cross-encoder,base=MiniLM,SICK-R,,,0,,,cosine_spearman,false,true,,,,,"
    assert lines[12] == "gold,base=static,Average,46.000000,1.414214,2,,,cosine_spearman,false,false,,,,,"


def test_means_and_deviations_of_the_table_follow_from_the_scores_of_seeds(
    small_result: ExperimentResult,
) -> None:
    scores: dict[tuple[str, ...], list[float]] = {}
    for line in csv.DictReader(io.StringIO(seeds_csv(small_result))):
        key = (line["row"], line["axis"], line["test_set"])
        scores.setdefault(key, []).append(float(line["score"]))

    table = list(csv.DictReader(io.StringIO(csv_table(build_table(Analysis(small_result))))))
    single = [line for line in table if line["column"] != "Average" and line["mean"]]
    assert len(single) == len(scores) > 5
    for line in single:
        values = scores[line["row"], line["axis"], line["column"]]
        assert float(line["mean"]) == pytest.approx(mean(values), abs=1e-5)
        assert float(line["sd"]) == pytest.approx(stdev(values), abs=1e-5)
        assert int(line["n_seeds"]) == len(values)


def test_csv_quotes_special_characters_in_names(small_result: ExperimentResult) -> None:
    runs = (small_result.runs[0].model_copy(update={"variant": 'a,"b"\nc'}),)

    text = csv_table(build_table(Analysis(small_result.model_copy(update={"runs": runs}))))

    assert next(csv.DictReader(io.StringIO(text)))["row"] == 'a,"b"\nc'


def test_the_terminal_shows_names_with_brackets_unchanged(small_result: ExperimentResult) -> None:
    runs = tuple(run.model_copy(update={"variant": f"[red]{run.variant}"}) for run in small_result.runs)
    console = Console(width=140, record=True, file=io.StringIO())

    table = build_table(Analysis(small_result.model_copy(update={"runs": runs})))
    console.print(terminal_table(table, console).renderable)

    shown = console.export_text()
    assert "[red]augsbert_k" in shown
    assert "76.0 ± 1.0" in shown


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        ("50 % of a_b & c#1", r"50 \% of a\_b \& c\#1"),
        (r"\{~^}$", r"\textbackslash{}\{\textasciitilde{}\textasciicircum{}\}\$"),
        ("é–λ", r"é–\ensuremath{\lambda}"),
        ("ï Ş Γ ≤", r"ï Ş \ensuremath{\Gamma} \ensuremath{\leq}"),
        ("ẽ ǐ ị đ", r"\~{e} \v{\i} \d{i} \texttt{U+0111}"),
        ("a--b", "a-{}-b"),
        ("two\nlines", "two lines"),
        ("漢", r"\texttt{U+6F22}"),
    ],
)
def test_latex_escapes_equal_those_written_by_hand(plain: str, written: str) -> None:
    assert escape(plain) == written


@given(st.text())
def test_latex_escapes_every_special_character(text: str) -> None:
    escaped = escape(text)

    assert LATEX_TOKEN.sub("", escaped) == ""
    assert all(first + second not in {"--", "''", ",,"} for first, second in pairwise(escaped))


@given(st.text())
def test_markdown_text_stays_in_its_cell(text: str) -> None:
    escaped = markdown_text(text)

    assert "\n" not in escaped
    assert not set(re.sub(r"\\.", "", escaped)) & set("\\`*_{}[]<>|~#$&")


def test_a_report_has_the_same_files_each_time_and_survives_json(
    small_result: ExperimentResult, drawn: dict[str, bytes], tmp_path: Path
) -> None:
    copy = ExperimentResult.model_validate_json(small_result.model_dump_json())
    again = write_report(copy, tmp_path / "a" / "b")

    names = ["table.tex", "table.md", "table.csv", "seeds.csv", "notes.md", "notes.tex"]
    names += [f"comparisons.{ending}" for ending in ("tex", "md", "csv")]
    names += ["scores.pdf", "scores.png", "forest.pdf", "forest.png", "report.html"]
    assert [path.name for path in again] == list(drawn) == names
    assert [path.read_bytes() for path in again] == list(drawn.values())
    assert sorted(path.name for path in (tmp_path / "a" / "b").glob("[!.]*")) == sorted(names)


def test_without_scores_there_is_no_figure_and_an_earlier_one_is_removed(
    small_result: ExperimentResult, drawn: dict[str, bytes], tmp_path: Path
) -> None:
    place_report(drawn, tmp_path)
    unscored = tuple(run.model_copy(update={"scores": ()}) for run in small_result.runs)

    written = write_report(small_result.model_copy(update={"runs": unscored}), tmp_path)

    names = ["notes.md", "notes.tex", "report.html", "seeds.csv", "table.csv", "table.md", "table.tex"]
    assert sorted(path.name for path in written) == names
    assert sorted(tmp_path.glob("[!.]*")) == sorted(written)


def test_an_edited_file_is_preserved_beside_the_new_one(drawn: dict[str, bytes], tmp_path: Path) -> None:
    assert place_report(drawn, tmp_path) == {}
    assert place_report(drawn, tmp_path) == {}
    (tmp_path / "table.tex").write_text("mine", encoding="utf-8")

    assert place_report(drawn, tmp_path) == {"table.tex": "table.edited.tex"}
    assert (tmp_path / "table.tex").read_bytes() == drawn["table.tex"]
    assert (tmp_path / "table.edited.tex").read_text(encoding="utf-8") == "mine"

    (tmp_path / "table.tex").write_text("mine again", encoding="utf-8")
    assert place_report(drawn, tmp_path) == {"table.tex": "table.edited2.tex"}
    assert (tmp_path / "table.edited.tex").read_text(encoding="utf-8") == "mine"
    assert place_report(drawn, tmp_path) == {}


def test_without_a_record_files_that_differ_are_kept(drawn: dict[str, bytes], tmp_path: Path) -> None:
    place_report(drawn, tmp_path)
    (tmp_path / ".written.json").unlink()
    (tmp_path / "table.tex").write_text("mine", encoding="utf-8")

    assert place_report(drawn, tmp_path) == {"table.tex": "table.edited.tex"}
    assert (tmp_path / "table.edited.tex").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("record", ["", "[]", '{"../outside.tex": "0"}'])
def test_an_unreadable_record_does_not_prevent_a_report(
    drawn: dict[str, bytes], tmp_path: Path, record: str
) -> None:
    folder = tmp_path / "report"
    place_report(drawn, folder)
    outside = tmp_path / "outside.tex"
    outside.write_text("not ours", encoding="utf-8")
    (folder / ".written.json").write_text(record, encoding="utf-8")

    assert place_report(drawn, folder) == {}
    assert outside.read_text(encoding="utf-8") == "not ours"


@pytest.mark.usefixtures("sketched_figures")
def test_report_folder_that_is_a_file_is_reported_in_one_line(
    small_result: ExperimentResult, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")

    for attempt in (
        lambda: write_report(small_result, tmp_path / "taken"),
        lambda: make_report_folder(tmp_path / "taken"),
    ):
        with refused("another"):
            attempt()


@pytest.mark.parametrize(
    ("overrides", "folder"),
    [
        ((), "small"),
        (("--seeds 0,1",), "small/seeds-0,1"),
        (("--profile tiny", "--variant gold-only"), "small/profile-tiny+variant-gold-only"),
        (("--set train.max_steps=20",), "small/set-train.max_steps=20"),
    ],
)
def test_overridden_runs_have_separate_report_folders(overrides: tuple[str, ...], folder: str) -> None:
    assert report_folder(Path("out"), "small", overrides) == Path("out") / folder


@pytest.mark.parametrize(
    "override", ["--set a='b/../../c'", "--set a=" + "x" * 300, "--set a=é", "--set a=b+c"]
)
def test_the_folder_name_of_overrides_is_valid_on_every_file_system(override: str) -> None:
    folder = report_folder(Path("out"), "small", (override,))

    assert folder.parent == Path("out/small")
    assert re.fullmatch(r"set-[A-Za-z0-9_.,=+-]{1,90}", folder.name)
    assert folder != report_folder(Path("out"), "small", (f"{override}y",))


def test_different_overrides_have_different_folders() -> None:
    overrides = [("--set a=b", "--set c=d"), ("--set a=b+set-c=d",), ("--set a=b-set-c=d",)]
    assert len({report_folder(Path("out"), "small", each) for each in overrides}) == 3
