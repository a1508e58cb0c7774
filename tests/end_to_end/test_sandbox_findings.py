"""Two of the papers' findings in the sandbox: found where their premise holds, and only there.

With fewer seeds than experiments/selftest/sandbox_findings_*.yaml, which ask all of them.
"""

from pathlib import Path

import pytest
from sandbox_findings import FOLDER, Check, Evidence, scores, verdict_off, verdict_on
from small_experiment import Project

from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.reporting.results import ExperimentResult
from synthbench.results.collect import request
from synthbench.tracking.mlflow_tracker import MlflowTracker

SEEDS = (0, 1, 2)


def ran(folder: Path, name: str, rows: list[str]) -> ExperimentResult:
    """Run these rows of a shipped experiment by the command line, and return what it tracked."""
    file, project = FOLDER / f"{name}.yaml", Project(folder, folder / "home")
    options = [text for row in rows for text in ("--variant", row)]
    called = project.call("run", file, *options, "--seeds", ",".join(map(str, SEEDS)), "--jobs", "2")
    assert called.code == 0, called.err
    given = load_invocation(file, Overrides(variants=tuple(rows), seeds=SEEDS))
    return MlflowTracker(project.home).load(given.experiment.name, request(given.experiment, given.overrides))


def evidence(result: ExperimentResult, check: Check, premise: str) -> Evidence:
    """Return the difference at a point of the grid; without noise where both rows have the same data."""
    row, other = check.samples(result, {"premise": premise})
    difference = check.difference(result, {"premise": premise})
    return Evidence(row.mean - other.mean, difference.half_width if difference else None, None)


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("name", "check", "without"),
    [
        ("sandbox_findings_dino", Check("dino", "no-debiasing", scores()), "ignored"),
        ("sandbox_findings_augsbert", Check("cross-encoder", "gold-only", scores()), "off"),
    ],
    ids=["self-debiasing", "a cross-encoder at little gold"],
)
def test_a_method_helps_only_if_its_premise_holds(
    tmp_path: Path, name: str, check: Check, without: str
) -> None:
    result = ran(tmp_path, name, [check.row, check.other])
    on, off = (evidence(result, check, premise) for premise in ("on", without))
    assert (verdict_on((check,), [on]), verdict_off((check,), [off])) == ("found", "nothing"), f"{on}; {off}"
