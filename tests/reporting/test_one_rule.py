"""All formats say the same: no sentence takes back what another says."""

import csv
import io
import random
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_texts import text_of

from synthbench.reporting.render.html.page import html_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.statistics.item_noise import ItemNoise

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]

NAMES = ("gold", "dino", "bm25", "kde")
COUNTED = re.compile(r"^(\d+|None) of (\d+) (?:tested )?primary comparisons (?:is|are) significant")
ALONE = re.compile(r"^The (?:only tested )?primary comparison is (not )?significant")
SHAPES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 999),
        "rows": st.integers(1, 4),
        "tasks": st.integers(1, 3),
        "seeds": st.sampled_from([1, 2, 3, 5]),
        "points": st.sampled_from([("",), ("small", "large")]),
        "spread": st.sampled_from([0.0, 0.002, 0.02]),
        "items": st.sampled_from([None, 1e-6, 1e-4]),
        "redrawn": st.booleans(),
        "untrained": st.booleans(),
        "options": st.sampled_from(
            [
                {},
                {"compare_to": "gold"},
                {"compare_to": "gold", "averages": {"Mean": ["A"]}},
                {"compare_to": "gold", "averages": {"Mean": ["A"]}, "best": True},
                {"compare_to": {"gold": ["dino"], "dino": ["gold", "bm25"]}},
                {"compare_to": "gold", "family": {"gold": ["dino"]}, "primary": ["A"]},
                {"compare_to": "gold", "family": {}},
                {"best": True},
                {"compare_to": "gold", "ceiling": ["dino"]},
            ]
        ),
    }
)


def sampled(seed: int) -> DatasetSummary:
    """Data that every seed draws anew, and all rows use."""
    return DatasetSummary(
        part="gold", kind="scored_pair", num_records=1, content_hash="h", stage=f"sample-{seed}"
    )


@pytest.fixture(scope="session")
def generated(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., ExperimentResult]:
    """Return a random result of a shape."""

    def made(shape: dict[str, Any]) -> ExperimentResult:
        source = random.Random(shape["seed"])
        names, tasks = NAMES[: shape["rows"]], "ABC"[: shape["tasks"]]
        averages = {"Mean": list(tasks)} if "averages" in shape["options"] else {}
        rows, noise = [], []
        for point in shape["points"]:
            axes = {"base": point} if point else {}
            for name in names:
                scores = {}
                for task in tasks:
                    mean = 0.7 + source.choice([0.0, 0.0, 0.03, -0.05])
                    number = max(1, shape["seeds"] - source.choice([0, 0, 0, 1]))
                    scores[task] = [mean + source.gauss(0, shape["spread"]) for _ in range(number)]
                is_seeded = name != "gold" or not shape["untrained"]
                if not is_seeded:
                    scores = {task: values[:1] for task, values in scores.items()}
                rows.append(
                    tuple(
                        run.model_copy(
                            update={
                                "is_seeded": is_seeded,
                                "datasets": (sampled(run.seed),) if shape["redrawn"] else (),
                            }
                        )
                        for run in make_runs(name, scores, **axes)
                    )
                )
            pairs = len(names) * (len(names) - 1) // 2
            noise += [
                ItemNoise(
                    axes=axes, task=task, evaluator="sts", num_items=100, variants=names,
                    squared_errors=(shape["items"],) * pairs,
                )
                for task in tasks
                if shape["items"] and source.random() < 0.8
            ]  # fmt: skip
        result = make_result(*rows, **{**shape["options"], **({"averages": averages} if averages else {})})
        return result.model_copy(update={"item_noise": tuple(noise)})

    return made


class Page:
    """What the page says, read from its text as a reader does."""

    def __init__(self, page: str) -> None:
        answer = re.search(r'<section id="answer".*?</section>', page, re.DOTALL)
        summary = re.search(r'<section id="summary">.*?</section>', page, re.DOTALL)
        # What the seeds redraw stands below the figure.
        self.answer = _texts("p", answer[0].partition("<figure")[0]) if answer else []
        self.findings = _texts("li", summary[0]) if summary else []
        self.remarks = _texts("p", summary[0]) if summary else []
        self.column = page.partition("<figcaption>")[2].partition(",")[0]
        self.num_bold = len(re.findall(r"<td title=[^>]*><b>", page))
        self.num_bold_marks = page.count('class="mark bold')


def _texts(tag: str, html: str) -> list[str]:
    found = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", text)) for text in found]


def lines_of(result: ExperimentResult, name: str) -> list[dict[str, str]]:
    text = text_of(result, name) if name == "table.csv" or "Comparisons" in Report(result).tables else ""
    return list(csv.DictReader(io.StringIO(text)))


@settings(max_examples=50)
@given(SHAPES)
def test_no_sentence_takes_back_what_another_says(
    generated: Callable[..., ExperimentResult], shape: dict[str, Any]
) -> None:
    result = generated(shape)
    report = Report(result)
    page = Page(html_report(report))
    lines = [line for line in lines_of(result, "comparisons.csv") if line["family"] != "best"]
    starred = [line for line in lines if line["significant"] == "true"]
    primary = [line for line in lines if line["family"] == "primary" and line["family_p"]]
    real = [line for line in starred if line["family"] == "primary"]
    comparisons = report.tables.get("Comparisons")
    table_notes, notes = report.table.notes, comparisons.notes if comparisons else ()
    everything = (*page.answer, *page.findings, *page.remarks, *table_notes, *notes)

    # A star is an interval without 0, and a p value below 5 %.
    for line in lines:
        if line["family_p"]:
            excludes = float(line["family_low"]) > 0 or float(line["family_high"]) < 0
            assert (line["significant"] == "true") == excludes == (float(line["family_p"]) <= 0.05)
    # Exploratory comparisons and single sets below an average without a star have neither.
    averages = {(line["row"], line["against"], line["axis"]) for line in real}
    for line in starred:
        assert line["family"] == "primary" or (line["row"], line["against"], line["axis"]) in averages
    assert not any(line["family_p"] for line in lines if line["family"] == "exploratory")

    # The first sentence counts the stars.
    if page.answer:
        first = page.answer[0]
        if counted := COUNTED.match(first):
            assert (counted[1].replace("None", "0"), counted[2]) == (str(len(real)), str(len(primary)))
        elif alone := ALONE.match(first):
            assert (len(real), len(primary)) == (0 if alone[1] else 1, 1)
        else:
            assert not primary
            assert first in table_notes or any("so nothing is claimed" in note for note in table_notes)
            asks_best = any(text.startswith("Best row") for text in page.answer)
            assert ("nothing is claimed" in first.lower()) == (not asks_best)
    claimless = [text for text in everything if "nothing is claimed" in text.lower()]
    claims = [text for text in everything if text.startswith("Best row on") and "no row is" not in text]
    assert not (claimless and (starred or claims))

    # Bold is a primary star in the row's favour, in the table and on the page; no baseline's mean is higher.
    cells = {(c["row"], c["axis"], c["column"]): c["mean"] for c in lines_of(result, "table.csv")}
    below = {
        (line["row"], line["axis"], line["column"])
        for line in real
        for other in lines
        if other["family"] == "primary" and (line["axis"], line["column"]) == (other["axis"], other["column"])
        for axis in (line["axis"], "")
        if (mean := cells.get((other["against"], axis, line["column"])))
        and float(mean) > float(cells[line["row"], line["axis"], line["column"]])
    }
    favoured = {(line["row"], line["axis"], line["column"]) for line in real if float(line["difference"]) > 0}
    favoured -= below
    bold = {(c["row"], c["axis"], c["column"]) for c in lines_of(result, "table.csv") if c["bold"] == "true"}
    assert bold == favoured
    assert page.num_bold == len(bold)
    assert text_of(result, "table.tex").count(r"\bfseries") == len(bold)
    assert len(re.findall(r"\*\*[\d.]+\*\*", text_of(result, "table.md"))) == len(bold)
    assert any(note.startswith("Bold: ") for note in table_notes) == bool(bold)
    if bold:
        assert not any(text.startswith("Nothing is bold") for text in everything)
    assert page.num_bold_marks == (
        len(real) if report.forest else sum(column == page.column for _, _, column in bold)
    )

    # Stars are the same in all formats.
    if lines:
        assert len(re.findall(r"\d\\\*", text_of(result, "comparisons.md"))) == len(starred)
        assert len(re.findall(r"\d\{\*\}", text_of(result, "comparisons.tex"))) == len(starred)
    # The summary names a pair either as different or not.
    pairs = {f"{line['row']} against {line['against']}" for line in starred}
    if page.findings:
        assert {text.partition(":")[0].partition(" (")[0] for text in page.findings} == pairs
    found = {text.partition(":")[0] for text in page.findings}
    for text in page.remarks:
        named = text.partition(": ")[2].rstrip(".").split("; ")
        assert not (text.startswith(("No difference found", "No test of")) and found & set(named))
    # Best rows: the sentence is on the page and below the table.
    best = [text for text in page.answer if text.startswith("Best row")]
    assert set(best) <= set(table_notes)
