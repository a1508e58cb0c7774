"""Findings of three papers in the sandbox, where each finding's premise holds.

Reads the tracked results of experiments/selftest/sandbox_findings_*.yaml, which must be run first, and prints
the table of reports/sandbox_findings/findings.md:

    for name in dino first_texts syncse augsbert domains seeds; do
        synthbench run experiments/selftest/sandbox_findings_$name.yaml --jobs 2
    done
    python benchmarks/sandbox_findings.py

A difference is over seeds, each with new data and training, with its 95 % interval (docs/statistics.md).
"Least" is the minimum detectable difference (80 % power).
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from measure import exit_with

from synthbench.base.home import home
from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.reporting.figures.early_dev import DEV_SCORE
from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.collect import request
from synthbench.statistics.differences import (
    Difference,
    Noise,
    SeedScores,
    least_detectable,
    over_seeds,
)
from synthbench.statistics.histograms import divergence
from synthbench.tracking.mlflow_tracker import MlflowTracker

FOLDER = Path(__file__).parent.parent / "experiments" / "selftest"
EARLY_SHARE = 0.2
Values = Callable[[ExperimentResult, str], SeedScores]


@dataclass(frozen=True)
class Evidence:
    """A difference with its 95 % interval and minimum detectable difference; None: unknown."""

    value: float
    half_width: float | None
    least: float | None

    @property
    def sign(self) -> int:
        """Return 1 or -1 if the whole interval is on that side of 0, else 0."""
        if self.half_width is None or abs(self.value) <= self.half_width:
            return 0
        return 1 if self.value > 0 else -1

    def __str__(self) -> str:
        if self.half_width is None:
            return f"{self.value:+.2f}"
        return f"{self.value:+.2f} [{self.value - self.half_width:+.2f}, {self.value + self.half_width:+.2f}]"


class Expectation:
    """The paper's claim on a difference: above 0 (1), below 0 (-1) or not above 0 (0)."""

    expected: int

    def holds(self, evidence: Evidence) -> bool:
        """Return whether the evidence agrees with the paper."""
        return evidence.sign == self.expected if self.expected else evidence.sign != 1

    def is_against(self, evidence: Evidence) -> bool:
        """Return whether the evidence contradicts the paper, beyond the noise."""
        return evidence.sign == (-self.expected or 1)


@dataclass(frozen=True)
class Check(Expectation):
    """A comparison of two rows: `row` minus `other`."""

    row: str
    other: str
    values: Values
    expected: int = 1

    def evidence(self, result: ExperimentResult) -> Evidence:
        """Return the difference over seeds, paired where they redraw data that both rows share."""
        row, other = self.values(result, self.row), self.values(result, self.other)
        are_paired = share_draws(*(_runs(result, name) for name in (self.row, self.other)))
        return _evidence(over_seeds(row, other, is_paired=are_paired), row.mean - other.mean)


@dataclass(frozen=True)
class RankCheck(Expectation):
    """Whether dev scores after a fifth of the steps rank a row's seeds as the final ones do."""

    row: str
    other: str = ""
    expected: int = 1

    def evidence(self, result: ExperimentResult) -> Evidence:
        """Return the rank correlation; its half-width is the range of chance."""
        from scipy.stats import spearmanr

        runs = _runs(result, self.row)
        curves = [
            sorted((step, value) for step, name, value in run.history if name == DEV_SCORE) for run in runs
        ]
        early = [_at_share(curve, EARLY_SHARE) for curve in curves]
        found = spearmanr(early, [curve[-1][1] for curve in curves])
        freedom = len(curves) - 2
        limit = Noise(1.0, freedom).half_width
        return Evidence(float(found.statistic), limit / math.sqrt(freedom + limit**2), None)


@dataclass(frozen=True)
class Finding:
    """A paper's finding, and the sandbox's experiment for it."""

    paper: str
    statement: str
    checks: tuple[Check | RankCheck, ...]
    experiment: str


@cache
def load(experiment: str) -> ExperimentResult:
    """Return the tracked result of an experiment; raises UserError if there is none."""
    given = load_invocation(FOLDER / f"{experiment}.yaml", Overrides())
    return MlflowTracker(home()).load(experiment, request(given.experiment, given.overrides))


def scores(task: str = "") -> Values:
    """Return a function that gives a row's scores x 100 by seed: on one test set, or the mean of all."""

    def values(result: ExperimentResult, row: str) -> SeedScores:
        runs = _runs(result, row)
        means = [
            fmean(each.scores[each.main_score] for each in run.scores if task in ("", each.task)) * 100
            for run in runs
        ]
        return SeedScores(tuple(means), runs[0].is_seeded, tuple(run.seed for run in runs))

    return values


def distance_from_gold(result: ExperimentResult, row: str) -> SeedScores:
    """Return by seed the divergence, in nats, of a row's silver scores from the gold scores."""
    runs = _runs(result, row)
    found = []
    for run in runs:
        counts = {data.part: data.score_counts for data in run.datasets}
        found.append(divergence(counts["silver"], counts["gold"]))
    return SeedScores(tuple(found), True, tuple(run.seed for run in runs))


def label_truth(result: ExperimentResult, row: str) -> SeedScores:
    """Return by seed the rank correlation x 100 of a row's intended labels with the oracle's truth."""
    found = {}
    for audit in result.audits:
        for label in audit.rows:
            if label.startswith(f"{row} seed") and audit.audit and audit.audit.correlation:
                found[int(label.rpartition(" ")[2])] = audit.audit.correlation.value * 100
    return SeedScores(tuple(found[seed] for seed in sorted(found)), True, tuple(sorted(found)))


def _runs(result: ExperimentResult, row: str) -> list[RunResult]:
    return [run for run in result.runs if run.variant == row]


def _at_share(curve: list[tuple[int, float]], share: float) -> float:
    steps = curve[-1][0]
    return next(value for step, value in curve if step >= share * steps)


def _evidence(difference: Difference | None, value: float) -> Evidence:
    if difference is None:
        return Evidence(value, None, None)
    return Evidence(difference.value, difference.half_width, least_detectable([difference]))


DINO, FIRST_TEXTS, SYNCSE, AUGSBERT, DOMAINS, SEEDS = (
    f"sandbox_findings_{name}" for name in ("dino", "first_texts", "syncse", "augsbert", "domains", "seeds")
)
LABELS = ((DINO, "labels-no-debiasing"), (DINO, "labels"), (AUGSBERT, "bm25"))
FINDINGS = (
    Finding("DINO", "self-debiasing helps", (Check("dino", "no-debiasing", scores()),), DINO),
    Finding("DINO", "a decay of 200 is worse than 100", (Check("decay-200", "dino", scores(), -1),), DINO),
    Finding("DINO", "label smoothing helps", (Check("dino", "no-smoothing", scores()),), DINO),
    Finding("DINO", "random negatives help", (Check("dino", "no-negatives", scores()),), DINO),
    Finding(
        "DINO",
        "given first texts are better than written ones",
        (Check("x2", "x1x2", scores()),),
        FIRST_TEXTS,
    ),
    Finding(
        "DINO",
        "labels are truer with self-debiasing",
        (Check("labels", "labels-no-debiasing", label_truth),),
        DINO,
    ),
    Finding(
        "SynCSE",
        "partial is better than unsupervised SimCSE",
        (Check("partial", "unsupervised", scores("test")),),
        SYNCSE,
    ),
    Finding(
        "SynCSE",
        "scratch is better than unsupervised SimCSE",
        (Check("scratch", "unsupervised", scores("test")),),
        SYNCSE,
    ),
    Finding(
        "SynCSE",
        "unsupervised SimCSE is better than no training",
        (Check("unsupervised", "untrained", scores("test")),),
        SYNCSE,
    ),
    Finding(
        "SynCSE",
        "prompts that vary are better than one",
        (Check("scratch", "naive", scores("test")),),
        SYNCSE,
    ),
    Finding(
        "SynCSE",
        "what an LLM wrote adds to human data",
        (Check("human-and-scratch", "human", scores("test")),),
        SYNCSE,
    ),
    Finding("SynCSE", "more data are better", (Check("scratch", "tenth", scores("test")),), SYNCSE),
    Finding(
        "SynCSE",
        "data written for a domain help there",
        (Check("biomedicine", "unsupervised", scores("medicine")),),
        SYNCSE,
    ),
    Finding(
        "AugSBERT",
        "with little gold the cross-encoder is better than the bi-encoder",
        (Check("cross-encoder", "gold-only", scores()),),
        AUGSBERT,
    ),
    Finding(
        "AugSBERT",
        "BM25, KDE and semantic search are better than gold alone, random pairs are not",
        (
            Check("bm25", "gold-only", scores()),
            Check("kde", "gold-only", scores()),
            Check("semantic-search", "gold-only", scores()),
            Check("random", "gold-only", scores(), 0),
        ),
        AUGSBERT,
    ),
    Finding(
        "AugSBERT",
        "scores of random pairs are skewed; KDE and BM25 bring them near gold's",
        (
            Check("skew-random", "skew-kde", distance_from_gold),
            Check("skew-random", "skew-bm25", distance_from_gold),
        ),
        DOMAINS,
    ),
    Finding(
        "AugSBERT",
        "the best of five starts is better than one",
        (Check("best-of-five", "one-seed", scores()),),
        SEEDS,
    ),
    Finding(
        "AugSBERT", "dev scores after a fifth of the steps rank the seeds", (RankCheck("one-seed"),), SEEDS
    ),
    Finding(
        "AugSBERT",
        "silver pairs of the target domain are better than the source's gold",
        (Check("adapted", "source-only", scores()),),
        DOMAINS,
    ),
)


def verdict(checks: tuple[Check | RankCheck, ...], evidence: list[Evidence]) -> str:
    """Return "found" if all evidence agrees with the paper, "the opposite" if some contradicts it."""
    pairs = list(zip(checks, evidence, strict=True))
    if all(check.holds(found) for check, found in pairs):
        return "found"
    return "the opposite" if any(check.is_against(found) for check, found in pairs) else "missed"


def print_labels() -> None:
    """Print how well labels agree with the truth, for the table of docs/sandbox_findings.md."""
    for experiment, row in LABELS:
        found = label_truth(load(experiment), row)
        values = ", ".join(f"{value / 100:.2f}" for value in found.values)
        print(f"labels and truth, {row}: {found.mean / 100:.2f} ({values})")


def main() -> None:
    """Print the table, its sums, and the agreement of labels with the truth."""
    print("| | finding | difference | | least |")
    print("| ---: | --- | --- | --- | ---: |")
    counts: Counter[str] = Counter()
    for number, finding in enumerate(FINDINGS, 1):
        evidence = [check.evidence(load(finding.experiment)) for check in finding.checks]
        outcome = verdict(finding.checks, evidence)
        counts[outcome] += 1
        least = "; ".join(f"{each.least:.2f}" if each.least else "" for each in evidence)
        statement = f"{finding.paper}: {finding.statement}"
        print(f"| {number} | {statement} | {'; '.join(map(str, evidence))} | {outcome} | {least} |")
    print()
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())), f"of {len(FINDINGS)}\n")
    print_labels()


if __name__ == "__main__":
    exit_with(main)
