"""The last tracked result of an experiment, with the experiment itself."""

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

    Raises UserError if the file is wrong, or there is no such result.
    """
    invocation = load_invocation(file, changes)
    experiment = invocation.experiment
    return experiment, MlflowTracker(home()).load(experiment.name, request(experiment, invocation.overrides))
