"""What the seeds redraw, and what was made once, is read off the data of the runs."""

from collections.abc import Callable, Iterator

import pytest

from synthbench.reporting.model.aggregate import rows
from synthbench.reporting.model.what_varies import what_varies
from synthbench.reporting.render.html.page import html_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult, Ingredient, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
REDRAWN = "Each seed redraws: "
REUSED = "Made anew from each seed's samples, but with the same random numbers: "
ONCE = "Made once for all seeds, so their noise is not in ±: "


def part(name: str, content: str, method: str = "", *made_of: Ingredient) -> DatasetSummary:
    return DatasetSummary(
        part=name,
        kind="scored_pair",
        method=method,
        num_records=1,
        made_of=made_of,
        content_hash=content,
        stage=f"stage of {name} {content}",
    )


def source(name: str, content: str) -> Ingredient:
    return Ingredient(
        role="gold", kind="source", name=name, content_hash=content, stage=f"stage of {name} {content}"
    )


def labeller(content: str) -> Ingredient:
    return Ingredient(role="cross_encoder", kind="train", name="cross-encoder", stage=content)


@pytest.fixture
def said(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., list[str]]:
    """What is said of a result, given each row's data for seeds 0 and 1."""

    def said(*varied: str, **of_rows: tuple[list[DatasetSummary], list[DatasetSummary]]) -> list[str]:
        runs = [
            tuple(
                run.model_copy(update={"datasets": tuple(data)})
                for run, data in zip(make_runs(name, {"A": (0.5, 0.6)}), of_seeds, strict=True)
            )
            for name, of_seeds in of_rows.items()
        ]
        result = make_result(*runs).model_copy(update={"varied": ("training", *varied)})
        return list(what_varies(result, rows(result)))

    return said


def silver(gold: str, content: str, judge: str, name: str = "gold") -> list[DatasetSummary]:
    return [
        part("gold", gold),
        part("silver", content, "augsbert", source(name, gold), labeller(judge)),
    ]


def test_without_vary_only_the_order_of_training_is_redrawn(said: Callable[..., list[str]]) -> None:
    data = silver("g", "s", "j")
    assert said(row=(data, data)) == [
        f"{REDRAWN}order of training.",
        f"{ONCE}sample of gold; generation; training of cross-encoder.",
    ]


def test_samples_carry_what_is_made_of_them_along(said: Callable[..., list[str]]) -> None:
    found = said("sample", row=(silver("g0", "s0", "j0"), silver("g1", "s1", "j1", "gold seed 1")))
    assert found == [
        f"{REDRAWN}order of training; sample of gold.",
        f"{REUSED}generation; training of cross-encoder.",
    ]


def test_generation_anew_includes_the_labeller(said: Callable[..., list[str]]) -> None:
    found = said("generation", row=(silver("g", "s0", "j0"), silver("g", "s1", "j1")))
    assert found == [
        f"{REDRAWN}order of training; generation; training of cross-encoder.",
        f"{ONCE}sample of gold.",
    ]


def test_data_before_and_after_their_steps_are_one_draw(said: Callable[..., list[str]]) -> None:
    raw = Ingredient(role="data", kind="generate", name="dino", content_hash="raw", stage="raw")
    prepared = [part("x2", "prepared", "dino", raw)]
    assert said(row=(prepared, prepared)) == [f"{REDRAWN}order of training.", f"{ONCE}generation."]


def test_sources_that_data_are_only_compared_with_are_no_draws(said: Callable[..., list[str]]) -> None:
    texts = Ingredient(role="data", kind="source", name="texts", content_hash="t", stage="texts")
    held_out = Ingredient(role="dev", kind="source", name="dev", content_hash="d", stage="dev")
    tested = Ingredient(role="A", kind="source", name="A", content_hash="a", stage="a")
    gold = source("gold", "g")
    judge = Ingredient(role="labeller", kind="train", name="cross-encoder", of=("gold",), stage="j")
    clean = [part("clean", "c", "", texts, held_out, tested, judge, gold)]
    assert said(row=(clean, clean)) == [
        f"{REDRAWN}order of training.",
        f"{ONCE}sample of texts, gold; training of labeller.",
    ]


def test_a_sample_of_everything_is_no_draw(said: Callable[..., list[str]]) -> None:
    """A source of 1,497 records, of which each seed draws 1,497, is the same for all seeds."""
    small = part("small", "s")
    found = said("sample", row=([part("gold", "g0"), small], [part("gold", "g1"), small]))
    assert found == [f"{REDRAWN}order of training; sample of gold.", f"{ONCE}sample of small."]


def test_rows_are_named_where_they_differ(said: Callable[..., list[str]]) -> None:
    one, other = [part("x", "x0", "dino")], [part("x", "x1", "dino")]
    syncse = [part("y", "y", "syncse")]
    assert said("generation", first=(one, other), second=(one, one), third=(syncse, syncse)) == [
        f"{REDRAWN}order of training; generation by dino (in first).",
        f"{ONCE}generation by dino (in second), syncse.",
    ]


def test_many_names_are_counted(said: Callable[..., list[str]]) -> None:
    def parts(seed: int, number: int) -> Iterator[DatasetSummary]:
        return (part(f"s{index}", f"{index} of {seed}") for index in range(number))

    assert said("sample", row=([*parts(0, 5)], [*parts(1, 5)])) == [
        f"{REDRAWN}order of training; sample of all 5 sources."
    ]
    whole = part("whole", "w")
    assert said("sample", row=([*parts(0, 6), whole], [*parts(1, 6), whole])) == [
        f"{REDRAWN}order of training; sample of s0, s1, s2, s3 and 2 more.",
        f"{ONCE}sample of whole.",
    ]


def test_one_seed_says_nothing(make_runs: MakeRuns, make_result: MakeResult) -> None:
    result = make_result(make_runs("row", {"A": (0.5,)}))
    assert list(what_varies(result, rows(result))) == []


def test_the_page_says_it_once(make_runs: MakeRuns, make_result: MakeResult) -> None:
    runs = [make_runs(name, {"A": (0.5, 0.6, shift)}) for name, shift in (("gold", 0.5), ("other", 0.9))]
    result = make_result(*runs, compare_to={"gold": []})

    assert html_report(Report(result)).count(f"{REDRAWN}order of training.") == 1
