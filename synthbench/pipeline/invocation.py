"""An experiment as it was asked for: the whole of its file, or what overrides made of it."""

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
    """The experiment, and the overrides that make it another than its file's: as typed, fit for a shell.

    Secrets in them are masked, as they go into names of folders, tables and what is tracked.
    """

    experiment: Experiment
    overrides: tuple[str, ...] = ()


def load_invocation(file: Path, overrides: Overrides) -> Invocation:
    """Load an experiment with the overrides that make it another than its file's.

    Those of the runtime do not, nor those that change nothing. Raises UserError as `load_experiment`.
    """
    experiment = load_experiment(file, overrides)
    return Invocation(experiment, () if experiment.is_of_file else _as_typed(overrides))


def _as_typed(overrides: Overrides) -> tuple[str, ...]:
    """Return the options in one order, however they were typed, those of the runtime left out."""
    typed = [("--profile", overrides.profile or "")]
    typed += [("--variant", name) for name in sorted(set(overrides.variants))]
    typed += [("--seeds", ",".join(map(str, overrides.seeds)))]
    typed += [("--set", text) for text in overrides.assignments if not _is_runtime(text)]
    return tuple(mask_override(f"{option} {shlex.quote(value)}") for option, value in typed if value)


def _is_runtime(assignment: str) -> bool:
    """Tell whether a `--set` says how something is run or asked, which changes no result."""
    section, _, key = assignment.partition("=")[0].strip().partition(".")
    return section == "runtime" or (section == "llm" and key in (*TRAFFIC, "key_variable"))
