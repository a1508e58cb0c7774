"""An experiment as it was asked for: the whole of its file, or what overrides made of it."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from synthbench.config.experiment import Experiment
from synthbench.config.llm import TRAFFIC
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.errors import UserError
from synthbench.tracking.redaction import mask_override


@dataclass(frozen=True)
class Invocation:
    """The experiment, and the overrides that make it another than its file's: as typed, fit for a shell.

    Secrets in them are masked, as they go into names of folders, tables and what is tracked.
    """

    experiment: Experiment
    overrides: tuple[str, ...] = ()


def load_invocation(file: Path, overrides: Overrides) -> Invocation:
    """Load an experiment, and find out whether it is still the one that the file describes.

    It is if all that the overrides change is the runtime, or nothing. Raises UserError as `load_experiment`.
    """
    experiment = load_experiment(file, overrides)
    typed = _as_typed(overrides)
    if not typed:
        return Invocation(experiment)
    whole = _loaded(file, Overrides(data=overrides.data))
    if whole is None:
        # Rows may have been taken away because what they need is not there.
        removals = tuple(text for text in overrides.assignments if _takes_a_row_away(text))
        whole = _loaded(file, Overrides(assignments=removals, data=overrides.data))
    elif replace(experiment, runtime=whole.runtime, resolved=whole.resolved, files=whole.files) == whole:
        return Invocation(replace(whole, runtime=experiment.runtime, files=experiment.files))
    rows = frozenset() if whole is None else _rows_as_in(whole, experiment)
    return Invocation(replace(experiment, rows_of_file=rows), typed)


def _loaded(file: Path, overrides: Overrides) -> Experiment | None:
    try:
        return load_experiment(file, overrides)
    except UserError:
        return None


def _rows_as_in(whole: Experiment, experiment: Experiment) -> frozenset[str]:
    """Return the labels of the rows that compute what rows of these names compute in the whole experiment."""

    def shared(one: Experiment) -> tuple[object, ...]:
        sources = {name: one.sources[name] for name in whole.sources if name in experiment.sources}
        return one.vary, sources, one.llm and dict(one.llm.identity())

    if shared(experiment) != shared(whole):
        return frozenset()
    return frozenset(variant.label for variant in experiment.variants if variant in whole.variants)


def _takes_a_row_away(assignment: str) -> bool:
    """Tell whether a `--set` removes a variant, or a value of the grid, and does nothing else."""
    path, _, value = assignment.partition("=")
    section, *keys = path.strip().split(".")
    return value.strip() == "null" and len(keys) == {"variants": 1, "grid": 2}.get(section)


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
