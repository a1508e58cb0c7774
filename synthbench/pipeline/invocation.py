"""An invocation: an experiment with its overrides."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from synthbench.config.experiment import Experiment
from synthbench.config.llm import TRAFFIC
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.tracking.redaction import mask_override


@dataclass(frozen=True)
class Invocation:
    """An experiment and its overrides, as typed in a shell.

    Secrets in overrides are masked, since overrides get into folder names, tables and MLflow.
    """

    experiment: Experiment
    overrides: tuple[str, ...] = ()


def load_invocation(file: Path, overrides: Overrides) -> Invocation:
    """Load an experiment with its overrides.

    The invocation leaves out overrides of runtime settings, and all overrides if they leave the file's rows
    unchanged. Raises UserError as `load_experiment`.
    """
    experiment = load_experiment(file, overrides)
    return Invocation(experiment, () if experiment.is_of_file else typed_options(overrides))


def typed_options(overrides: Overrides) -> tuple[str, ...]:
    """Return the overrides as options in a fixed order, such as "--seeds 1,2"; secrets are masked.

    Options that set only runtime settings are left out.
    """
    typed = [("--profile", overrides.profile or "")]
    typed += [("--variant", name) for name in sorted(set(overrides.variants))]
    typed += [("--seeds", ",".join(map(str, overrides.seeds)))]
    typed += [("--set", text) for text in overrides.assignments if not _is_runtime(text)]
    return tuple(mask_override(f"{option} {shlex.quote(value)}") for option, value in typed if value)


def _is_runtime(assignment: str) -> bool:
    """Return whether a `--set` changes runtime settings only, and so no result."""
    match assignment.partition("=")[0].strip().split("."):
        case ["runtime", *_]:
            return True
        case ["llm", key] | ["llms", _, key]:
            return key in (*TRAFFIC, "key_variable")
    return False
