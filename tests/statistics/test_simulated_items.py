"""benchmarks/shared_sentences.py simulates what the product computes; a smaller grid bears out its claims."""

import math
from pathlib import Path

import numpy as np
import pytest
import shared_sentences as simulation
from item_effects import EFFECTS, Clusters, Lines, Mixed, factors
from sentence_graphs import Graph, figures, graph_of, graphs
from shared_sentences import half_widths, items_noise

from synthbench.data.records import Ranking, Record, RetrievalText, ScoredPair
from synthbench.sources.description import Roots
from synthbench.statistics.differences import Difference, Noise
from synthbench.statistics.item_noise import Influences, TestItems, item_variances
from synthbench.statistics.shared_sentences import SharedSentences

SEEDS = 3
PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def random_pairs(number: int, sentences: int, seed: int = 0) -> Graph:
    """Return a set of pairs of few sentences, in two subsets."""
    random = np.random.default_rng(seed)
    pairs = random.integers(sentences, size=(number, 2))
    texts = tuple(frozenset(map(str, pair)) for pair in pairs.tolist())
    return Graph(texts, np.zeros(number, np.int64), np.arange(number) * 2 // number)


def items_of(graph: Graph) -> TestItems:
    entries = [(item, int(text)) for item, texts in enumerate(graph.sentences) for text in texts]
    items, sentences = np.array(entries).T
    return TestItems(
        len(graph.sentences), SharedSentences(items, sentences, len(graph.sentences)), graph.subsets
    )


def effects(
    graph: Graph, sentences: float, components: float, number: int, random: np.random.Generator
) -> np.ndarray:
    shares = factors(sentences, components)
    return np.sum([shares[each] * graph.effects(each, number, random) for each in EFFECTS], axis=0)


def lines_of(graph: Graph, values: np.ndarray) -> Lines:
    """Return what lines tell, taken apart into two and mixed again."""
    half = values * np.linspace(0.2, 0.8, values.shape[1])
    return Mixed(Clusters.of(graph, values - 3 * half), Clusters.of(graph, half)).at(3.0)


GRAPHS = [random_pairs(200, 150), random_pairs(40, 400), random_pairs(120, 20)]


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_simulated_noise_of_items_is_what_the_product_computes(graph: Graph) -> None:
    random = np.random.default_rng(1)
    for _ in range(30):
        rows = random.normal(size=(2, SEEDS, len(graph.sentences)))
        rows[0] += effects(graph, 0.5, 0.1, 1, random)
        means = rows.mean(axis=1)
        # What a mean's errors hold of the interaction: those of its deviations from the mean, by row.
        deviations = [lines_of(graph, row - row.mean(axis=0)).errors.sum(axis=1) for row in rows]
        interaction = sum(deviations)[:, None] / (SEEDS * (SEEDS - 1))

        lines = lines_of(graph, means[:1] - means[1:])
        ours = items_noise(lines, interaction, len(graph.sentences))

        influences = [Influences(row, tuple(range(SEEDS))) for row in rows]
        (theirs,) = item_variances(influences, [items_of(graph)])
        (today,) = item_variances(influences)
        expected = {
            "independent": (today.squared_error, len(graph.sentences) - 1),
            "printed": (theirs.squared_error, theirs.degrees),
            "components": (theirs.component_squared_error, theirs.component_degrees),
        }
        for method, wanted in expected.items():
            assert [each[0] for each in ours[method]] == pytest.approx(wanted, rel=1e-5)


def test_an_average_is_one_sum_over_the_union_of_its_items() -> None:
    union, random = Graph.union(GRAPHS), np.random.default_rng(2)
    rows = random.normal(size=(2, 1, len(union.sentences)))

    ours = items_noise(lines_of(union, rows[0] - rows[1]), np.zeros((3, 1)), len(union.sentences))

    influences = [Influences(row, (0,), is_seeded=False) for row in rows]
    (theirs,) = item_variances(influences, [items_of(graph) for graph in GRAPHS])
    assert [each[0] for each in ours["printed"]] == pytest.approx(
        (theirs.squared_error, theirs.degrees), rel=1e-5
    )


def test_half_widths_are_those_of_the_products_differences() -> None:
    errors, degrees = np.random.default_rng(3).exponential(size=(2, 2, 300))

    found = half_widths([(error, 1 + 5 * freedom) for error, freedom in zip(errors, degrees, strict=True)])

    for number, width in enumerate(found):
        noise = [
            Noise(error[number], 1 + 5 * freedom[number])
            for error, freedom in zip(errors, degrees, strict=True)
        ]
        assert width == pytest.approx(Difference(0.0, tuple(noise)).half_width)


@pytest.mark.parametrize("graph", [*GRAPHS, Graph.union(GRAPHS)])
def test_the_true_variance_is_that_of_the_simulated_scores(graph: Graph) -> None:
    scores = effects(graph, 0.5, 0.2, 20_000, np.random.default_rng(4)) @ graph.weights

    assert scores.var() == pytest.approx(graph.variance(0.5, 0.2), rel=5 / math.sqrt(10_000))


def test_intervals_hold_under_sentence_effects_where_todays_are_too_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulation, "SENTENCES", (0.6,))
    monkeypatch.setattr(simulation, "COMPONENTS", (0.0,))
    number = 600

    cells = dict(simulation.measured(random_pairs(400, 200), number, np.random.default_rng(5)))

    assert len(cells) == len(simulation.SEEDS) * len(simulation.NOISES)
    for cell, found in cells.items():
        assert found.coverage["printed"] > 0.93 - 4 * math.sqrt(0.93 * 0.07 / number)
        assert found.width["printed"] > 0.95
        if not cell.noise.has_seeds and cell.seeds > 3:
            assert found.coverage["independent"] < 0.9


def test_the_command_writes_the_tables_that_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simulation, "SENTENCES", (0.0, 0.6))
    monkeypatch.setattr(simulation, "COMPONENTS", (0.0, 0.2))
    monkeypatch.setattr(simulation, "graphs", lambda roots: {"first": GRAPHS[0], "second": GRAPHS[1]})
    monkeypatch.setattr(simulation, "RESULTS", tmp_path / "results" / "cells.csv")
    monkeypatch.setattr(simulation, "SHAPES", tmp_path / "results" / "graphs.csv")
    monkeypatch.setattr("sys.argv", ["shared_sentences.py", "--replications", "50"])
    monkeypatch.setenv("SYNTHBENCH_DATA", str(tmp_path))

    simulation.main()

    lines, shapes = simulation.read(simulation.RESULTS), simulation.read(simulation.SHAPES)
    assert len(lines) == 2 * 4 * len(simulation.SEEDS) * len(simulation.NOISES)
    assert [shape["items"] for shape in shapes] == ["200", "40"]
    printed = capsys.readouterr().out.splitlines()
    assert set(simulation.by_column(lines, shapes)) <= set(printed)


def test_the_page_shows_the_committed_tables_and_all_of_their_cells_met_the_goal() -> None:
    lines, shapes = simulation.read(simulation.RESULTS), simulation.read(simulation.SHAPES)
    page = PAGE.read_text(encoding="utf-8").splitlines()

    cells = [len(each) for each in (simulation.SEEDS, simulation.SENTENCES, simulation.COMPONENTS)]
    assert len(lines) == len(shapes) * len(simulation.NOISES) * math.prod(cells)
    assert set(simulation.by_column(lines, shapes)) <= set(page)
    coverage = [float(line["coverage_printed"]) for line in lines if line["components"] == "0.0"]
    error = simulation.monte_carlo_error(simulation.GOAL, simulation.REPLICATIONS)
    assert min(coverage) >= simulation.GOAL - error


def test_the_committed_graphs_are_those_of_the_real_sets(real_data: Path) -> None:
    found = graphs(Roots(data=real_data))

    expected = [
        {"column": name, **{key: str(value) for key, value in figures(each).items()}}
        for name, each in found.items()
    ]
    assert simulation.read(simulation.SHAPES) == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([ScoredPair(id="1", sentence1="A b.", sentence2="a B", score=0.5)], [{"a b"}]),
        (
            [
                Ranking(id="1", query="Which?", candidates=("this", "that"), grades=(1.0, 0.0)),
                Ranking(id="2", query="Unanswered", candidates=("this",), grades=(0.0,)),
            ],
            [{"which", "this", "that"}],
        ),
        (
            [
                RetrievalText(id="p", text="passage"),
                RetrievalText(id="r", text="another"),
                RetrievalText(id="q", text="query", judged=("p", "r"), grades=(2.0, 0.0)),
            ],
            [{"query", "passage"}],
        ),
    ],
)
def test_an_item_is_a_pair_or_a_query_with_what_decides_its_score(
    records: list[Record], expected: list[set[str]]
) -> None:
    assert list(graph_of(records).sentences) == expected
