"""The outcome of a recommendation's phases: dev scores, comparisons, and the whole recommendation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from synthbench.base.errors import UserError
from synthbench.recommending.answer import OnTest
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.table import MISSING, Cell
from synthbench.reporting.results import ExperimentResult
from synthbench.statistics.differences import SeedScores


@dataclass(frozen=True)
class Measured:
    """A recipe's dev scores x 100 by amount of data, and its cost in dollars at the largest amount.

    `scores`: (amount, score) in ascending order; amount 0 if the recipe's amount is fixed. `reads`: the unit
    of amounts, such as sentences. `dropped`: why the recipe is not the answer; "" if it is.
    """

    recipe: str
    reads: str
    scores: tuple[tuple[int, Cell], ...]
    usd: float
    dropped: str = ""

    @property
    def amount(self) -> int:
        """The largest measured amount; 0 if the recipe's amount is fixed."""
        return self.scores[-1][0]

    @property
    def data(self) -> str:
        """The largest measured amount with its unit, such as "1,000 sentences"; a dash if fixed."""
        return f"{self.amount:,} {self.reads}" if self.amount else MISSING

    @property
    def dev_score(self) -> float:
        """The dev score x 100 at the largest amount."""
        return self.scores[-1][1].mean


@dataclass(frozen=True)
class Recommendation:
    """The answer and its evidence: the recipe to take (`AnswerLine.recipe`) and its test score x 100.

    `left_out`: recipe -> why it has no dev score. `files`: the phases' experiment files; the last one trains
    the recipe to take. `reports`: phase -> folder of its report. `export`: the command that exports the
    model.
    """

    name: str
    recipe: str
    score: float
    answer: str
    more: str
    spent: str
    measured: tuple[Measured, ...]
    left_out: Mapping[str, str]
    files: tuple[Path, ...]
    reports: Mapping[str, Path]
    export: str
    notes: tuple[str, ...] = ()


def dev_scores(result: ExperimentResult) -> dict[str, list[float]]:
    """Return row -> its dev scores in the order of seeds; a score is the mean over the row's dev sets.

    Rows with a NaN score are left out.
    """
    found: dict[str, dict[int, float]] = {}
    for run in result.runs:
        mean = fmean(each.scores[each.main_score] for each in run.scores)
        found.setdefault(run.variant, {})[run.seed] = mean
    return {
        row: [by_seed[seed] for seed in sorted(by_seed)]
        for row, by_seed in found.items()
        if not any(map(math.isnan, by_seed.values()))
    }


def cell_of(scores: Sequence[float]) -> Cell:
    """Return a table cell with the mean score over seeds, x 100, and its standard deviation."""
    sample = SeedScores(tuple(100 * score for score in scores))
    return Cell(sample.mean, sample.standard_deviation, sample.num_seeds)


def without_difference(result: ExperimentResult, row: str) -> list[str]:
    """Return the rows whose dev score does not differ significantly from that of `row`.

    The 95 % interval of their difference contains 0.
    """
    analysis = Analysis(result).with_options(compare_to={row: ()})
    found: list[str] = []
    columns = analysis.comparisons
    # With several dev sets, their mean decides.
    for column in [each for each in columns if each.column.is_average][:1] or columns[:1]:
        for each in column.comparisons:
            if each.evidence is not None and abs(each.value) <= each.evidence.half_width:
                found.append(each.row.variant)
    return found


def on_test(result: ExperimentResult, challenger: str, baseline: str) -> tuple[OnTest, float]:
    """Return the challenger's result on the test set, and the baseline's score there.

    Raises UserError if the challenger was not compared with the baseline.
    """
    for column in Analysis(result).comparisons:
        for each in column.comparisons:
            if (each.row.variant, each.baseline.variant) == (challenger, baseline):
                if each.refusal:
                    raise UserError(f"{challenger} and {baseline} were not compared: {each.refusal}")
                ours, theirs = each.samples
                width = None if each.evidence is None else each.evidence.half_width
                return OnTest(ours.mean, each.value, width), theirs.mean
    raise UserError(*(result.failures or (f"{challenger} and {baseline} were not compared",)))
