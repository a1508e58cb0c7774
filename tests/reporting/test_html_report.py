"""The page that holds a whole report."""

import base64
import hashlib
import math
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from synthbench.reporting.files import place_report, report_files
from synthbench.reporting.report import Report
from synthbench.reporting.results import (
    CostResult,
    DataExcerpt,
    DatasetSummary,
    ExperimentResult,
    Ingredient,
    Overlap,
    RecordExcerpt,
    RunResult,
    SharedRecords,
    SharedSentence,
)

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
ATTACK = "</p><script>alert('x')</script><img src=http://evil.example/a onerror=alert(1)>"
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """A parsed page: elements with attributes, texts, and the scripts' text separately."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = self.script = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.script += data
        elif self.open and self.open[-1] != "style":
            self.text += data

    def ids(self) -> list[str]:
        return [found["id"] for _, found in self.elements if "id" in found]


_drawn: list[tuple[ExperimentResult, dict[str, bytes]]] = []


def page_of(result: ExperimentResult, folder: Path) -> tuple[Page, str]:
    """Return the page of a result, rendered once; the folder contains the report."""
    files = next((files for drawn, files in _drawn if drawn is result), None)
    if files is None:
        files = dict(report_files(result))
        _drawn.append((result, files))
    place_report(files, folder)
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    return page, text


@pytest.fixture(scope="module")
def full(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    """A result of everything that a page shows, with an attack wherever texts come from outside."""
    data = DatasetSummary(
        part=f"written {ATTACK}",
        kind="scored_pair",
        method="dino",
        num_records=9,
        num_failures=3,
        dropped={ATTACK: 2},
        llm=ATTACK,
        content_hash="c0ffee",
        stage="s1",
    )
    other = data.model_copy(update={"stage": "s2", "part": "gold"})
    overlap = Overlap(
        task="STSb",
        items="pairs",
        num_items=100,
        sharing={"exact": 1, "normalised": 12, "13-gram": 12, "near-duplicate": 13},
        whole={"normalised": 2},
        as_pairs=1,
        by_part={},
    )
    cost = CostResult(
        method="dino",
        part="written",
        rows=("ours",),
        llm="gpt",
        num_records=9,
        num_requests=1_234,
        prompt_tokens=5,
        completion_tokens=6,
        usd=0.5,
        stage="s1",
    )
    record = RecordExcerpt(
        texts=(("sentence1", f"A dog {ATTACK}"), ("sentence2", ATTACK)), score=0.5, origin=(("id", ATTACK),)
    )
    shared = SharedRecords(stages=("s1",), records=(record,), num_records=3)
    ours, base = (
        tuple(
            run.model_copy(
                update={
                    "datasets": (data, other),
                    "overlaps": (overlap,),
                    "dev_score": 0.5,
                    "num_steps": 7,
                    "seconds": 3.0,
                    "history": ((1, "dev_score", 0.1), (2, "dev_score", 0.4), (3, "dev_score", 0.3)),
                }
            )
            for run in runs
        )
        for runs in (
            make_runs(f"ours {ATTACK}", {"STSb": (0.80, 0.81, 0.82), "SICK-R": (0.7, 0.5, 0.6)}),
            make_runs("base", {"STSb": (0.60, 0.61, 0.62), "SICK-R": (0.6, 0.6, 0.6)}),
        )
    )
    result = make_result(ours, base, caption=ATTACK, notes=[ATTACK], compare_to="base")
    return result.model_copy(
        update={
            "costs": (cost,),
            "failures": (ATTACK,),
            "pending": (ATTACK,),
            "environment": {"python": ATTACK},
            "source": ATTACK,
            "excerpts": (
                DataExcerpt(
                    stage="s1", records=(record,), failures=((ATTACK, 3),), revisions=(("llm", ATTACK),)
                ),
            ),
            "side_by_side": (
                SharedSentence(
                    sentence=ATTACK, found=(shared, shared.model_copy(update={"stages": ("s2",)}))
                ),
            ),
        }
    )


def test_external_texts_are_never_markup(full: ExperimentResult, tmp_path: Path) -> None:
    page, text = page_of(full, tmp_path)
    assert text.count("<script") == 1  # the page's own
    assert "onerror" not in {name for _, found in page.elements for name in found}
    assert page.text.count(ATTACK) > 10


def test_the_page_loads_no_other_file(full: ExperimentResult, tmp_path: Path) -> None:
    page, text = page_of(full, tmp_path)
    addresses = [found[name] for _, found in page.elements for name in ("src", "href") if name in found]
    assert addresses
    assert all(address.startswith(("data:image/", "#")) for address in addresses)
    assert {tag for tag, _ in page.elements} & {"link", "iframe", "object", "form"} == set()
    assert "url(" not in text
    assert "@import" not in text
    policy = next(found["content"] for _, found in page.elements if "http-equiv" in found)
    assert policy.startswith("default-src 'none'")


def test_the_policy_allows_only_the_pages_own_script_by_its_hash(
    full: ExperimentResult, tmp_path: Path
) -> None:
    page, _ = page_of(full, tmp_path)
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    policy = next(found["content"] for _, found in page.elements if "http-equiv" in found)
    assert policy.endswith(f"; script-src 'sha256-{digest}'")
    for what in ("fetch(", "XMLHttpRequest", "innerHTML", "eval(", "http:", "https:"):
        assert what not in page.script


def test_the_contents_link_to_existing_sections(full: ExperimentResult, tmp_path: Path) -> None:
    page, _ = page_of(full, tmp_path)
    led_to = [found["href"].removeprefix("#") for tag, found in page.elements if tag == "a"]
    assert ["answer", *led_to] == page.ids()
    assert {"unfinished", "scores", "comparisons", "data", "side-by-side"} < set(led_to)
    assert {"contamination", "costs", "again"} < set(led_to)


def test_empty_sections_are_left_out(make_runs: MakeRuns, make_result: MakeResult, tmp_path: Path) -> None:
    page, _ = page_of(make_result(make_runs("only", {"A": (0.5,)})), tmp_path)
    assert page.ids() == ["answer", "scores", "again"]


def test_a_tracked_result_gives_the_same_page(full: ExperimentResult, tmp_path: Path) -> None:
    kept = ExperimentResult.model_validate_json(full.model_dump_json())
    _, first = page_of(full, tmp_path / "first")
    _, again = page_of(kept, tmp_path / "again")
    assert again == first


def test_records_are_shown_with_their_origin_and_side_by_side(full: ExperimentResult, tmp_path: Path) -> None:
    page, _ = page_of(full, tmp_path)
    words = " ".join(page.text.split())
    assert f"sentence2 {ATTACK}" in words
    assert f"score 0.50; id {ATTACK}" in words
    assert "3 (3 × " in words
    assert "and 2 more" in words
    assert "12 (12.0%)" in words


def test_figures_are_embedded_images(full: ExperimentResult, tmp_path: Path) -> None:
    page, text = page_of(full, tmp_path)
    images = [found["src"] for tag, found in page.elements if tag == "img"]
    assert len(images) == 1
    assert images[0].startswith(("data:image/svg+xml;base64,", "data:image/png;base64,"))
    assert len(text) < 300_000


def test_dev_scores_are_drawn_in_a_frame_with_the_value_at_each_point(
    full: ExperimentResult, tmp_path: Path
) -> None:
    page, _ = page_of(full, tmp_path)
    drawn = [found["points"] for tag, found in page.elements if tag == "polyline"]
    # The frame reaches from 60 to 292 and, downwards, from 10 to 108; steps begin at 0.
    assert drawn == ["137.3,108.0 214.7,10.0 292.0,42.7"] * 6
    dots = [(found["cx"], found["cy"]) for tag, found in page.elements if tag == "circle"]
    assert dots[:3] == [("137.3", "108.0"), ("214.7", "10.0"), ("292.0", "42.7")]


def test_a_seed_with_an_undefined_loss_has_no_curve_but_is_named(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    from synthbench.reporting.render.html.page import html_report

    def with_losses(last: Sequence[float]) -> Page:
        runs = tuple(
            run.model_copy(update={"history": ((1, "loss", 3.0), (2, "loss", 2.0), (3, "loss", value))})
            for run, value in zip(make_runs("gold", {"A": (0.5, 0.6, 0.7)}), last, strict=True)
        )
        return Page(html_report(Report(make_result(runs))))

    nan = math.nan
    for last, left_out in (
        ((1.0, 1.0, 1.0), ""),
        ((1.0, nan, math.inf), "1, 2"),
        ((nan, nan, nan), "0, 1, 2"),
    ):
        page = with_losses(last)
        curves = [found for tag, found in page.elements if tag == "polyline"]
        assert len(curves) == sum(map(math.isfinite, last))
        named = f"Not drawn, since a value is NaN or infinite: seed {left_out}."
        assert (named in page.text) == bool(left_out)


def test_each_score_has_a_tooltip(full: ExperimentResult, tmp_path: Path) -> None:
    page, _ = page_of(full, tmp_path)
    hints = [found["title"] for tag, found in page.elements if tag == "td" and "title" in found]
    assert hints
    assert all(hint.startswith("mean ") and "seed" in hint for hint in hints)


def test_copied_tables_equal_the_reports_files(full: ExperimentResult, tmp_path: Path) -> None:
    page, _ = page_of(full, tmp_path)
    for name in ("comparisons.csv", "comparisons.tex", "comparisons.md", "costs.csv"):
        assert (tmp_path / name).read_text(encoding="utf-8").strip() in page.text


def test_an_experiment_without_scores_has_a_page(make_runs: MakeRuns, make_result: MakeResult) -> None:
    from synthbench.reporting.render.html.page import html_report

    runs = tuple(run.model_copy(update={"scores": ()}) for run in make_runs("row", {"A": (0.5,)}))
    result = make_result(runs)
    page = Page(html_report(Report(result)))
    assert page.ids() == ["again"]


def text_of(result: ExperimentResult) -> str:
    """Return the words of a page without figures."""
    from synthbench.reporting.render.html.page import html_report

    return Page(html_report(Report(result))).text


def test_the_page_contains_the_file_named_in_its_commands(full: ExperimentResult) -> None:
    given = {"file": "studies/a.yaml", "is_data_folder_given": True}
    text = text_of(full.model_copy(update=given))
    assert "synthbench run studies/a.yaml --data DIR\nsynthbench report studies/a.yaml\n" in text
    assert "studies/a.yaml is the text at the end of this page, saved under that name" in text
    assert f"The text of studies/a.yaml, with includes applied\n{ATTACK}" in text

    changed = text_of(full.model_copy(update={**given, "overrides": ("--seeds 0",)}))
    assert "synthbench run studies/a.yaml --seeds 0 --data DIR\n" in changed
    assert "saved under that name" not in changed


def test_without_a_file_commands_use_the_experiments_name(full: ExperimentResult) -> None:
    assert "synthbench run example.yaml\nsynthbench report example.yaml\n" in text_of(full)


def test_data_are_shown_with_their_lineage(full: ExperimentResult) -> None:
    judge = Ingredient(role="judge", kind="train", name=ATTACK, revisions=(("bert", "c0ffee"),), stage="s")
    made = full.runs[0].datasets[0].model_copy(update={"made_of": (judge,)})
    runs = tuple(run.model_copy(update={"datasets": (made,)}) for run in full.runs)
    text = text_of(full.model_copy(update={"runs": runs}))
    assert f"made ofjudge: model s trained by {ATTACK}, base bert c0ffee\n" in text


def test_data_that_differ_between_seeds_name_their_seed(full: ExperimentResult) -> None:
    first, *others = full.runs
    (written, gold) = first.datasets
    own = first.model_copy(update={"datasets": (written.model_copy(update={"stage": "s3"}), gold)})
    text = text_of(full.model_copy(update={"runs": (own, *others)}))
    assert f"written {ATTACK} (ours {ATTACK}; seed 0 of 3)" in text
    assert "gold (" not in text


def test_a_dev_score_is_shown_with_its_dev_data(full: ExperimentResult) -> None:
    chosen = {"train.selection.sources": ["STSb-dev"], "train.selection.parts": ["x2"]}
    runs = tuple(run.model_copy(update={"parameters": chosen}) for run in full.runs)
    text = text_of(full.model_copy(update={"runs": runs}))
    assert "STSb-dev, x250.00" in text.replace("\n", "")
    assert "Dev scores of rows are comparable only on the same dev data." in text
