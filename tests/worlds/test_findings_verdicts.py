"""Verdicts of benchmarks/sandbox_findings.py and benchmarks/sandbox_null.py on made-up differences."""

from pathlib import Path

import pytest
from sandbox_findings import Check, Evidence, scores, verdict
from sandbox_null import (
    COMPARISONS,
    CSV,
    LEVEL,
    Found,
    Tally,
    adjusted,
    lines,
    record,
    recorded,
    tallies,
    write_experiment,
)

from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan

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


def tally(*p_values: float) -> Tally:
    """Return a comparison with these p values in as many worlds."""
    return Tally(COMPARISONS[0], tuple(Found(1.0, p_value) for p_value in p_values))


def test_only_significant_differences_are_false_findings() -> None:
    counted = tally(0.049, 0.05, 0.001, 1.0)
    assert counted.false_findings == 2
    assert tally(0.01, 1.0).interval == pytest.approx((0.0945, 0.9055), abs=1e-4)


def test_the_p_value_assumes_one_false_finding_in_twenty_worlds() -> None:
    assert tally(1.0, 1.0).p_value == pytest.approx(1.0)
    assert tally(0.01, 1.0).p_value == pytest.approx(1 - 0.95**2)
    assert tally(0.01, 0.01).p_value == pytest.approx(0.05**2)


def test_one_false_finding_in_two_worlds_is_allowed_and_two_are_not() -> None:
    others = [tally(1.0, 1.0)] * (len(COMPARISONS) - 1)
    assert min(adjusted([tally(0.01, 1.0), *others])) >= LEVEL
    assert min(adjusted([tally(0.01, 0.01), *others])) < LEVEL


def test_a_world_without_effects_is_an_experiment_that_can_be_planned(tmp_path: Path) -> None:
    """Its rows differ from their controls as `COMPARISONS` says, in today's keys of the methods."""
    plan = make_plan(load_invocation(write_experiment(tmp_path, 3), Overrides()).experiment)
    rows = {name for each in COMPARISONS for name in (each.row, each.control)}
    assert {run.variant.name for run in plan.runs} == rows


def test_the_interval_of_the_mean_is_students() -> None:
    counted = Tally(COMPARISONS[0], tuple(Found(value, 1.0) for value in (1.0, 2.0, 3.0)))
    # 2 -+ 4.303 (t of 2 degrees of freedom) x 1 (standard deviation) / sqrt(3)
    assert counted.interval_of_mean == pytest.approx((-0.484, 4.484), abs=1e-3)


def test_recorded_worlds_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "worlds.csv"
    assert recorded(file) == {}
    worlds = {4: [Found(0.5, 0.25), Found(0.0, 1.0), Found(-1.5, 0.01)], 2: [Found(1.0, 0.5)] * 3}
    for world, finds in worlds.items():
        record(world, finds, file)
    assert recorded(file) == worlds
    assert [each.worlds for each in tallies(recorded(file))] == list(zip(*worlds.values(), strict=True))


def test_the_page_counts_the_recorded_worlds() -> None:
    page = (CSV.parents[2] / "docs" / "sandbox_findings.md").read_text(encoding="utf-8")
    assert [line for line in lines(tallies(recorded(CSV))) if line not in page] == []
