"""Print the cost of each row of which_method.yaml, and the factor by which its amount would meet the budget.

Reads the tracked results of the file, which must be run first, if only with one seed:

    synthbench run experiments/studies/which_method.yaml --jobs 1 --seeds 0
    python benchmarks/which_method_costs.py --seeds 0

LLM dollars grow with the amount and are the same on every machine. Seconds are measured, and cost a few per
cent of the smallest budget. The factor is the budget minus the cost of the seconds, divided by the LLM's
dollars. Rows without an LLM have none.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import yaml

import synthbench
from synthbench.reporting.model.spending import spending
from synthbench.reporting.results import ExperimentResult, RunResult

FILE = Path(__file__).parent.parent / "experiments" / "studies" / "which_method.yaml"
HOUR_USD = yaml.safe_load(FILE.read_text(encoding="utf-8"))["table"]["figures"]["frontier"]["hour_usd"]
WITHIN = 0.15


@dataclass(frozen=True)
class Spent:
    """A row's means over seeds at one budget: dollars, seconds and generated records."""

    row: str
    budget: float
    usd: float
    seconds: float
    records: float

    @property
    def total(self) -> float:
        """The LLM's dollars plus the price of the seconds."""
        return self.usd + self.seconds * HOUR_USD / 3600

    @property
    def meets(self) -> bool:
        """Whether the total is within 15 % of the budget."""
        return abs(self.total / self.budget - 1) <= WITHIN

    @property
    def factor(self) -> float | None:
        """The factor by which the amount should be multiplied; None without an LLM."""
        return (self.budget - self.seconds * HOUR_USD / 3600) / self.usd if self.usd else None


def spent(result: ExperimentResult) -> Iterator[Spent]:
    """Yield the cost of each row at each budget, in the file's order, without the untrained encoder."""
    groups: dict[tuple[str, str], list[RunResult]] = defaultdict(list)
    for run in result.runs:
        if run.is_seeded:
            groups[run.variant, run.axes["budget"]].append(run)
    for (row, budget), runs in groups.items():
        usd, seconds = (spending(result, runs, kind).amount for kind in ("dollars", "seconds"))
        if usd is not None and seconds is not None:
            yield Spent(row, float(budget), usd, seconds, fmean(_generated(run) for run in runs))


def _generated(run: RunResult) -> int:
    return sum(dataset.num_records for dataset in run.datasets if dataset.method)


def lines(found: Sequence[Spent]) -> Iterator[str]:
    """Yield a Markdown table."""
    yield "| row | budget | records | LLM | seconds | total | within 15 % | amount times |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |"
    for each in found:
        factor = "" if each.factor is None else f"{each.factor:.2f}"
        yield (
            f"| {each.row} | {each.budget:,.0f} | {each.records:,.0f} | {each.usd:.2f} | {each.seconds:.1f}"
            f" | {each.total:.2f} | {'yes' if each.meets else 'no'} | {factor} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*")
    seeds = parser.parse_args().seeds
    options = {} if seeds is None else {"seeds": tuple(seeds)}
    for line in lines(list(spent(synthbench.load(FILE, **options).result))):
        print(line)
