"""Two of the papers' findings appear in the sandbox, with fewer seeds than experiments/selftest asks for."""

from pathlib import Path

import pytest
from sandbox_findings import FOLDER, Check, scores, verdict
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


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("sandbox_findings_dino", Check("dino", "no-debiasing", scores())),
        ("sandbox_findings_augsbert", Check("cross-encoder", "gold-only", scores())),
    ],
    ids=["self-debiasing", "a cross-encoder at little gold"],
)
def test_a_method_helps_if_its_premise_holds(tmp_path: Path, name: str, check: Check) -> None:
    evidence = check.evidence(ran(tmp_path, name, [check.row, check.other]))
    assert verdict((check,), [evidence]) == "found", str(evidence)
