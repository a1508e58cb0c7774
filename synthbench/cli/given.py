"""An experiment as a command was given it: its file's own, or what the command line made of that."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.cli.options import load
from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.config.experiment import Experiment


@dataclass(frozen=True)
class Given:
    """The experiment, and the overrides that make it another than its file's: as typed, fit for a shell.

    Secrets in them are masked, as they go into names of folders, tables and what is tracked.
    """

    experiment: "Experiment"
    overrides: tuple[str, ...] = ()


def load_given(
    file: Path,
    profile: str | None,
    assignments: list[str] | None,
    variants: list[str] | None,
    selection: tuple[str | None, Path | None],
) -> Given:
    """Load an experiment as `load` does, and find out whether it is still the one that the file describes.

    It is if all that the overrides change is the runtime, or nothing. Raises UserError as `load` does.
    """
    seeds, data = selection
    experiment = load(file, profile, assignments, variants, selection)
    overrides = _as_typed(profile, assignments or [], variants or [], seeds)
    if not overrides:
        return Given(experiment)
    whole = _loaded(file, [], data)
    if whole is None:
        # Rows may have been taken away because what they need is not there.
        whole = _loaded(file, [text for text in assignments or [] if _takes_a_row_away(text)], data)
    elif replace(experiment, runtime=whole.runtime, resolved=whole.resolved, files=whole.files) == whole:
        return Given(replace(whole, runtime=experiment.runtime, files=experiment.files))
    rows = frozenset() if whole is None else _rows_as_in(whole, experiment)
    return Given(replace(experiment, rows_of_file=rows), overrides)


def _loaded(file: Path, assignments: list[str], data: Path | None) -> "Experiment | None":
    try:
        return load(file, None, assignments, None, (None, data))
    except UserError:
        return None


def _rows_as_in(whole: "Experiment", experiment: "Experiment") -> frozenset[str]:
    """Return the labels of the rows that compute what rows of these names compute in the whole experiment."""

    def shared(one: "Experiment") -> tuple[object, ...]:
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


def _as_typed(
    profile: str | None, assignments: list[str], variants: list[str], seeds: str | None
) -> tuple[str, ...]:
    """Return the options in one order, however they were typed, those of the runtime left out."""
    from synthbench.tracking.redaction import mask_override

    typed = [("--profile", profile or ""), *(("--variant", name) for name in sorted(set(variants)))]
    typed += [("--seeds", "".join((seeds or "").split()))]
    typed += [("--set", text) for text in assignments if not _is_runtime(text)]
    return tuple(mask_override(f"{option} {shlex.quote(value)}") for option, value in typed if value)


def _is_runtime(assignment: str) -> bool:
    """Tell whether a `--set` says how something is run or asked, which changes no result."""
    from synthbench.config.llm import TRAFFIC

    section, _, key = assignment.partition("=")[0].strip().partition(".")
    return section == "runtime" or (section == "llm" and key in (*TRAFFIC, "key_variable"))
