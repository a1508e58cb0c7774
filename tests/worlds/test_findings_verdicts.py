"""Verdicts of benchmarks/sandbox_findings.py and benchmarks/sandbox_null.py on made-up differences."""

from pathlib import Path

import pytest
from sandbox_findings import Check, Evidence, scores, verdict
from sandbox_null import COMPARISONS, LEVEL, Tally, adjusted, write_experiment

from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan
from synthbench.statistics.differences import Difference, Noise

ABOVE = Check("method", "control", scores(), 1)
BELOW = Check("method", "control", scores(), -1)
NOT_ABOVE = Check("method", "control", scores(), 0)

HIGHER = Evidence(3.0, 1.0, 2.0)
LOWER = Evidence(-3.0, 1.0, 2.0)
UNCLEAR = Evidence(0.5, 1.0, 2.0)
UNKNOWN_NOISE = Evidence(3.0, None, None)


@pytest.mark.parametrize(
    ("check", "evidence", "expected"),
    [
        (ABOVE, HIGHER, "found"),
        (ABOVE, UNCLEAR, "missed"),
        (ABOVE, LOWER, "the opposite"),
        (ABOVE, UNKNOWN_NOISE, "missed"),
        (BELOW, LOWER, "found"),
        (BELOW, UNCLEAR, "missed"),
        (BELOW, HIGHER, "the opposite"),
        (NOT_ABOVE, LOWER, "found"),
        (NOT_ABOVE, UNCLEAR, "found"),
        (NOT_ABOVE, HIGHER, "the opposite"),
    ],
)
def test_verdicts_are_correct(check: Check, evidence: Evidence, expected: str) -> None:
    assert verdict((check,), [evidence]) == expected


def test_a_finding_needs_all_of_its_comparisons() -> None:
    checks = (ABOVE, ABOVE, NOT_ABOVE)
    assert verdict(checks, [HIGHER, HIGHER, UNCLEAR]) == "found"
    assert verdict(checks, [HIGHER, UNCLEAR, UNCLEAR]) == "missed"
    assert verdict(checks, [HIGHER, HIGHER, HIGHER]) == "the opposite"
    assert verdict(checks, [LOWER, UNCLEAR, UNCLEAR]) == "the opposite"


def test_an_interval_that_ends_at_zero_is_inconclusive() -> None:
    assert [Evidence(value, 1.0, None).sign for value in (1.0, -1.0, 1.01, -1.01)] == [0, 0, 1, -1]


def tally(*values: float) -> Tally:
    """Return a comparison with these differences in as many worlds.

    Their standard error is 1, of two degrees of freedom, so that those beyond 4.303 are significant.
    """
    return Tally(COMPARISONS[0], tuple(Difference(value, (Noise(1.0, 2),)) for value in values))


def test_only_significant_differences_are_false_findings() -> None:
    assert tally(4.31, 4.29, -4.31, -4.29, 0.0).false_findings == 2


def test_a_world_with_equal_scores_is_no_false_finding() -> None:
    counted = Tally(COMPARISONS[0], (None, Difference(5.0, (Noise(1.0, 2),))))
    assert (counted.false_findings, counted.mean) == (1, 2.5)
    assert counted.interval == pytest.approx((0.0945, 0.9055), abs=1e-4)


def test_the_p_value_assumes_one_false_finding_in_twenty_worlds() -> None:
    assert tally(0.0, 0.0).p_value == pytest.approx(1.0)
    assert tally(5.0, 0.0).p_value == pytest.approx(1 - 0.95**2)
    assert tally(5.0, -5.0).p_value == pytest.approx(0.05**2)


def test_one_false_finding_in_two_worlds_is_allowed_and_two_are_not() -> None:
    others = [tally(0.0, 0.0)] * (len(COMPARISONS) - 1)
    assert min(adjusted([tally(5.0, 0.0), *others])) >= LEVEL
    assert min(adjusted([tally(5.0, 5.0), *others])) < LEVEL


def test_the_worlds_without_effects_are_an_experiment_that_can_be_planned(tmp_path: Path) -> None:
    """Its rows differ from their controls as `COMPARISONS` says, in today's keys of the methods."""
    plan = make_plan(load_invocation(write_experiment(tmp_path, range(3, 5)), Overrides()).experiment)
    rows = {name for each in COMPARISONS for name in (each.row, each.control)}
    assert {run.variant.name for run in plan.runs} == rows
    assert {run.variant.axes["world"] for run in plan.runs} == {"3", "4"}


def test_the_interval_of_the_mean_is_students() -> None:
    found = tally(1.0, 2.0, 3.0)
    # 2 -+ 4.303 (t of 2 degrees of freedom) x 1 (standard deviation) / sqrt(3)
    assert found.interval_of_mean == pytest.approx((-0.484, 4.484), abs=1e-3)
