"""Every figure of README and docs comes from a committed report, or says what it is."""

import re
from pathlib import Path

import pytest
from figures import FigureError, Reports, committed, filled, unsourced
from gallery import recorded

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}


@pytest.mark.parametrize("page", TEXTS)
def test_figures_are_those_of_the_reports(page: str) -> None:
    assert filled(TEXTS[page], committed()) == TEXTS[page], "run `make docs`"


@pytest.mark.parametrize("page", TEXTS)
def test_figures_name_their_source(page: str) -> None:
    assert unsourced(TEXTS[page]) == []


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if "<!-- figures of" in text])
def test_a_page_with_results_says_what_the_seeds_redraw(page: str) -> None:
    assert re.search(r"seeds\s+redraw", TEXTS[page])


@pytest.mark.parametrize("report", recorded(ROOT), ids=lambda folder: folder.name)
def test_a_report_has_its_scores_by_seed(report: Path) -> None:
    assert (report / "seeds.csv").is_file()


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    """A report of one table, one comparison, and counts."""
    folder = tmp_path / "reports" / "study"
    folder.mkdir(parents=True)
    (folder / "table.csv").write_text(
        "row,axis,column,mean,sd,n_items\n"
        "gold,,STSb,60.157037,0.194624,1364\n"
        "bm25,,STSb,59.000001,0.5,1364\n"
        "bm25,size=500; base=small,STSb,61.25,,1364\n",
        encoding="utf-8",
    )
    (folder / "comparisons.csv").write_text(
        "row,against,axis,column,difference,effect_size,seeds_low,seeds_high,items_low,items_high,family_low,"
        "family_high,family_p\n"
        "bm25,gold,,STSb,-1.157036,-2.5,-1.9,-0.4,-1.8,-0.5,-2.0,-0.3,0.0004\n",
        encoding="utf-8",
    )
    (folder / "comparisons.md").write_text(
        "- Minimum detectable difference with 5 seeds (5 % level), in points: 0.71 (STSb); over test"
        " items, too: 1.25 (STSb).\n",
        encoding="utf-8",
    )
    (folder / "counts.csv").write_text("panel,bin,records\na,1,1762\na,2,1762\nb,1,5\n", encoding="utf-8")
    return Reports(tmp_path / "reports")


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("1.0<!-- study: gold, STSb -->", "60.2"),
        ("1.00 ± 0.11<!-- study: gold, STSb -->", "60.16 ± 0.19"),
        ("**1.0**<!-- study: gold, STSb -->", "**60.2**"),
        ("1<!-- study: bm25 [size=500, base=small], STSb -->", "61"),
        ("+1.00<!-- study: bm25 - gold, STSb -->", "−1.16"),
        ("1.00<!-- study: gold - bm25, STSb -->", "1.16"),
        ("-1.0 (-2.0 to -3.0)<!-- study: bm25 - gold, STSb -->", "−1.2 (−2.0 to −0.3)"),
        (
            "1.0 points (0.1 to 0.2, p 0.9)<!-- study: gold - bm25, STSb -->",
            "1.2 points (0.3 to 2.0, p < 0.1)",
        ),
        ("1.0\n(0.1 to 0.2,\n  p 0.900)<!-- study: gold - bm25, STSb -->", "1.2\n(0.3 to 2.0,\n  p < 0.001)"),
        ("1.0 (0.1 to 0.2)<!-- study: gold - bm25, STSb: seeds -->", "1.2 (0.4 to 1.9)"),
        ("p = 0.90000<!-- study: gold - bm25, STSb: p -->", "p = 0.00040"),
        ("< 0.1<!-- study: gold - bm25, STSb: p -->", "< 0.1"),
        ("0.3<!-- study: gold, STSb: sd -->", "0.2"),
        ("+0.1<!-- study: bm25 [size=500, base=small] - gold, STSb -->", None),
        ("0.1 to 0.2<!-- study: range: {gold;bm25}, STSb -->", "59.0 to 60.2"),
        ("0.1<!-- study: least STSb -->", "1.2"),
        ("0.10<!-- study: least STSb: seeds -->", "0.71"),
        ("5<!-- study: counts.csv: panel=a: records -->", "1,762"),
        ("5.5<!-- setting -->", "5.5"),
        ("5 %<!-- paper: Doe 2020 -->", "5 %"),
    ],
)
def test_a_marked_figure_gets_its_value(reports: Reports, written: str, right: str | None) -> None:
    marker = written[written.index("<!--") :].removeprefix("**")
    if right is None:
        with pytest.raises(FigureError):
            filled(f"It is {written}.\n", reports)
        return
    assert filled(f"It is {written}.\n", reports) == f"It is {right}{marker}.\n"
    assert unsourced(f"It is {written}.\n") == []


@pytest.mark.parametrize(
    "spec",
    [
        "gold, STSb",
        "nothing: gold, STSb",
        "study: silver, STSb",
        "study: gold, SICK",
        "study: bm25 - gold, STSb",
        "study: gold - bm25, STSb: w",
        "study: gold - bm25, STSb: seeds p",
        "study: least SICK",
        "study: counts.csv: panel=c: records",
        "study: counts.csv: panel=a: bin",
        "study: other.csv: panel=a: bin",
        "study: gold",
    ],
)
def test_a_marker_that_does_not_fit_is_an_error(reports: Reports, spec: str) -> None:
    with pytest.raises(FigureError):
        filled(f"It is 1.0<!-- {spec} -->.\n", reports)


TABLE = """\
<!-- figures of study -->

<!-- rows: gold | - | bm25 - gold; columns: STSb | - | STSb: p -->

| row | n | STSb | other | p |
| --- | ---: | ---: | ---: | ---: |
| gold | 5 | 1.0 ± 2.0 | x | |
| paper | 5 | 1.0 | | |
| difference | 5 | **+1.0 (+2.0 to +3.0)** * | | 0.9 |
"""


@pytest.mark.parametrize(
    ("family_p", "written", "right"),
    [
        ("0.031", "0.0 (0.0 to 0.0, p 0.500)<!-- study: bm25 - gold, STSb -->", "1.2 (0.1 to 2.3, p 0.031)"),
        ("0.031", "0.0 (0.0 to 0.0)<!-- study: bm25 - gold, STSb: seeds -->", "1.2 (0.8 to 1.6)"),
        ("", "0.0 (0.0 to 0.0)<!-- study: bm25 - gold, STSb -->", "1.2 (0.5 to 1.9)"),
        ("", "0.0 (0.0 to 0.0, p 0.500)<!-- study: bm25 - gold, STSb -->", None),
    ],
)
def test_a_difference_is_that_of_its_family_and_only_there_has_a_p_value(
    reports: Reports, family_p: str, written: str, right: str | None
) -> None:
    family = f"0.1,2.3,{family_p}" if family_p else ",,"
    (reports.folder / "study" / "comparisons.csv").write_text(
        "row,against,axis,column,difference,effect_size,seeds_low,seeds_high,seeds_p,items_low,items_high,"
        "items_p,family_low,family_high,family_p\n"
        f"bm25,gold,,STSb,1.2,2.5,0.8,1.6,0.001,0.5,1.9,0.002,{family}\n",
        encoding="utf-8",
    )

    if right is None:
        with pytest.raises(FigureError):
            filled(written, reports)
    else:
        assert filled(written, reports).startswith(right)


def test_a_table_is_filled_by_the_names_of_its_rows_and_columns(reports: Reports) -> None:
    fresh = filled(TABLE, reports)
    assert "| gold | 5 | 60.2 ± 0.2 | x | |\n" in fresh
    assert "| paper | 5 | 1.0 | | |\n" in fresh
    assert "| difference | 5 | **−1.2 (−2.0 to −0.3)** * | | < 0.1 |\n" in fresh
    assert filled(fresh, reports) == fresh
    assert unsourced(TABLE) == ["1.0"]
    with pytest.raises(FigureError):
        filled(TABLE.replace("gold | - | bm25 - gold", "gold | bm25"), reports)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It gains 2.1 points (1.0 to 3.2, p 0.01).", ["2.1", "1.0", "3.2", "0.01"]),
        ("It gains 2 points, and 3 % of it.", ["2", "3 %"]),
        ("It has 60 ± 2.", ["± 2"]),
        ("| −0.3 | -0.4 |", ["−0.3", "-0.4"]),
        ("GPT-3.5 and llama3.2 read 1,000 pairs for 60 steps, at the 5 % level, 95 % intervals.", []),
        ("`lr: 0.5` [0.5](a/0.5.md) and\n```\n0.5\n```\n", ["0.5"]),
        ("<!-- setting -->\n\nAt 0.5 or\n0.6.\n\nIt has 0.7.\n", ["0.7"]),
        ("<!-- measured: make bench, 2026-11-22 -->\n\n| 0.5 |\n| 0.6 |\n\n0.7\n", ["0.7"]),
    ],
)
def test_figures_without_a_source_are_found(text: str, found: list[str]) -> None:
    assert unsourced(f"{text}\n") == found


def test_no_marker_in_a_table_ends_its_cell() -> None:
    for page, text in TEXTS.items():
        cells = [line for line in text.splitlines() if line.startswith("|")]
        marked = [line for line in cells if re.search(r"<!--[^>]*\|[^>]*-->", line)]
        assert not marked, page
