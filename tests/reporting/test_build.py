from collections.abc import Callable

import pytest
from pydantic import ValidationError

from synthbench.config.table_options import TableOptions
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.table import Cell, Table
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult, TaskScores

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


def cell(table: Table, row: int, column: int) -> Cell:
    found = table.rows[row].cells[column]
    assert found is not None
    return found


def bold(table: Table) -> list[tuple[str, str]]:
    return [
        (row.variant, column.title)
        for row in table.rows
        for column, found in zip(table.columns, row.cells, strict=True)
        if found is not None and found.is_bold
    ]


def test_rows_are_grouped_by_axis_in_file_order(small_result: ExperimentResult) -> None:
    table = build_table(Analysis(small_result))

    assert table.header == ("base", "variant", "STSb", "SICK-R", "Average")
    assert [table.row_names(row) for row in table.rows] == [
        ("MiniLM", "gold"),
        ("MiniLM", "augsbert_k"),
        ("MiniLM", "cross-encoder †"),
        ("static", "gold"),
        ("static", "augsbert_k"),
    ]


def test_cells_hold_mean_deviation_and_number_of_seeds(small_result: ExperimentResult) -> None:
    table = build_table(Analysis(small_result))

    first = cell(table, 0, 0)
    assert (first.mean, first.standard_deviation) == pytest.approx((71.0, 1.0))
    assert (first.num_seeds, first.num_items, first.num_dropped) == (3, 100, 0)
    assert cell(table, 3, 0).num_seeds == 2


def test_the_average_is_computed_for_each_seed(make_runs: MakeRuns, make_result: MakeResult) -> None:
    # Seed 0: (0.2 + 0.4) / 2 = 0.3; seed 1: (0.4 + 0.2) / 2 = 0.3; seed 2 lacks B.
    runs = make_runs("only", {"A": (0.2, 0.4, 0.9), "B": (0.4, 0.2)})

    average = cell(build_table(Analysis(make_result(runs, averages={"Average": ["A", "B"]}))), 0, 2)

    assert (average.mean, average.standard_deviation) == pytest.approx((30.0, 0.0))
    assert average.num_seeds == 2


def test_only_a_significant_primary_comparison_in_a_rows_favour_is_bold(
    small_result: ExperimentResult,
) -> None:
    assert bold(build_table(Analysis(small_result))) == [("augsbert_k", "STSb")]


def test_ceilings_are_never_bold_and_come_last(small_result: ExperimentResult) -> None:
    table = build_table(Analysis(small_result))

    assert [row.variant for row in table.groups[0].blocks[1]] == ["cross-encoder"]
    assert "† Ceiling, compared with no other row: cross-encoder." in table.notes


def test_without_a_baseline_nothing_is_bold_and_a_note_says_so(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs("low", {"A": (0.1, 0.11)}), make_runs("high", {"A": (0.9, 0.91)})]

    table = build_table(Analysis(make_result(*rows)))

    assert bold(table) == []
    assert (
        "No baseline (`baseline`, `table.compare_to`), so nothing is primary and nothing is claimed."
        in table.notes
    )


def test_ties_and_single_rows_are_not_bold(make_runs: MakeRuns, make_result: MakeResult) -> None:
    tied = [make_runs(name, {"A": (0.5, 0.51)}) for name in ("one", "two")]

    table = build_table(Analysis(make_result(*tied, compare_to="one")))
    assert bold(table) == []
    assert "Nothing is bold: no primary comparison is significant in a row's favour (5 %)." in table.notes
    assert bold(build_table(Analysis(make_result(make_runs("alone", {"A": (0.5, 0.5)}))))) == []


def test_one_seed_is_never_bold_and_has_a_note(make_runs: MakeRuns, make_result: MakeResult) -> None:
    table = build_table(
        Analysis(make_result(make_runs("one", {"A": (0.9,)}), make_runs("two", {"A": (0.1,)})))
    )

    assert bold(table) == []
    assert "One seed (0): the noise between seeds is unknown, so nothing is claimed." in table.notes
    assert table.spread_text(cell(table, 0, 0)) == ""


def generated(run: RunResult, method: str) -> RunResult:
    part = DatasetSummary(
        part="silver", kind="scored_pair", method=method, num_records=1, content_hash="h", stage="s"
    )
    return run.model_copy(update={"datasets": (part,)})


@pytest.mark.parametrize("scores", [(0.5, 0.6), (0.5,)])
def test_a_single_comparable_row_has_no_note_on_bold(
    make_runs: MakeRuns, make_result: MakeResult, scores: tuple[float, ...]
) -> None:
    rows = [make_runs("alone", {"A": scores}), make_runs("top", {"A": scores})]

    table = build_table(Analysis(make_result(*rows, ceiling=["top"])))

    assert not [note for note in table.notes if "bold" in note.lower() or "claim" in note]
    assert any(note.startswith(("Mean ± ", "One seed (0).")) for note in table.notes)


def test_a_tables_further_notes_say_what_the_seeds_redraw(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    silver = tuple(generated(run, "augsbert") for run in make_runs("silver", {"A": (0.5, 0.6)}))
    result = make_result(silver, make_runs("gold", {"A": (0.5, 0.6)}))

    table = build_table(Analysis(result))

    interval = "Mean and 95 % confidence interval (Student's t) over n = 2 seeds (0, 1)."
    assert interval in " ".join(table.figure_notes)
    redrawn = "Each seed redraws: order of training."
    once = "Made once for all seeds, so their noise is not in ±: generation."
    assert {redrawn, once} <= set(table.further_notes)


def test_a_figures_notes_name_rows_that_can_not_be_compared(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    runs = make_runs("top", {"A": (0.5,)}), make_runs("gold", {"A": (0.6,)}, items=7)
    result = make_result(*runs, ceiling=["top"]).model_copy(update={"overrides": ("--seeds 0",)})

    assert build_table(Analysis(result)).figure_notes == (
        "Scores × 100: cosine_spearman. One seed (0): the noise between seeds is unknown, so there are no"
        " intervals.",
        "† Ceiling, compared with no other row: top.",
        "Run with overrides: --seeds 0. A: rows are not comparable: scored on 7 and 100 items.",
    )


def test_a_note_names_each_rows_settings_chosen_on_dev(make_runs: MakeRuns, make_result: MakeResult) -> None:
    path = "data.silver.sampler.k"
    runs = make_runs("bm25", {"A": (0.5, 0.6, 0.7)}, base="static")
    chosen = [run.model_copy(update={"chosen": {path: k}}) for run, k in zip(runs, (5, 5, 3), strict=True)]
    alone = make_runs("one", {"A": (0.5,)})[0].model_copy(update={"chosen": {path: 7, "train.epochs": 2}})

    notes = build_table(
        Analysis(make_result(tuple(chosen), make_runs("gold", {"A": (0.5, 0.6)}), (alone,)))
    ).notes

    assert [note for note in notes if note.startswith("Chosen on dev: ")] == [
        "Chosen on dev: bm25 (static): k = 5, 5, 3 for seeds 0, 1, 2.",
        "Chosen on dev: one: k = 7 for seed 0.",
        "Chosen on dev: one: epochs = 2 for seed 0.",
    ]


def test_scores_have_the_evaluators_title_if_it_has_one(make_runs: MakeRuns, make_result: MakeResult) -> None:
    (run,) = make_runs("one", {"A": (0.5,)})
    titled = run.model_copy(
        update={"scores": tuple(s.model_copy(update={"title": "Spearman (all)"}) for s in run.scores)}
    )

    table = build_table(Analysis(make_result((titled,))))

    assert "Scores × 100: Spearman (all)." in table.notes
    assert [column.metric for column in table.columns] == ["cosine_spearman"]


def test_rows_without_seeds_do_not_affect_the_usual_number_of_seeds(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    baselines = [make_runs(f"baseline-{number}", {"A": (0.5,)}) for number in range(3)]

    table = build_table(Analysis(make_result(make_runs("trained", {"A": (0.5, 0.6)}), *baselines)))

    assert table.num_seeds == 2
    assert table.seeds_text(cell(table, 1, 0)) == "[n=1]"


def test_overrides_are_the_first_note(make_runs: MakeRuns, make_result: MakeResult) -> None:
    result = make_result(make_runs("one", {"A": (0.5,)}))
    partial = result.model_copy(update={"overrides": ("--seeds 0", "--set train.epochs=1")})

    first = build_table(Analysis(partial)).notes[0]

    assert first == "Run with overrides: --seeds 0 --set train.epochs=1."
    assert build_table(Analysis(result)).notes[1].startswith("Scores × 100: ")


def test_a_caption_names_the_remaining_rows(make_runs: MakeRuns, make_result: MakeResult) -> None:
    result = make_result(make_runs("plain", {"A": (0.5,)}), caption="Plain and silver")

    def caption(*overrides: str) -> str:
        return build_table(Analysis(result.model_copy(update={"overrides": overrides}))).caption

    assert caption("--variant plain", "--seeds 0") == "Only plain of: Plain and silver"
    assert caption("--seeds 0") == "Plain and silver"


def test_undefined_scores_are_never_bold(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        make_runs("undefined", {"A": (float("nan"), float("nan"))}),
        make_runs("high", {"A": (0.8, 0.81)}),
        make_runs("low", {"A": (0.1, 0.11)}),
    ]

    assert bold(build_table(Analysis(make_result(*rows, compare_to="low")))) == [("high", "A")]


def test_scores_measured_differently_are_not_compared(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        make_runs("all", {"STS12": (0.9, 0.91)}, items=3108),
        make_runs("clean", {"STS12": (0.5, 0.51)}, items=2106, dropped=1002),
    ]

    table = build_table(Analysis(make_result(*rows, compare_to="clean")))

    assert bold(table) == []
    assert "Nothing is claimed: rows can't be compared." in table.notes
    wanted = "STS12: rows are not comparable: scored on 3108 and 2106 (1002 dropped as leaks) items."
    assert wanted in table.notes


def test_dropped_pairs_are_counted_per_test_set(make_runs: MakeRuns, make_result: MakeResult) -> None:
    table = build_table(Analysis(make_result(make_runs("one", {"STS12": (0.9,)}, items=2106, dropped=1002))))

    assert "Items scored: STS12 2106 (1002 dropped as leaks)." in table.notes


def test_missing_sets_cells_and_failures_are_named(small_result: ExperimentResult) -> None:
    result = small_result.model_copy(
        update={"failures": ("gold, seed 2: no disk space",), "notes": ("A note.",)}
    )

    notes = build_table(Analysis(result)).notes

    assert "Not found, so not scored: STS14." in notes
    assert "– Not scored." in notes
    assert notes[-2:] == ("A note.", "Failed: gold, seed 2: no disk space")


def test_an_average_over_a_missing_test_set_is_left_out(make_runs: MakeRuns, make_result: MakeResult) -> None:
    table = build_table(
        Analysis(make_result(make_runs("one", {"A": (0.5,)}), averages={"Average": ["A", "B"]}))
    )

    assert [column.title for column in table.columns] == ["A"]
    assert "No column 'Average': some of its test sets were not found." in table.notes


def test_columns_choose_and_order_the_test_sets(small_result: ExperimentResult) -> None:
    result = small_result.model_copy(update={"table": {"columns": ["SICK-R", "STSb"]}})

    assert [column.title for column in build_table(Analysis(result)).columns] == ["SICK-R", "STSb"]


def test_a_set_scored_by_two_evaluators_gets_two_columns() -> None:
    scored = [
        TaskScores(task="A", evaluator=name, main_score=name, scores={name: 0.5}, num_items=1, stage="s")
        for name in ("sts", "pairs")
    ]
    run = RunResult(variant="one", seed=0, identity="i", scores=tuple(scored))

    table = build_table(Analysis(ExperimentResult(experiment="e", identity="i", runs=(run,))))

    assert [column.title for column in table.columns] == ["A (sts)", "A (pairs)"]
    assert "Scores × 100: A (sts): sts; A (pairs): pairs." in table.notes


def test_an_experiment_without_a_finished_run_has_an_empty_table() -> None:
    table = build_table(
        Analysis(
            ExperimentResult(experiment="e", identity="i", tasks=("A",), runs=(), failures=("all of it",))
        )
    )

    assert table.rows == ()
    assert "Failed: all of it" in table.notes


@pytest.mark.parametrize(
    "wrong", [{"colums": ["A"]}, {"decimals": "2"}, {"averages": {"A": []}}, {"columns": "A"}]
)
def test_options_of_the_table_are_strict(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TableOptions.model_validate(wrong)


def test_nearly_constant_labels_are_named(
    make_runs: Callable[..., tuple[RunResult, ...]], make_result: Callable[..., ExperimentResult]
) -> None:
    rows = []
    for name, spread in (("bm25", 0.002), ("kde", 0.009), ("random", 0.2)):
        data = DatasetSummary(
            part="silver", kind="scored_pair", method="augsbert", num_records=9, content_hash="h", stage="s",
            figures={"score_sd": spread},
        )  # fmt: skip
        rows.append(
            tuple(run.model_copy(update={"datasets": (data,)}) for run in make_runs(name, {"A": (0.5,)}))
        )

    notes = build_table(Analysis(make_result(*rows))).notes

    (flat,) = [note for note in notes if note.startswith("Scores of silver are nearly all equal")]
    assert flat.endswith(": bm25, kde.")
