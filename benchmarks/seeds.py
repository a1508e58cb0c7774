"""Type 1 error and power of tests over seeds: Welch's, paired, and families of comparisons.

    python benchmarks/seeds.py [--replications 50000]

Simulates tables of rows with a shared baseline. Writes one line for each cell of the grid to
`benchmarks/results/seeds.csv` and prints ranges. Exit code 1 if Welch's test of a comparison errs in more
than 5.5 % of the tables (three Monte Carlo errors allowed).
"""

import argparse
import csv
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

Array = NDArray[np.float64]
REPLICATIONS = 50_000
OF_FAMILIES = 5
"""One table in so many is also tested as a family, which takes longer."""
SEEDS = (2, 3, 5, 10)
ROWS = (3, 10, 40)
CORRELATIONS = (0.0, 0.3, 0.6)
VARIANCES = ("equal", "1 to 3", "1 to 10", "baseline 10")
"""Equal; rising from the baseline's 1 to the last row's; or the baseline's is ten times the others'."""
RATIOS = (1, 3, 10, 30, 100, 1_000)
LEVEL = 0.05
POWER = 0.8
REAL = 0.3
"""The share of comparisons with a true difference, where some have one and others none."""
GOAL = 0.055
CHUNK = 5_000
RESULTS = Path(__file__).parent / "results" / "seeds.csv"
FAMILY = ("max-t", "Holm", "Bonferroni")


@dataclass(frozen=True)
class Cell:
    """A cell of the grid. Rows are `rows` - 1 methods after one baseline; all have the same true mean."""

    seeds: int
    rows: int
    variances: str
    correlation: float

    @property
    def true_variances(self) -> Array:
        """The variance between seeds of each row, the baseline first."""
        if self.variances == "baseline 10":
            return np.array([10.0, *[1.0] * (self.rows - 1)])
        return np.geomspace(1.0, {"equal": 1, "1 to 3": 3, "1 to 10": 10}[self.variances], self.rows)


@dataclass(frozen=True)
class Tables:
    """What simulated tables tell of each method beside the baseline: arrays of (tables, methods).

    `gains` are mean differences; `variances` and `baseline` are squared standard errors of the rows' means,
    `paired` those of the mean paired differences.
    """

    seeds: int
    gains: Array
    variances: Array
    baseline: Array
    paired: Array

    def head(self, number: int) -> "Tables":
        """Return the first tables."""
        arrays = (self.gains, self.variances, self.baseline, self.paired)
        return Tables(self.seeds, *(each[:number] for each in arrays))

    @property
    def errors(self) -> Array:
        """Welch's standard errors."""
        return np.sqrt(self.variances + self.baseline)

    @property
    def degrees(self) -> Array:
        """Welch's degrees of freedom."""
        whole = (self.variances + self.baseline) ** 2
        return np.asarray((self.seeds - 1) * whole / (self.variances**2 + self.baseline**2))


def simulate(cell: Cell, replications: int, generator: np.random.Generator) -> Tables:
    """Return simulated tables of a cell."""
    found = [
        _some(cell, min(CHUNK, replications - start), generator) for start in range(0, replications, CHUNK)
    ]
    return Tables(cell.seeds, *(np.concatenate(each) for each in zip(*found, strict=True)))


def _some(cell: Cell, number: int, generator: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    scores = generator.normal(size=(number, cell.seeds, cell.rows)) * math.sqrt(1 - cell.correlation)
    scores += generator.normal(size=(number, cell.seeds, 1)) * math.sqrt(cell.correlation)
    scores *= np.sqrt(cell.true_variances)
    gains = scores[:, :, 1:] - scores[:, :, :1]
    errors = scores.var(axis=1, ddof=1) / cell.seeds
    return gains.mean(axis=1), errors[:, 1:], errors[:, :1], gains.var(axis=1, ddof=1) / cell.seeds


def p_values(tables: Tables, shifts: Array | float = 0.0) -> Array:
    """Return Welch's two-sided p values after the true differences `shifts` were added."""
    return np.asarray(2 * stdtr(tables.degrees, -np.abs(tables.gains + shifts) / tables.errors))


def least_detectable(gains: Array, half_widths: Array) -> Array:
    """Return the true difference of each method that is found, with its sign, in 80 % of the tables."""
    return np.asarray(np.quantile(half_widths - gains, POWER, axis=0))


class MaxT:
    """Single-step max-t of each table's comparisons, which share the baseline: the largest p that is starred.

    The normal copula of the comparisons has one common factor, the baseline, so its maximum's distribution is
    a single integral. `synthbench.statistics.families` does the same for any correlations.
    """

    NODES = 32
    REACH = 6.0
    POINTS = 5

    def __init__(self, tables: Tables) -> None:
        shared = tables.baseline / (tables.variances + tables.baseline)
        self._loadings = np.sqrt(shared)
        self._own = np.sqrt(tables.variances / (tables.variances + tables.baseline))
        number = shared.shape[1]
        self._least, self._most = (-ndtri(share / 2) for share in (LEVEL, 1 - (1 - LEVEL) ** (1 / number)))

    def levels(self) -> Array:
        """Return the level of a single comparison in each table, shape (tables, 1).

        It lies between the unadjusted one and Sidak's.
        """
        if self._loadings.shape[1] == 1:
            return np.full((len(self._loadings), 1), LEVEL)
        angles = np.cos((np.arange(self.POINTS) + 0.5) * np.pi / self.POINTS)
        points = (self._least + self._most + angles * (self._most - self._least)) / 2
        exceeded = np.stack([self.exceeded(point) for point in points])
        # The quantile is smooth in the log of the probability.
        with np.errstate(divide="ignore", invalid="ignore"):
            critical = _interpolated(np.log(exceeded), points, math.log(LEVEL))
        # A method of nearly no variance beside the baseline leaves a step between the nodes.
        critical = np.where(np.isfinite(critical), critical, self._most)
        return np.asarray(2 * ndtr(-np.clip(critical, self._least, self._most)))[:, None]

    def exceeded(self, point: float) -> Array:
        """Return the probability in each table that the largest |z| is above `point`."""
        nodes, weights = np.polynomial.legendre.leggauss(self.NODES)
        nodes, weights = (nodes + 1) * self.REACH / 2, weights * self.REACH / 2
        inside = np.zeros(len(self._loadings))
        for node, weight in zip(nodes, weights, strict=True):
            factor = self._loadings * node
            each = ndtr((point - factor) / self._own) - ndtr((-point - factor) / self._own)
            inside += 2 * weight * math.exp(-(node**2) / 2) / math.sqrt(2 * math.pi) * each.prod(axis=1)
        return np.maximum(1 - inside, 1e-12)


def _interpolated(known: Array, values: Array, wanted: float) -> Array:
    """Return Lagrange's polynomial through (`known`, `values`) at `wanted`; `known` is (points, tables)."""
    total = np.zeros(known.shape[1])
    for one, value in enumerate(values):
        others = np.delete(known, one, axis=0)
        total += value * np.prod((wanted - others) / (known[one] - others), axis=0)
    return total


def rejected(found: Array, levels: Array) -> dict[str, Array]:
    """Return which comparisons each family's rule stars, by p values (tables, methods)."""
    number = found.shape[1]
    order = np.argsort(found, axis=1)
    ordered = np.take_along_axis(found, order, axis=1)
    passed = np.logical_and.accumulate(ordered <= LEVEL / np.arange(number, 0, -1), axis=1)
    holm = np.empty_like(passed)
    np.put_along_axis(holm, order, passed, axis=1)
    return {"max-t": found <= levels, "Holm": holm, "Bonferroni": found <= LEVEL / number}


def exact_error(seeds: int, ratio: float) -> float:
    """Return the type 1 error of Welch's test of two independent rows whose variances have a ratio."""
    from scipy.integrate import quad
    from scipy.stats import beta

    freedom = seeds - 1

    def density(share: float) -> float:
        # The rows' sample variances, up to a chi-square factor that does not depend on their share.
        one, other = share, (1 - share) * ratio
        needed = stdtrit(freedom * (one + other) ** 2 / (one**2 + other**2), 1 - LEVEL / 2)
        scale = math.sqrt(2 * (one + other) / (1 + ratio))
        return float(2 * stdtr(2 * freedom, -needed * scale) * beta.pdf(share, freedom / 2, freedom / 2))

    return float(quad(density, 0, 1, limit=400, points=(0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999))[0])


def measured(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """Return all figures of a cell."""
    tables = simulate(cell, replications, np.random.default_rng(seed))
    widths = stdtrit(tables.degrees, 1 - LEVEL / 2) * tables.errors
    paired_widths = float(stdtrit(cell.seeds - 1, 1 - LEVEL / 2)) * np.sqrt(tables.paired)
    welch, paired = (np.abs(tables.gains) >= each for each in (widths, paired_widths))
    least = least_detectable(tables.gains, widths)
    variances = cell.true_variances
    relative = least / least_detectable(tables.gains, paired_widths)
    found = {
        "welch_mean": welch.mean(),
        "welch_mean_error": welch.mean(axis=1).std() / math.sqrt(replications),
        "welch_worst": welch.mean(axis=0).max(),
        "welch_exact": _exact_worst(cell),
        "paired_mean": paired.mean(),
        "paired_worst": paired.mean(axis=0).max(),
        "least": (least / np.sqrt((variances[0] + variances[1:]) / 2)).mean(),
        "least_mean": relative.mean(),
        "least_lowest": relative.min(),
        "least_highest": relative.max(),
    }
    families = _families(tables.head(replications // OF_FAMILIES), least)
    return {name: float(value) for name, value in (found | families).items()}


def _exact_worst(cell: Cell) -> float:
    """Return the largest exact type 1 error; nan where rows are correlated."""
    if cell.correlation:
        return math.nan
    baseline, *others = cell.true_variances
    return max(exact_error(cell.seeds, ratio) for ratio in {float(each / baseline) for each in others})


def _families(tables: Tables, least: Array) -> dict[str, float]:
    """Return family-wise errors and powers.

    All true differences have one size: a test of one comparison finds it in 80 % of the tables.
    """
    number = len(least)
    real = np.zeros(number, bool)
    real[:: round(1 / REAL)] = True
    levels = MaxT(tables).levels()
    none = rejected(p_values(tables), levels)
    some = rejected(p_values(tables, np.where(real, least, 0.0)), levels)
    every = rejected(p_values(tables, least), levels)
    found: dict[str, float] = {}
    for rule in FAMILY:
        found[f"{rule}_error"] = none[rule].any(axis=1).mean()
        found[f"{rule}_error_some"] = some[rule][:, ~real].any(axis=1).mean()
        found[f"{rule}_power_some"] = some[rule][:, real].mean()
        found[f"{rule}_power_all"] = every[rule].mean()
    return found


def grid() -> Iterator[Cell]:
    """Yield all cells."""
    return (Cell(*each) for each in product(SEEDS, ROWS, VARIANCES, CORRELATIONS))


Results = dict[Cell, dict[str, float]]


Line = Mapping[str, str]
"""A cell as a line of the table of all cells."""


def of_tests(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a Markdown line for each number of seeds: ranges over the other properties of a cell.

    Welch's error, its minimum detectable difference, and that divided by the paired test's, without and with
    the highest correlation.
    """
    for seeds in SEEDS:
        own = _selected(lines, seeds=seeds)
        ratios = (
            _range(_selected(own, correlation=each), "least_mean", 1, 2)
            for each in (CORRELATIONS[0], CORRELATIONS[-1])
        )
        cells = [_range(own, "welch_worst"), _range(own, "least", 1), *ratios]
        yield f"| {seeds} | {' | '.join(cells)} |"


def of_families(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a Markdown line for each number of comparisons: max-t's power at each number of seeds.

    As ranges over kinds of variances. The power does not depend on how many differences are real.
    """
    for rows in ROWS:
        own = _selected(lines, rows=rows, correlation=0.0)
        powers = (_range(_selected(own, seeds=each), "max-t_power_some") for each in SEEDS)
        yield f"| {rows - 1} | {' | '.join(powers)} |"


def _selected(lines: Sequence[Line], **wanted: float) -> list[Line]:
    return [line for line in lines if all(float(line[name]) == value for name, value in wanted.items())]


def _range(lines: Sequence[Line], name: str, scale: float = 100, digits: int = 1) -> str:
    values = [scale * float(line[name]) for line in lines]
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _monte_carlo(number: int) -> str:
    error = 100 * math.sqrt(LEVEL * (1 - LEVEL) / number)
    return f"{number:,} (Monte Carlo error {error:.2f} at 5 %)"


def of_ratios() -> Iterator[str]:
    """Yield a Markdown line for each number of seeds: the exact error by the ratio of two rows' variances."""
    for seeds in SEEDS:
        errors = [f"{100 * exact_error(seeds, ratio):.1f}" for ratio in RATIOS]
        yield f"| {seeds} | {' | '.join(errors)} |"


def missed(results: Results, replications: int) -> list[str]:
    """Return a line for each cell whose worst comparison errs more often than the goal says."""
    error = math.sqrt(GOAL * (1 - GOAL) / replications)
    return [
        f"{cell}: Welch errs in {100 * each['welch_worst']:.2f} % (Monte Carlo error {100 * error:.2f})"
        for cell, each in results.items()
        if each["welch_worst"] > GOAL + 3 * error
    ]


def write(results: Results) -> None:
    """Write the table of all cells."""
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = list(next(iter(results.values())))
        writer.writerow([*Cell.__dataclass_fields__, *names])
        for cell, each in results.items():
            key = (cell.seeds, cell.rows, cell.variances, cell.correlation)
            writer.writerow([*key, *(f"{each[name]:.4f}" for name in names)])


def read() -> list[Line]:
    """Return the table of all cells."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    """Simulate all cells."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    replications = parser.parse_args().replications
    results = {}
    for seed, cell in enumerate(grid()):
        results[cell] = measured(cell, replications, seed)
        print(cell, {name: round(value, 4) for name, value in results[cell].items()}, flush=True)
    write(results)
    families = _monte_carlo(replications // OF_FAMILIES)
    print(f"tables a cell: {_monte_carlo(replications)}, as families {families}")
    lines = read()
    print("\n".join([*of_tests(lines), *of_ratios(), *of_families(lines)]))
    faults = missed(results, replications)
    print("\n".join(faults) or "no cell is above 5.5 % by more than three Monte Carlo errors")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
