"""Early against final dev scores: rank correlations by hand, which seeds and rows count."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from synthbench.reporting.figures.early_dev import (
    early_dev,
)
from synthbench.reporting.figures.style import figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
ON = {"early_dev": True}
SEEDS = ((0.1, 0.2, 0.3), (0.3, 0.1, 0.4), (0.2, 0.3, 0.5))
"""Dev scores of each seed after 10, 20 and 30 steps."""


@pytest.fixture
def made(make_runs: MakeRuns) -> Callable[..., tuple[RunResult, ...]]:
    def runs(
        variant: str = "bi-encoder", curves: Sequence[Sequence[float]] = SEEDS, **axes: str
    ) -> tuple[RunResult, ...]:
        return tuple(
            run.model_copy(
                update={
                    "history": tuple(
                        (10 * number, name, value)
                        for number, score in enumerate(curve, start=1)
                        for name, value in (("loss", 1.0), ("dev_score", score))
                    )
                }
            )
            for run, curve in zip(
                make_runs(variant, {"A": (0.5,) * len(curves)}, **axes), curves, strict=True
            )
        )

    return runs


def body(result: ExperimentResult) -> tuple[tuple[str, ...], ...]:
    found = early_dev(Analysis(result))
    assert found is not None
    return found.section.blocks[0].grids[0].body


def test_rank_correlations_equal_values_worked_out_by_hand(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    # Final ranks 1 2 3; after 10 steps 1 3 2: 1 - 6 (0 + 1 + 1) / 24 = 0.5; after 20 steps 2 1 3: 0.5.
    result = make_result(made(), figures=ON)
    found = early_dev(Analysis(result))
    assert found is not None
    assert found.section.blocks[0].grids[0].header == ("", "seeds", "33 %", "67 %", "100 %")
    assert body(result) == (("bi-encoder", "3", "0.50", "0.50", "1.00"),)
    assert found.section.notes == (
        "Spearman's rank correlation over 3 seeds of dev scores after a share of the steps with the final"
        " ones.",
        "Chance alone gives a correlation beyond ±1.00 in one case of twenty.",
    )
    lines = list(csv.DictReader(io.StringIO(csv_text(found.section.csv))))
    assert [(line["step"], line["rank_correlation"]) for line in lines] == [
        ("10", "0.500000"),
        ("20", "0.500000"),
        ("30", "1.000000"),
    ]


def test_every_dev_score_has_a_column_of_its_own(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    curves = [[float(seed * step % 7) for step in range(1, 301)] for seed in range(1, 5)]
    found = early_dev(Analysis(make_result(made(curves=curves), figures=ON)))
    assert found is not None
    header = found.section.blocks[0].grids[0].header
    assert (len(header), header[2:5], header[-1]) == (302, ("0.3 %", "0.7 %", "1.0 %"), "100.0 %")


def test_rows_are_named_by_their_differences(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    sets = [made(data_set=name) for name in ("MRPC", "STSb")]
    assert [line[0] for line in body(make_result(*sets, figures=ON))] == ["MRPC", "STSb"]

    both = [made(variant, data_set="MRPC") for variant in ("plain", "silver")]
    assert [line[0] for line in body(make_result(*both, figures=ON))] == ["plain (MRPC)", "silver (MRPC)"]


def test_undefined_scores_and_ties_give_no_correlation(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    nan = made(curves=(*SEEDS, (0.5, float("nan"), 0.1)))
    assert body(make_result(nan, figures=ON)) == (("bi-encoder", "3", "0.50", "0.50", "1.00"),)

    equal = made(curves=[(0.5, end) for end in (0.1, 0.2, 0.3)])
    assert body(make_result(equal, figures=ON)) == (("bi-encoder", "3", "–", "1.00"),)


def test_two_seeds_one_score_or_seed_optimisation_give_no_correlation(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    optimised = tuple(run.model_copy(update={"num_starts": 5}) for run in made())
    for runs in (made(curves=SEEDS[:2]), made(curves=[(0.1,), (0.2,), (0.3,)]), optimised):
        assert early_dev(Analysis(make_result(runs, figures=ON))) is None
    assert early_dev(Analysis(make_result(made()))) is None


def test_notes_name_rows_without_points_and_the_range_of_chance(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    optimised = tuple(run.model_copy(update={"num_starts": 5}) for run in made("chosen"))
    falling = made(curves=[(number, 10 - number) for number in range(10)])
    result = make_result(falling, optimised, figures=ON)
    found = early_dev(Analysis(result))
    assert found is not None
    assert body(result) == (("bi-encoder", "10", "−1.00", "1.00"),)
    _, chance, left_out = found.section.notes
    assert "beyond ±0.63 in one" in chance  # the table of Student's t has 2.306 for eight degrees of freedom
    assert left_out.startswith("Left out (") and left_out.endswith("): chosen.")


def test_a_row_whose_seeds_evaluate_at_different_steps_is_named_with_the_reason(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    uneven = made("uneven", curves=[(0.1, 0.2, 0.3), (0.1, 0.2), (0.3, 0.4)])
    found = early_dev(Analysis(make_result(made(), uneven, made("few", curves=SEEDS[:2]), figures=ON)))
    assert found is not None
    assert found.section.notes[2:] == (
        "Left out (fewer than three seeds, no early dev scores, or seed optimisation): few.",
        "Left out (fewer than three seeds with a defined dev score at every step of the row): uneven.",
    )


@pytest.fixture
def style() -> Iterator[None]:
    with figure_style():
        yield


@pytest.mark.usefixtures("style")
def test_the_figure_marks_twenty_percent_and_a_correlation_of_0_8(
    made: Callable[..., tuple[RunResult, ...]], make_result: MakeResult
) -> None:
    rows = [made(data_set="MRPC"), made(curves=(*SEEDS, (0.0, 0.0, 0.0)), data_set="STSb")]
    found = early_dev(Analysis(make_result(*rows, figures=ON)))
    assert found is not None

    panel, legend = found.draw().axes

    drawn = [
        (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()) for line in panel.lines
    ]
    assert ([20, 20], [0, 1]) in drawn
    assert ([0, 1], [0.8, 0.8]) in drawn
    assert drawn[2][0] == pytest.approx([100 / 3, 200 / 3, 100])
    assert drawn[2][1] == pytest.approx([0.5, 0.5, 1.0])
    labels = [text.get_text() for text in legend.get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == ["MRPC (n = 3)", "STSb (n = 4)"]
