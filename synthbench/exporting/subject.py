"""The subject of an export: one row of an experiment's last tracked result, with one seed."""

import json
import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.config.coordinates import RowKey
from synthbench.config.experiment import Experiment, RunConfig, Variant
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.store import Store
from synthbench.reporting.model.aggregate import Runs, row_named
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.tracking.redaction import redacted

BEST_ON_DEV, ANY, USUAL = "best-on-dev", "any", ""
"""Choices of the seed: best on dev; any; the best on dev if dev scores exist, else the first."""


@dataclass(frozen=True)
class Subject:
    """One run of a row, its experiment, and the store with its artifacts.

    `runs` are the row's runs with all seeds. `chosen_by` is a text such as "the best of 3 on dev data" if
    dev scores chose the seed, else "".
    """

    experiment: Experiment
    result: ExperimentResult
    row: RowKey
    runs: Runs
    run: RunResult
    chosen_by: str
    store: Store

    @property
    def artifacts(self) -> Artifacts:
        """The store's artifacts."""
        return Artifacts(self.store)

    @property
    def title(self) -> str:
        """The row, with the seed if it matters: "dino [base=small], seed 1"."""
        return f"{self.row.label}, seed {self.run.seed}" if self.run.is_seeded else self.row.label

    @property
    def config(self) -> RunConfig:
        """The row's settings; if there are candidates, those of the candidate chosen on dev."""
        axes = dict(self.row.axes)
        (variant,) = (
            each
            for each in self.experiment.variants
            if each.name == self.row.variant and dict(each.axes) == axes
        )
        return _chosen(variant, self.run)

    @property
    def version(self) -> str:
        """The version of synthbench that computed the result; "" if unknown."""
        return self.result.environment.get("synthbench", "")

    def again(self) -> str:
        """Return a hint for messages: the command that computes missing artifacts again."""
        return (
            f"`{shlex.join(('synthbench', 'run', self.result.file, *self.result.overrides))}` makes it again"
        )


def find_subject(
    experiment: Experiment, result: ExperimentResult, row: str, seed: str, store: Store
) -> Subject:
    """Return a row's run with this seed: a number, BEST_ON_DEV, ANY or USUAL.

    `row` is a label of the table, or a variant with a single row. Raises UserError if `row` names no row or
    several, if the row has no such seed, or if it lacks dev scores for BEST_ON_DEV.
    """
    result = redacted(result)
    labels = {each.label for each in experiment.variants}
    rows = Analysis(result).grid_rows
    if row in {*labels, *(each.name for each in experiment.variants)} and not any(
        row in (key.label, key.variant) for key in rows
    ):
        raise UserError(
            f"'{row}' has no finished run in the last result: it failed or is pending; run the experiment"
            " again"
        )
    key, runs = row_named(rows, row)
    run, why = _with_seed(key.label, runs, seed)
    return Subject(experiment, result, key, runs, run, why, store)


def stored(subject: Subject, path_in_home: str, what: str) -> Path:
    """Verify all checksums of the artifact at `path_in_home` ("store/artifacts/..."); return its folder.

    Raises UserError if it is gone or damaged; `what` names it in the message.
    """
    identity = next(part for part in reversed(Path(path_in_home).parts) if len(part) == IDENTITY_LENGTH)
    if not subject.store.has(identity):
        raise UserError(f"{what} of '{subject.title}' is no longer in the store; {subject.again()}")
    try:
        subject.store.check(identity, thorough=True)
        return subject.store.fetch(identity)
    except ArtifactDamagedError as damage:
        raise UserError(
            f"{what} of '{subject.title}' is damaged in the store ({damage}); {subject.again()}"
        ) from damage


IDENTITY_LENGTH = 64
"""Hexadecimal digits of a stage's identity, a SHA-256."""


def _with_seed(label: str, runs: Runs, wanted: str) -> tuple[RunResult, str]:
    seeds = ", ".join(str(run.seed) for run in runs)
    if wanted not in (BEST_ON_DEV, ANY, USUAL):
        found = [run for run in runs if str(run.seed) == wanted]
        if not found:
            if not runs[0].is_seeded:
                raise UserError(f"--seed {wanted}: '{label}' is the same for every seed; leave out --seed")
            raise UserError(
                f"--seed {wanted}: '{label}' was run with {seeds}; give one of these, or {BEST_ON_DEV}"
            )
        return found[0], ""
    if len(runs) == 1 or wanted == ANY:
        return runs[0], ""
    scores = {run.seed: run.dev_score for run in runs if run.dev_score is not None}
    if len(scores) < len(runs) or not all(map(math.isfinite, scores.values())):
        if wanted == USUAL:
            return min(runs, key=lambda run: run.seed), ""
        raise UserError(f"'{label}' has no dev scores to choose a seed by; give --seed, one of {seeds}")
    best = max(runs, key=lambda run: (scores[run.seed], -run.seed))
    return best, f"the best of {len(runs)} on dev data"


def _chosen(variant: Variant, run: RunResult) -> RunConfig:
    """Return the settings of the candidate that the run's `select` chose, or of the first if none fits."""
    fitting = (
        candidate.config
        for candidate in variant.candidates
        if all(_same(run.chosen.get(path), value) for path, value in candidate.chosen.items())
    )
    return next(fitting, variant.candidates[0].config)


def _same(first: Any, second: Any) -> bool:  # noqa: ANN401 - values of an experiment file
    """Return whether two values are equal as JSON: one may have been stored as JSON, the other not."""
    return json.dumps(first, default=str) == json.dumps(second, default=str)
