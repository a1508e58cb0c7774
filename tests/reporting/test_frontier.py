"""Scores against costs: the frontier, rows' costs, omitted costs, and the figure."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text
from pydantic import ValidationError
from wording import refused

from synthbench.reporting.figures.frontier import JOINT_COLOUR, LEADERS, frontier, pareto_optimal
from synthbench.reporting.figures.style import HIGHEST, figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.spending import spending
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.report import Report
from synthbench.reporting.results import (
    CostResult,
    DatasetSummary,
    ExperimentResult,
    Ingredient,
    RunResult,
)

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


def taking(runs: tuple[RunResult, ...], *seconds: float) -> tuple[RunResult, ...]:
    """The runs, which took so long."""
    return tuple(run.model_copy(update={"seconds": each}) for run, each in zip(runs, seconds, strict=True))


def asked(*rows: str, usd: float = 0.5, **more: Any) -> CostResult:
    """3,000 tokens."""
    fields = {"stage": "s", "num_requests": 5, "num_records": 9, "is_priced": True, **more}
    return CostResult(
        method="m",
        part="p",
        rows=rows,
        llm="an-llm",
        prompt_tokens=2000,
        completion_tokens=1000,
        usd=usd,
        **fields,
    )


@pytest.fixture
def dear_and_cheap(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    """Worked out by hand: `plain` is cheapest, `good` best, `waste` is neither; two test sets."""
    rows = (
        taking(make_runs("plain", {"A": (0.4, 0.5, 0.6), "B": (0.6, 0.7, 0.8)}), 10, 20, 30),
        taking(make_runs("waste", {"A": (0.4, 0.5, 0.6), "B": (0.4, 0.5, 0.6)}), 50, 50, 50),
        taking(make_runs("good", {"A": (0.7, 0.7, 0.7), "B": (0.9, 0.9, 0.9)}), 300, 300, 300),
    )
    result = make_result(*rows, tasks=("A", "B"), figures={"frontier": {"costs": ["seconds"]}})
    return result.model_copy(update={"costs": (asked("good"), asked("good", stage="t", usd=0.25))})


def lines(result: ExperimentResult, **figure: Any) -> dict[str, dict[str, str]]:
    """The CSV's lines by row, for the last requested cost."""
    found = frontier(Analysis(asking(result, **figure) if figure else result))
    assert found is not None
    return {line["row"]: line for line in csv.DictReader(io.StringIO(csv_text(found.section.csv)))}


def asking(result: ExperimentResult, **figure: Any) -> ExperimentResult:
    return result.model_copy(update={"table": {**result.table, "figures": {"frontier": figure}}})


def made_by(runs: tuple[RunResult, ...], llm: str) -> tuple[RunResult, ...]:
    """The runs, whose data this LLM wrote."""
    data = DatasetSummary(part="p", kind="triplet", num_records=9, llm=llm, content_hash="h", stage="s")
    return tuple(run.model_copy(update={"datasets": (data,)}) for run in runs)


def test_llms_that_rows_do_not_name_are_in_the_notes(make_runs: MakeRuns, make_result: MakeResult) -> None:
    scores = {"A": (0.4, 0.5, 0.6)}
    rows = [
        made_by(make_runs("raw", scores, llm="small"), "small"),
        made_by(make_runs("raw", scores, llm="large"), "large"),
        made_by(make_runs("judged", scores, llm="small"), "small and large"),
        made_by(make_runs("judged", scores, llm="large"), "large"),
        make_runs("untrained", scores, llm="small"),
    ]
    result = make_result(*rows, tasks=("A",), figures={"frontier": {"costs": ["seconds"]}})
    note = (
        "LLMs asked: small: raw (small); large: raw (large), judged (large); small and large: judged (small)."
    )
    found = frontier(Analysis(result))
    assert found is not None
    assert note in found.notes
    assert note in Report(result).table.notes
    told = make_result(*rows[:2], tasks=("A",), figures={"frontier": {"costs": ["seconds"]}})
    assert not [each for each in Report(told).table.notes if "LLMs asked" in each]
    by_variant = make_result(made_by(make_runs("a", scores), "x"), made_by(make_runs("b", scores), "y"))
    assert "LLMs asked: x: a; y: b." in Report(by_variant).table.notes


def starting(runs: tuple[RunResult, ...], first: str) -> tuple[RunResult, ...]:
    """The runs, whose trainings start from the model of another variant."""
    return tuple(run.model_copy(update={"parameters": {"train.starts_from": first}}) for run in runs)


def test_a_row_costs_what_the_rows_cost_that_its_training_starts_from(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"A": (0.4, 0.5, 0.6)}
    rows = (
        make_runs("texts", scores),
        starting(make_runs("then-gold", scores), "texts"),
        starting(make_runs("then-more", scores), "then-gold"),
        starting(make_runs("lost", scores), "left-out"),
    )
    result = make_result(*rows, tasks=("A",)).model_copy(
        update={"costs": (asked("texts"), asked("then-more", stage="t", usd=0.25))}
    )
    found = lines(result, costs=["dollars"])
    assert [found[row]["amount"] for row in ("texts", "then-gold", "then-more", "lost")] == [
        "0.5",
        "0.5",
        "0.75",
        "",
    ]
    assert found["lost"]["left_out"] == "the row that it starts from is not in this result"


def test_a_start_shown_once_for_all_points_counts_at_each_point(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"A": (0.4, 0.5, 0.6)}
    rows = [starting(make_runs("then-gold", scores, size=size), "texts") for size in ("1", "2")]
    result = make_result(*rows, make_runs("texts", scores), tasks=("A",))
    found = frontier(
        Analysis(asking(result.model_copy(update={"costs": (asked("texts"),)}), costs=["dollars"]))
    )
    assert found is not None
    lines = csv.DictReader(io.StringIO(csv_text(found.section.csv)))
    assert [(line["row"], line["amount"]) for line in lines] == [
        ("then-gold", "0.5"),
        ("then-gold", "0.5"),
        ("texts", "0.5"),
    ]


def test_records_with_a_price_count_in_rows_that_start_from_theirs(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    bought = DatasetSummary(part="texts", kind="triplet", num_records=10, content_hash="h", stage="s")
    first = tuple(
        run.model_copy(update={"datasets": (bought,), "parameters": {"data.texts.source": "shop"}})
        for run in make_runs("texts", {"A": (0.4, 0.5)})
    )
    rows = (first, starting(make_runs("then-gold", {"A": (0.4, 0.5)}), "texts"))
    result = make_result(*rows, tasks=("A",), record_usd={"shop": 0.1})
    found = lines(result, costs=["dollars"])
    assert [found[row]["amount"] for row in ("texts", "then-gold")] == ["1", "1"]


def test_cost_and_score_are_means_over_seeds_and_a_line_joins_the_frontier(
    dear_and_cheap: ExperimentResult,
) -> None:
    found = lines(dear_and_cheap)
    assert {row: (line["amount"], line["mean"], line["on_frontier"]) for row, line in found.items()} == {
        "plain": ("20", "60.000000", "yes"),
        "waste": ("50", "50.000000", "no"),
        "good": ("300", "80.000000", "yes"),
    }
    # Of each seed the mean of both test sets: 50, 60 and 70, whose sd is 10; 4.303 * 10 / sqrt(3) = 24.84.
    assert [float(found["plain"][name]) for name in ("low", "high", "sd")] == pytest.approx(
        [60 - 24.84, 60 + 24.84, 10], abs=0.01
    )


def test_the_score_is_the_named_test_set_or_average(
    dear_and_cheap: ExperimentResult,
) -> None:
    assert lines(dear_and_cheap, costs=["seconds"], score="B")["waste"]["mean"] == "50.000000"
    assert lines(dear_and_cheap, costs=["seconds"], score="B")["plain"]["mean"] == "70.000000"
    named = dear_and_cheap.model_copy(update={"table": {"averages": {"Both": ["A", "B"]}}})
    assert lines(named, costs=["seconds"], score="Both")["plain"]["mean"] == "60.000000"


def test_dollars_and_tokens_sum_all_stages_and_are_0_without_an_llm(
    dear_and_cheap: ExperimentResult,
) -> None:
    dollars = lines(dear_and_cheap, costs=["dollars"])
    assert {row: line["amount"] for row, line in dollars.items()} == {
        "plain": "0", "waste": "0", "good": "0.75",
    }  # fmt: skip
    assert lines(dear_and_cheap, costs=["tokens"])["good"]["amount"] == "6000"
    found = frontier(Analysis(asking(dear_and_cheap, costs=["dollars"])))
    assert found is not None
    assert "0 US dollars: plain, waste." in found.notes


def test_a_total_is_llm_costs_plus_hours_times_price(
    dear_and_cheap: ExperimentResult,
) -> None:
    found = lines(dear_and_cheap, costs=["total"], hour_usd=36.0)
    # A second costs a cent: 20 s on average; 300 s, and 0.75 dollars for two stages' answers.
    assert {row: float(line["amount"]) for row, line in found.items()} == {
        "plain": pytest.approx(0.2),
        "waste": pytest.approx(0.5),
        "good": pytest.approx(3.75),
    }
    drawn = frontier(Analysis(asking(dear_and_cheap, costs=["total"], hour_usd=36.0)))
    assert drawn is not None
    assert any("at 36 dollars an hour" in note for note in drawn.section.notes)


def read_from(run: RunResult, *sources: tuple[str, int | None]) -> RunResult:
    """The run, whose part `p` has four records left of these sources: name, stage and size."""
    made_of = tuple(
        Ingredient(role="", kind="source", name=name, num_records=size, stage=name) for name, size in sources
    )
    part = DatasetSummary(
        part="p", kind="pair", num_records=4, made_of=made_of, content_hash="h", stage="prepared"
    )
    return run.model_copy(update={"datasets": (part, part.model_copy(update={"part": "q", "stage": "r"}))})


def test_priced_records_are_paid_once_per_seed_in_the_number_read(
    dear_and_cheap: ExperimentResult,
) -> None:
    """Seeds read 10, 20 and 30 records at 0.5 dollars, each for two parts; another source has no price."""
    runs = [
        read_from(
            run, (f"bought seed {run.seed}" if run.seed else "bought", 10 * (run.seed + 1)), ("free", 9)
        )
        if run.variant == "plain"
        else run
        for run in dear_and_cheap.runs
    ]
    priced = dear_and_cheap.model_copy(
        update={"runs": tuple(runs), "table": {**dear_and_cheap.table, "record_usd": {"bought": 0.5}}}
    )
    found = lines(priced, costs=["dollars"])
    assert {row: line["amount"] for row, line in found.items()} == {
        "plain": "10",
        "waste": "0",
        "good": "0.75",
    }
    # With 36 dollars for an hour, the mean of 20 seconds costs 0.20 more.
    assert lines(priced, costs=["total"], hour_usd=36.0)["plain"]["amount"] == "10.2"
    assert lines(priced, costs=["seconds"])["plain"]["amount"] == "20"
    drawn = frontier(Analysis(asking(priced, costs=["dollars"])))
    assert drawn is not None
    assert (
        "Dollars hold the price of each record of these sources, as the file states it: bought 0.5."
        in drawn.notes
    )


def test_a_part_without_prepare_steps_is_its_source(dear_and_cheap: ExperimentResult) -> None:
    part = DatasetSummary(part="p", kind="pair", num_records=4, content_hash="h", stage="s")
    named = {"datasets": (part,), "parameters": {"data.p.source": "bought"}}
    runs = tuple(run.model_copy(update=named) for run in dear_and_cheap.runs)
    table = {**dear_and_cheap.table, "record_usd": {"bought": 0.5}}
    priced = dear_and_cheap.model_copy(update={"runs": runs, "table": table})
    assert lines(priced, costs=["dollars"])["waste"]["amount"] == "2"


def test_what_a_source_that_the_store_no_longer_has_cost_is_unknown(
    dear_and_cheap: ExperimentResult,
) -> None:
    runs = tuple(read_from(run, ("bought", None), ("free", None)) for run in dear_and_cheap.runs)
    of_free = dear_and_cheap.model_copy(update={"runs": runs})
    table = {**dear_and_cheap.table, "record_usd": {"bought": 0.5}}
    found = spending(of_free.model_copy(update={"table": table}), runs[:1], "dollars", 0.0)
    assert (found.amount, found.why_unknown) == (None, "the store no longer has its priced source")
    assert spending(of_free, runs[:1], "dollars", 0.0).amount == 0.0


@pytest.mark.parametrize("figure", [{"costs": ["total"]}, {"costs": ["seconds"], "hour_usd": 2.0}])
def test_a_total_needs_the_price_of_an_hour_and_the_price_a_total(
    figure: dict[str, Any], dear_and_cheap: ExperimentResult
) -> None:
    with refused("total", "hour_usd", kind=ValidationError):
        frontier(Analysis(asking(dear_and_cheap, **figure)))


def test_data_of_each_seed_cost_what_their_own_stage_cost(dear_and_cheap: ExperimentResult) -> None:
    costs = tuple(asked(f"good seed {n}", stage=str(n), usd=usd) for n, usd in enumerate((0.1, 0.2, 0.6)))
    own = dear_and_cheap.model_copy(update={"costs": costs})
    assert lines(own, costs=["dollars"])["good"]["amount"] == "0.3"


def test_a_row_across_an_axis_costs_the_sum_over_its_values(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [taking(make_runs("gold", {task: (0.5, 0.7)}, data_set=task), 3, 5) for task in ("MRPC", "STSb")]
    result = make_result(*rows, across="data_set")
    found = lines(result, costs=["seconds"])["gold"]
    assert (found["amount"], found["mean"], found["n_seeds"]) == ("8", "60.000000", "2")
    assert lines(result, costs=["seconds"], score="MRPC")["gold"]["amount"] == "4"


@pytest.mark.parametrize(
    ("costs", "kind", "reason"),
    [
        ((asked("good", is_priced=False),), "dollars", "no price is known; set `llm.price`"),
        ((asked("good", num_requests=0),), "dollars", "another stage paid for its LLM's answers"),
        ((asked("good", num_requests=0),), "tokens", "another stage paid for its LLM's answers"),
        ((), "dollars", "its LLM's requests were not recorded"),
    ],
)
def test_an_unknown_cost_is_not_zero(
    dear_and_cheap: ExperimentResult, costs: tuple[CostResult, ...], kind: str, reason: str
) -> None:
    data = DatasetSummary(part="p", kind="triplet", num_records=9, llm="an-llm", content_hash="h", stage="s")
    runs = tuple(
        run.model_copy(update={"datasets": (data,) if run.variant == "good" else ()})
        for run in dear_and_cheap.runs
    )
    unknown = dear_and_cheap.model_copy(update={"costs": costs, "runs": runs})
    line = lines(unknown, costs=[kind])["good"]
    assert (line["amount"], line["left_out"], line["on_frontier"]) == ("", reason, "no")
    found = frontier(Analysis(asking(unknown, costs=[kind])))
    assert found is not None
    assert any(
        note.startswith("Not drawn against") and note.endswith(f"good: {reason}.") for note in found.notes
    )


def test_rows_without_a_score_or_seconds_are_named_with_the_reason(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (
        taking(make_runs("whole", {"A": (0.5,), "B": (0.5,)}), 9),
        taking(make_runs("half", {"A": (0.9,)}), 1),
        taking(make_runs("undefined", {"A": (float("nan"),), "B": (0.5,)}), 1),
        make_runs("old", {"A": (0.9,), "B": (0.9,)}),
    )
    result = make_result(*rows, figures={"frontier": {"costs": ["seconds"]}})
    assert {row: line["left_out"] for row, line in lines(result).items()} == {
        "whole": "",
        "half": "not scored on all of them",
        "undefined": "its score is undefined (NaN)",
        "old": "its seconds were not recorded",
    }
    assert lines(result)["whole"]["on_frontier"] == "yes"


def test_without_points_there_are_reasons_and_no_figure(make_runs: MakeRuns, make_result: MakeResult) -> None:
    result = make_result(make_runs("old", {"A": (0.9,)}), figures={"frontier": {"costs": ["seconds"]}})
    (study,) = Report(result).figures
    assert study.section is not None
    assert (study.section.name, study.section.blocks) == ("frontier", ())
    assert study.draw() is None
    assert frontier(Analysis(result.model_copy(update={"runs": ()}))) is None
    assert frontier(Analysis(result.model_copy(update={"table": {}}))) is None


def test_a_ceiling_is_never_on_the_frontier(dear_and_cheap: ExperimentResult) -> None:
    result = dear_and_cheap.model_copy(update={"table": {**dear_and_cheap.table, "ceiling": ["good"]}})
    assert lines(result)["good"]["on_frontier"] == "no"
    assert lines(result)["plain"]["on_frontier"] == "yes"


PLACES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(PLACES)
def test_a_row_on_the_frontier_dominates_every_row_off_it(places: list[tuple[int, int]]) -> None:
    on = pareto_optimal(dict(enumerate(places)))
    for index, (cost, score) in enumerate(places):
        better = [places[i] for i in on if places[i][0] <= cost and places[i][1] >= score]
        assert (index in on) == (better == [(cost, score)] * len(better))
    # Along the frontier, scores rise with the cost.
    best = sorted({places[i] for i in on})
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(best))


@pytest.fixture
def style() -> Iterator[None]:
    with figure_style():
        yield


@pytest.mark.usefixtures("style")
def test_points_are_named_and_a_step_line_joins_the_best(dear_and_cheap: ExperimentResult) -> None:
    found = frontier(Analysis(dear_and_cheap))
    assert found is not None
    panel, _ = found.draw().axes
    assert [text.get_text() for text in panel.texts] == ["plain", "waste", "good"]
    joint = next(np.asarray(line.get_xydata()) for line in panel.lines if line.get_color() == JOINT_COLOUR)
    assert joint[:3] == pytest.approx(np.asarray([[20, 60], [300, 60], [300, 80]]))
    assert panel.get_xscale() == "log"
    assert panel.get_xlabel() == "seconds"


def crowd_at(runs: tuple[RunResult, ...], budgets: Sequence[str]) -> Iterator[RunResult]:
    """Twelve variants at each budget that cost and score the same."""
    for budget in budgets:
        for number in range(12):
            for run in runs:
                update = {
                    "variant": f"a-row-with-a-long-name-{number}",
                    "identity": f"{budget} {number} {run.seed}",
                    "axes": {"budget": budget},
                    "seconds": run.seconds * float(budget),
                }
                yield run.model_copy(update=update)


@pytest.mark.usefixtures("style")
def test_crowded_points_keep_their_names_on_a_larger_panel_of_their_own(
    dear_and_cheap: ExperimentResult,
) -> None:
    plain = tuple(run for run in dear_and_cheap.runs if run.variant == "plain")
    runs = (*plain, *crowd_at(plain, ["10", "100"]))
    result = dear_and_cheap.model_copy(update={"runs": runs})
    found = frontier(Analysis(asking(result, costs=["seconds", "total"], hour_usd=1.0)))
    assert found is not None
    crowd = [f"a-row-with-a-long-name-{number}" for number in range(12)]
    figures = [part.draw() for part in found.parts]
    assert [figure.axes[0].get_xlabel() for figure in figures] == ["seconds", "US dollars in all"]
    for figure in figures:
        panel, legend = figure.axes
        assert Counter(text.get_text() for text in panel.texts) == Counter(["plain", *crowd, *crowd])
        names = [text.get_text() for text in legend.get_legend().get_texts()]
        assert {*names} == {"10", "100", "every budget"}
        assert figure.get_figheight() <= HIGHEST


@pytest.mark.usefixtures("style")
def test_crowded_names_are_moved_apart_and_linked_to_their_points(
    dear_and_cheap: ExperimentResult,
) -> None:
    plain = tuple(run for run in dear_and_cheap.runs if run.variant == "plain")
    found = frontier(Analysis(dear_and_cheap.model_copy(update={"runs": tuple(crowd_at(plain, ["10"]))})))
    assert found is not None
    figure = found.draw()
    figure.draw_without_rendering()
    panel = figure.axes[0]
    boxes = [Text.get_window_extent(text) for text in panel.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    leaders = [line for line in panel.lines if line.get_color() == LEADERS["linecolor"]]
    assert len(leaders) >= len(panel.texts) // 2


@pytest.mark.usefixtures("style")
def test_zero_is_to_the_left_of_a_logarithmic_scale(dear_and_cheap: ExperimentResult) -> None:
    costs = (asked("good", usd=12.0), asked("waste", usd=0.02, stage="t"))
    found = frontier(Analysis(asking(dear_and_cheap.model_copy(update={"costs": costs}), costs=["dollars"])))
    assert found is not None
    panel = found.draw().axes[0]
    assert panel.get_xscale() == "symlog"
    labels = [label.get_text() for label in panel.get_xticklabels()]
    assert labels == ["0", "0.1", "1", "10"]


@pytest.mark.usefixtures("style")
def test_names_stay_in_their_panels(dear_and_cheap: ExperimentResult) -> None:
    found = frontier(Analysis(asking(dear_and_cheap, costs=["seconds", "dollars", "tokens"])))
    assert found is not None
    figure = replace(found, caption="WIDE WORDS " * 20).draw()
    figure.draw_without_rendering()
    panels = figure.axes[:-1]
    assert len(panels) == 3
    for panel in panels:
        room = panel.get_window_extent()
        for text in panel.texts:
            box = text.get_window_extent()
            assert box.x0 > room.x0 - 1
            assert box.x1 < room.x1 + 1
