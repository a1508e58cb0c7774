"""Use experiments from Python: run one, or load its tracked results, as pandas data frames.

import synthbench

results = synthbench.load("experiments/quickstart.yaml")
results.scores.groupby(["variant", "task"])["score"].mean()
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.config.key_hosts import allow_hosts
from synthbench.config.overrides import Overrides
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.progress import progress_for_people
from synthbench.engine.stores import open_store
from synthbench.pipeline.experiment_run import compute, record
from synthbench.pipeline.invocation import Invocation, load_invocation
from synthbench.plugins.files import allow_code
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparison_section import comparison_csv
from synthbench.reporting.model.cost_section import cost_csv
from synthbench.reporting.model.sections import CsvTable
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.collect import request
from synthbench.results.evaluators import evaluator_of
from synthbench.results.sentences import Sentences
from synthbench.stages.evaluation import ITEMS_FILE, read_items
from synthbench.tracking.mlflow_tracker import MlflowTracker

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Results:
    """An experiment's results as data frames; `result` holds everything that was tracked."""

    result: ExperimentResult

    @cached_property
    def scores(self) -> "pd.DataFrame":
        """All scores: a row per variant, seed, task and metric.

        Columns: variant, one per axis of the grid, seed, task, split, evaluator, metric, is_main (whether
        tables show it), score (in [-1, 1] or [0, 1], not x 100), num_items.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                **_coordinates(run),
                "task": scores.task,
                "split": scores.split,
                "evaluator": scores.evaluator,
                "metric": metric,
                "is_main": metric == scores.main_score,
                "score": value,
                "num_items": scores.num_items,
            }
            for run in self.result.runs
            for scores in run.scores
            for metric, value in scores.scores.items()
        )

    def items(self, task: str) -> "pd.DataFrame":
        """Return the per-item scores of one task: a row per variant, seed and item.

        Columns: variant, axes, seed, evaluator, then the evaluator's own (for "sts": id, subset, gold,
        predicted), and sentences: the ids of the item's sentences, hashes of the normalised texts. Raises
        UserError if the store has no items of this task.
        """
        import pandas as pd

        frames = list(self._items(task))
        if not frames:
            raise UserError(f"{self.result.title}: no per-item scores of {task} in {open_store()}")
        return pd.concat(frames, ignore_index=True)

    def _items(self, task: str) -> "Iterator[pd.DataFrame]":
        artifacts = Artifacts(open_store())
        sentences = Sentences(artifacts)
        for run in self.result.runs:
            for scores in run.scores:
                file = artifacts.file(scores.stage, ITEMS_FILE) if scores.task == task else None
                if file is not None:
                    evaluator = evaluator_of(scores)
                    known = None if evaluator is None else sentences.ids(scores.stage, evaluator)
                    items = read_items(file, known).to_pandas()
                    yield items.assign(**_coordinates(run), evaluator=scores.evaluator)[
                        [*_coordinates(run), "evaluator", *items.columns]
                    ]

    @cached_property
    def comparisons(self) -> "pd.DataFrame":
        """The comparisons of the report, as in its comparisons.csv: scores x 100 (docs/statistics.md)."""
        return _frame(comparison_csv(Analysis(self.result)))

    @cached_property
    def costs(self) -> "pd.DataFrame":
        """Requests, tokens and costs of LLMs, as in the report's costs.csv; empty without an LLM."""
        return _frame(cost_csv(Analysis(self.result)))


class Options(TypedDict, total=False):
    """Overrides, as on the command line.

    `assignments` set values of the file by dotted path: {"train.max_steps": 20}. `allow_code` lets Python
    files in the experiment's folder run, for methods of your own. `allow_hosts` names hosts that may get the
    LLMs' keys.
    """

    profile: str
    assignments: Mapping[str, Any]
    variants: Sequence[str]
    seeds: Sequence[int]
    data: str | Path
    allow_code: bool
    allow_hosts: Sequence[str]


def run(
    file: str | Path, *, jobs: int = 1, output: str | Path = "reports", **options: Unpack[Options]
) -> Results:
    """Run an experiment as `synthbench run` does, and return its results.

    Stages in the store are not computed again. With `jobs` above 1, the calling script needs `if __name__ ==
    "__main__":`. Raises UserError if the file or the data are invalid, if stages failed, or if results can't
    be tracked.
    """
    invocation = _invocation(Path(file), options)
    progress = progress_for_people()
    computed = compute(invocation, progress, jobs=jobs, force=(), output=Path(output))
    if computed.result.runs:
        recorded = record(computed, progress)
        if recorded.errors:
            raise UserError(*recorded.errors)
    if computed.report.failed or computed.report.pending:
        raise UserError(*computed.report.failure_lines, *computed.report.pending_lines)
    return Results(computed.result)


def load(file: str | Path, **options: Unpack[Options]) -> Results:
    """Return an experiment's last tracked results for the same options; computes nothing.

    Raises UserError if there are none.
    """
    invocation = _invocation(Path(file), options)
    asked = request(invocation.experiment, invocation.overrides)
    return Results(MlflowTracker(home()).load(invocation.experiment.name, asked))


def _invocation(file: Path, options: Options) -> Invocation:
    if options.get("allow_code"):
        allow_code(file.parent)
    invocation = load_invocation(file, _overrides(options))
    if options.get("allow_hosts"):
        llms = invocation.experiment.llms
        allow_hosts(options["allow_hosts"], [llms[name] for name in invocation.experiment.used_llms])
    return invocation


def _overrides(options: Options) -> Overrides:
    assignments = options.get("assignments", {})
    return Overrides(
        profile=options.get("profile"),
        assignments=tuple(f"{path}={json.dumps(value)}" for path, value in assignments.items()),
        variants=tuple(options.get("variants", ())),
        seeds=tuple(options.get("seeds", ())),
        data=Path(options["data"]) if "data" in options else None,
    )


def _coordinates(run: RunResult) -> dict[str, Any]:
    return {"variant": run.variant, **run.axes, "seed": run.seed}


def _frame(table: CsvTable) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_csv(io.StringIO(csv_text(table)))
