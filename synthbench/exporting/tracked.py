"""Load an experiment with its last tracked result."""

from pathlib import Path

from synthbench.base.home import home
from synthbench.config.experiment import Experiment
from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.reporting.results import ExperimentResult
from synthbench.results.collect import request
from synthbench.tracking.mlflow_tracker import MlflowTracker


def tracked(file: Path, changes: Overrides) -> tuple[Experiment, ExperimentResult]:
    """Return an experiment and its last tracked result with these overrides.

    Raises UserError if the file is invalid or there is no such result.
    """
    invocation = load_invocation(file, changes)
    experiment = invocation.experiment
    return experiment, MlflowTracker(home()).load(experiment.name, request(experiment, invocation.overrides))
