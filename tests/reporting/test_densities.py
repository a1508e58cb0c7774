"""Distributions of scores: counts, divergences worked out independently, which sets are compared."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import entropy

from synthbench.reporting.figures.densities import (
    densities,
)
from synthbench.reporting.figures.style import figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.statistics.histograms import MOST_LEVELS, coarse, density, divergence, score_counts

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)
AGAINST_GOLD = {"densities": {"parts": ["silver"], "reference": "gold"}}
GOLD = [0.1, 0.3, 0.4, 0.5, 0.7, 0.9]


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with figure_style():
        yield


def with_scores(runs: tuple[RunResult, ...], **parts: Sequence[float]) -> tuple[RunResult, ...]:
    data = tuple(
        DatasetSummary(
            part=part,
            kind="scored_pair",
            num_records=len(scores),
            score_counts=score_counts(scores),
            content_hash=str(scores),
            stage="s",
        )
        for part, scores in parts.items()
    )
    return tuple(run.model_copy(update={"datasets": data}) for run in runs)


@pytest.fixture
def samplers(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    return make_result(
        with_scores(make_runs("random", {"A": (0.5, 0.6)}), gold=GOLD, silver=[0.0] * 20),
        with_scores(make_runs("kde", {"A": (0.5, 0.6)}), gold=GOLD, silver=[0.1, 0.3, 0.4, 0.5, 0.7, 0.91]),
        with_scores(make_runs("gold-only", {"A": (0.5, 0.6)}), gold=GOLD),
        figures=AGAINST_GOLD,
    )


@given(SCORES, st.lists(st.floats(0, 1), min_size=10, max_size=30, unique=True))
def test_divergences_over_twenty_bins_equal_those_of_numpy_and_scipy(
    scores: list[float], reference: list[float]
) -> None:
    assume(np.count_nonzero(score_counts(reference)) > MOST_LEVELS)
    bins = [np.histogram(each, bins=20, range=(0, 1))[0] for each in (scores, reference)]
    ours = divergence(score_counts(scores), score_counts(reference))
    assert ours == pytest.approx(entropy(bins[0], bins[1] + 0.5), abs=1e-12)


@pytest.mark.parametrize(
    ("reference", "edges"),
    [([0, 1, 1], [0, 0.5, 1]), ([0, 0.5, 1], [0, 0.25, 0.75, 1]), ([0, 0.2, 1], [0, 0.1, 0.6, 1])],
)
def test_soft_scores_are_compared_with_their_class_or_grade(
    reference: list[float], edges: list[float]
) -> None:
    soft = [0.05, 0.24, 0.25, 0.49, 0.5, 0.61, 0.75, 0.9]
    bins = [np.histogram(each, bins=edges)[0] for each in (soft, reference)]
    expected = entropy(bins[0], bins[1] + 0.5)
    assert divergence(score_counts(soft), score_counts(reference)) == pytest.approx(expected)


def test_a_note_says_which_panels_have_classes(make_runs: MakeRuns, make_result: MakeResult) -> None:
    gold = {"MRPC": [0.0, 1.0, 1.0], "STSb": GOLD, "UKP": [0.0, 0.5, 1.0]}
    rows = [
        with_scores(make_runs("random", {"A": (0.5,)}, data_set=name), gold=scores, silver=[0.3, 0.6])
        for name, scores in gold.items()
    ]
    found = densities(Analysis(make_result(*rows, figures=AGAINST_GOLD)))
    assert found is not None
    assert found.section.notes[0] == (
        "KL: Kullback-Leibler divergence in nats, over 20 bins (MRPC 2; UKP 3: one for each score of the "
        "reference) with half a count added to each of the reference's."
    )


@pytest.mark.parametrize("number", range(21))
def test_bin_edges_count_as_in_numpy(number: int) -> None:
    for score in (number / 20, number * 0.05, np.linspace(0, 1, 21)[number]):
        score = min(float(score), 1.0)
        expected = np.histogram([score], bins=20, range=(0, 1))[0].tolist()
        assert list(coarse(score_counts([score]))) == expected


@given(SCORES)
def test_a_density_integrates_to_one(scores: list[float]) -> None:
    _, values = density(score_counts(scores))
    assert values.mean() == pytest.approx(1.0)
    assert values.min() >= 0


def test_each_row_with_scored_data_is_compared_with_the_reference(samplers: ExperimentResult) -> None:
    found = densities(Analysis(samplers))
    assert found is not None

    lines = found.section.blocks[0].grids[0].body

    reference = np.histogram(GOLD, bins=20, range=(0, 1))[0] + 0.5
    far = entropy([20, *[0] * 19], reference)
    near = entropy(reference - 0.5, reference)
    assert lines == (("gold", "6", "–"), ("random", "20", f"{far:.3f}"), ("kde", "6", f"{near:.3f}"))
    assert found.section.notes[0].startswith("KL: Kullback-Leibler divergence in nats, over 20 bins with")


def test_csv_has_a_line_for_each_set_and_bin(samplers: ExperimentResult) -> None:
    found = densities(Analysis(samplers))
    assert found is not None
    lines = list(csv.DictReader(io.StringIO(csv_text(found.section.csv))))
    assert len(lines) == 3 * 20
    first = next(line for line in lines if line["data"] == "random")
    assert (first["bin_from"], first["bin_to"], first["count"], first["n_records"]) == (
        "0.00",
        "0.05",
        "20",
        "20",
    )
    assert {line["kl_nats"] for line in lines if line["data"] == "gold"} == {""}


def test_data_shared_by_seeds_count_once(make_runs: MakeRuns, make_result: MakeResult) -> None:
    first, second, third = make_runs("kde", {"A": (0.5, 0.6, 0.7)})
    runs = (
        *with_scores((first, second), gold=GOLD, silver=[0.2]),
        *with_scores((third,), gold=GOLD, silver=[0.4, 0.6]),
    )
    found = densities(Analysis(make_result(runs, figures=AGAINST_GOLD)))
    assert found is not None
    assert [line[:2] for line in found.section.blocks[0].grids[0].body] == [("gold", "6"), ("kde", "3")]


def test_each_grid_point_with_its_own_data_has_a_panel(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        with_scores(make_runs("kde", {"A": (0.5,)}, base=base, data_set=name), gold=GOLD, silver=[score])
        for base in ("small", "large")
        for name, score in (("a", 0.1), ("b", 0.2))
    ]
    found = densities(Analysis(make_result(*rows, figures=AGAINST_GOLD)))
    assert found is not None
    assert [panel.title for panel in found.panels] == ["small, a, large, a", "small, b, large, b"]


def test_rows_with_the_same_data_share_a_line(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [with_scores(make_runs(name, {"A": (0.5,)}), gold=GOLD) for name in ("one", "two")]
    found = densities(Analysis(make_result(*rows, figures={"densities": {"parts": ["gold"]}})))
    assert found is not None
    assert found.section.blocks[0].grids[0].body == (("one, two", "6"),)
    assert found.section.notes == ("An example",)


def test_without_counted_scores_there_is_no_figure(make_runs: MakeRuns, make_result: MakeResult) -> None:
    runs = make_runs("kde", {"A": (0.5,)})
    assert densities(Analysis(make_result(runs, figures=AGAINST_GOLD))) is None
    assert densities(Analysis(make_result(with_scores(runs, gold=GOLD, silver=GOLD)))) is None


def test_the_figure_names_divergences_and_truncated_lines(samplers: ExperimentResult) -> None:
    found = densities(Analysis(samplers))
    assert found is not None
    figure = found.draw()
    below = " ".join(figure.get_supxlabel().split())
    assert "KL from gold: random 3.47, kde 0.58." in below
    assert "Cut off above: random (up to" in below
    assert "of Scott's bandwidth; of 0.01 where that is narrower: random. " in below
    labels = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == ["gold", "random", "kde"]


def test_results_of_earlier_versions_are_unchanged() -> None:
    summary = DatasetSummary(part="gold", kind="scored_pair", num_records=1, content_hash="h", stage="s")
    assert "score_counts" not in summary.model_dump()
