"""Coverage of the intervals over seeds and items where test items share sentences, on graphs of real sets.

    SYNTHBENCH_DATA=DIR python benchmarks/shared_sentences.py [--replications 4000] [--only SICK-R]

Simulates the difference of two rows: effects of items, of sentences and of connected components, noise
between seeds, and the interaction of items and seeds. Prints each cell, and writes them to
`benchmarks/results/shared_sentences.csv`, the graphs to `shared_sentences_graphs.csv` beside it. Exit code 1
if an interval of the product covers the truth in less than 93 % (less a Monte Carlo error) of the experiments
of a cell without component effects.
"""

import argparse
import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from item_effects import EFFECTS, Array, Clusters, Lines, Mixed, factors
from measure import data_folder, exit_with
from scipy.special import ndtri, stdtrit
from sentence_graphs import Graph, figures, graphs

from synthbench.sources.description import Roots

REPLICATIONS = 4_000
SEEDS = (2, 3, 5, 10)
SENTENCES = (0.0, 0.3, 0.6)
COMPONENTS = (0.0, 0.05, 0.2)
"""Shares of an item's variance that come from its sentences, and from its connected component."""
INTERACTION = 0.5
"""The variance of one row's item-seed interaction; an item's variance in the difference of two rows is 1."""
CLUSTERED = 0.6
"""The share of the interaction's variance that comes from sentences, where it does."""
EQUAL_AT = 5
"""Where seeds add noise, it equals the items' at this number of seeds."""
GOAL = 0.93
CONFIDENCE = 0.95
BATCH = 50
RESULTS = Path(__file__).parent / "results" / "shared_sentences.csv"
SHAPES = RESULTS.with_name("shared_sentences_graphs.csv")


@dataclass(frozen=True)
class Noise:
    """Noise beside the effects of items: whether seeds move whole rows, and what the interaction follows."""

    name: str
    has_seeds: bool
    interaction_of_sentences: float


NOISES = (
    Noise("items", has_seeds=False, interaction_of_sentences=0.0),
    Noise("items, interaction by sentence", has_seeds=False, interaction_of_sentences=CLUSTERED),
    Noise("items and seeds", has_seeds=True, interaction_of_sentences=CLUSTERED),
)


class Interaction:
    """The item-seed interaction of one row, drawn from a pool of lines of variance 1.

    `seeds` normal lines are their mean and `seeds` - 1 contrasts, which are independent of it. The mean is
    part of the items' effects; the contrasts are drawn here.
    """

    LINES = 2_000

    def __init__(self, graph: Graph, of_sentences: float, random: np.random.Generator) -> None:
        found = [_lines(graph, of_sentences, random) for _ in range(0, self.LINES, BATCH)]
        self.variance = graph.variance(of_sentences, 0.0)
        self._scores = np.concatenate([each.scores for each in found])
        self._errors = np.concatenate([each.errors for each in found], axis=1)

    def drawn(self, number: int, seeds: int, random: np.random.Generator) -> tuple[Array, Array]:
        """Return the contrasts' scores (number, seeds - 1), and the part of a mean's errors (3, number)."""
        chosen = random.integers(len(self._scores), size=(number, seeds - 1))
        signs = random.choice((-1.0, 1.0), size=chosen.shape)
        scores = math.sqrt(INTERACTION) * signs * self._scores[chosen]
        return scores, INTERACTION * self._errors[:, chosen].mean(axis=-1) / seeds


def _lines(graph: Graph, of_sentences: float, random: np.random.Generator) -> Lines:
    effects = sum(
        factor * graph.effects(source, BATCH, random)
        for source, factor in factors(of_sentences, 0.0).items()
        if factor
    )
    clusters = Clusters.of(graph, np.asarray(effects))
    return Mixed(clusters, clusters).at(0.0)


Source = tuple[Array, Array]
"""A source of noise by experiment: squared errors and degrees of freedom."""
METHODS = ("independent", "printed", "components")


@dataclass(frozen=True)
class Experiments:
    """Differences of two rows whose truth is 0, with the noise of seeds, and that of items by method."""

    values: Array
    seeds: Source
    items: Mapping[str, Source]

    def half_widths(self, method: str) -> Array:
        """Return the half widths of the 95 % intervals over seeds and items."""
        return half_widths([self.seeds, self.items[method]])


def half_widths(sources: Sequence[Source]) -> Array:
    """Return half widths as `Difference` does: Satterthwaite's, at least those of each source alone."""
    whole = sum(error for error, _ in sources)
    freedom = whole**2 / sum(error**2 / degrees for error, degrees in sources)
    quantile = (1 + CONFIDENCE) / 2
    each = [stdtrit(degrees, quantile) * np.sqrt(error) for error, degrees in [(whole, freedom), *sources]]
    return np.asarray(np.maximum.reduce(each))


def items_noise(lines: Lines, interaction: Array, num_items: int) -> dict[str, Source]:
    """Return the noise of items by method; `interaction` is its part in the errors of the lines."""
    alone, sentences, components = np.maximum(lines.errors - interaction, 0.0)
    of_items, of_sentences, of_components = lines.degrees
    return {
        "independent": (alone, np.full_like(alone, num_items - 1)),
        "printed": (np.maximum(alone, sentences), np.minimum(of_items, of_sentences)),
        "components": (np.maximum(alone, components), of_components),
    }


def experiments(
    lines: Lines,
    interaction: Interaction,
    seeds: int,
    spread: float,
    num_items: int,
    random: np.random.Generator,
) -> Experiments:
    """Return experiments of `seeds` seeds; `lines` are the differences' mean item effects.

    `spread` is the standard deviation of a row between seeds, beside that of the interaction.
    """
    number = len(lines.scores)
    variances, parts = [], np.zeros((3, number))
    for _ in range(2):
        contrasts, part = interaction.drawn(number, seeds, random)
        contrasts = contrasts + spread * random.normal(size=contrasts.shape)
        variances.append((contrasts**2).mean(axis=1) / seeds)
        parts += part
    error = sum(variances)
    degrees = (seeds - 1) * error**2 / sum(each**2 for each in variances)
    values = lines.scores + spread * math.sqrt(2 / seeds) * random.normal(size=number)
    return Experiments(values, (error, degrees), items_noise(lines, parts, num_items))


@dataclass(frozen=True)
class Cell:
    """A cell of the grid for one graph."""

    seeds: int
    sentences: float
    components: float
    noise: Noise


@dataclass(frozen=True)
class Found:
    """By method: the share of intervals that hold the truth, and their mean width over the oracle's."""

    coverage: Mapping[str, float]
    width: Mapping[str, float]


def measured(graph: Graph, replications: int, random: np.random.Generator) -> Iterator[tuple[Cell, Found]]:
    """Yield all cells of a graph."""
    pools = {
        noise.interaction_of_sentences: Interaction(graph, noise.interaction_of_sentences, random)
        for noise in NOISES
    }
    cells = [Cell(*each) for each in product(SEEDS, SENTENCES, COMPONENTS, NOISES)]
    simulated: dict[Cell, list[Experiments]] = {cell: [] for cell in cells}
    for start in range(0, replications, BATCH):
        number = min(BATCH, replications - start)
        drawn = {each: Clusters.of(graph, graph.effects(each, number, random)) for each in EFFECTS}
        of_both = {each: Clusters.of(graph, graph.effects(each, number, random)) for each in EFFECTS[:2]}
        for (sentences, components), share in product(product(SENTENCES, COMPONENTS), pools):
            effects = _combined(drawn, factors(sentences, components))
            mixed = Mixed(effects, _combined(of_both, factors(share, 0.0)))
            for cell in cells:
                if _shares(cell) == (sentences, components, share):
                    lines = mixed.at(math.sqrt(2 * INTERACTION / cell.seeds))
                    spread = _spread(graph, cell)
                    size = len(graph.sentences)
                    simulated[cell].append(experiments(lines, pools[share], cell.seeds, spread, size, random))
    for cell in cells:
        pool = pools[cell.noise.interaction_of_sentences]
        yield cell, _found(simulated[cell], _oracle(graph, cell, pool))


def _combined(parts: Mapping[str, Clusters], shares: Mapping[str, float]) -> Clusters:
    return Clusters.combined([(shares[source], part) for source, part in parts.items()])


def _shares(cell: Cell) -> tuple[float, float, float]:
    return cell.sentences, cell.components, cell.noise.interaction_of_sentences


def _spread(graph: Graph, cell: Cell) -> float:
    """Return the standard deviation of a row between seeds."""
    if not cell.noise.has_seeds:
        return 0.0
    return math.sqrt(EQUAL_AT * graph.variance(cell.sentences, cell.components) / 2)


def _oracle(graph: Graph, cell: Cell, interaction: Interaction) -> float:
    """Return the half width of who knows the true variance."""
    of_rows = INTERACTION * interaction.variance + _spread(graph, cell) ** 2
    whole = graph.variance(cell.sentences, cell.components) + 2 * of_rows / cell.seeds
    return float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(whole)


def _found(simulated: Sequence[Experiments], oracle: float) -> Found:
    coverage, width = {}, {}
    for method in METHODS:
        widths = np.concatenate([each.half_widths(method) for each in simulated])
        values = np.concatenate([each.values for each in simulated])
        coverage[method] = float((np.abs(values) <= widths).mean())
        width[method] = float(widths.mean() / oracle)
    return Found(coverage, width)


Results = dict[tuple[str, Cell], Found]


def monte_carlo_error(share: float, replications: int) -> float:
    """Return the standard error of a simulated share."""
    return math.sqrt(share * (1 - share) / replications)


def missed(results: Results, replications: int) -> list[str]:
    """Return a line for each cell without component effects whose interval is too short."""
    found = []
    for (name, cell), each in results.items():
        coverage = each.coverage["printed"]
        error = monte_carlo_error(coverage, replications)
        if not cell.components and coverage < GOAL - error:
            found.append(f"{name}, {cell}: {100 * coverage:.1f} % (Monte Carlo error {100 * error:.2f})")
    return found


Line = Mapping[str, str]
"""A cell as a line of the table of all cells."""


def by_column(lines: Sequence[Line], shapes: Sequence[Line]) -> Iterator[str]:
    """Yield a Markdown line for each graph: the share of items that share a sentence, and least coverages.

    Under effects of sentences alone: as if items shared nothing, and as printed. Under effects of components:
    as printed, and by components.
    """
    for shape in shapes:
        own = [line for line in lines if line["column"] == shape["column"]]
        sentences, components = (
            [line for line in own if _effects(line) == kind] for kind in ("sentences", "components")
        )
        cells = [
            *(_least(sentences, method) for method in METHODS[:2]),
            *(_least(components, method) for method in METHODS[1:]),
        ]
        yield f"| {shape['column']} | {100 * float(shape['share_that_share']):.0f} % | {' | '.join(cells)} |"


def _effects(line: Line) -> str:
    return "components" if float(line["components"]) else "sentences" if float(line["sentences"]) else "none"


def _least(lines: Sequence[Line], method: str) -> str:
    return f"{100 * min(float(line[f'coverage_{method}']) for line in lines):.1f}"


def read(path: Path) -> list[Line]:
    """Return the lines of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def line(name: str, cell: Cell, found: Found) -> dict[str, str]:
    """Return a cell as a line of the table."""
    return {
        "column": name,
        "sentences": str(cell.sentences),
        "components": str(cell.components),
        "noise": cell.noise.name,
        "seeds": str(cell.seeds),
        **{f"coverage_{method}": f"{found.coverage[method]:.4f}" for method in METHODS},
        **{f"width_{method}": f"{found.width[method]:.3f}" for method in METHODS},
    }


def main() -> int:
    """Simulate all cells, or those of one column."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--only", metavar="COLUMN")
    given = parser.parse_args()
    columns = graphs(Roots(data=data_folder()))
    for name, each in columns.items():
        print(name, figures(each))
    results: Results = {}
    for seed, (name, each) in enumerate(columns.items()):
        if given.only in (None, name):
            for cell, found in measured(each, given.replications, np.random.default_rng(seed)):
                results[name, cell] = found
                print(*line(name, cell, found).values(), flush=True)
    lines = [line(*key, found) for key, found in results.items()]
    if given.only is None:
        write(RESULTS, lines)
        write(SHAPES, [{"column": name, **figures(each)} for name, each in columns.items()])
        print("\n".join(by_column(lines, read(SHAPES))))
    error = monte_carlo_error(CONFIDENCE, given.replications)
    print(f"{given.replications:,} experiments a cell, Monte Carlo error {100 * error:.2f} at 95 %")
    faults = missed(results, given.replications)
    print(
        "\n".join(faults)
        or "at least 93 % (less a Monte Carlo error) in every cell without component effects"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    exit_with(main)
