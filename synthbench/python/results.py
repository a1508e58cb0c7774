"""An experiment's results as pandas data frames; in a notebook, `Results` shows the report's table."""

import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.stores import open_store
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparison_section import comparison_csv
from synthbench.reporting.model.cost_section import cost_csv
from synthbench.reporting.model.sections import CsvTable
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.render.html.notebook import html_cell
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.evaluators import evaluator_of
from synthbench.results.item_noise import item_influence
from synthbench.results.sentences import Sentences
from synthbench.stages.evaluation import ITEMS_FILE, read_items
from synthbench.statistics.orders import agreement

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Results:
    """An experiment's results as data frames; `result` holds everything that was tracked."""

    result: ExperimentResult

    @cached_property
    def scores(self) -> "pd.DataFrame":
        """All scores: a row per variant, seed, task and metric.

        Columns: variant, one column per axis of the grid, seed, task, split, evaluator, metric, is_main
        (whether tables show the metric), score (in [-1, 1] or [0, 1], not x 100), num_items.
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

        Columns: variant, one column per axis of the grid, seed, evaluator, the evaluator's own columns (for
        "sts": id, subset, gold, predicted), and sentences: hashes of the item's normalised sentences. Raises
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

    def agreement(self, people: str, other: str) -> "pd.DataFrame":
        """Return how well two test sets, such as a gold and a synthetic one, agree on the order of the rows.

        `people` and `other` name the test sets. Columns: measure (Kendall's tau, Spearman's rho, order of
        clear pairs), value, low and high (ends of the 95 % interval), number (of rows, or of clear pairs):
        see `synthbench.statistics.orders`. Raises UserError if fewer than three rows have scores on both test
        sets, if the store lacks per-item scores, or if the evaluator can't compute each item's influence.
        """
        import pandas as pd

        try:
            found = agreement(self._scores_of_items(people), self._scores_of_items(other))
        except ValueError as error:
            raise UserError(f"{self.result.title}: {people}, {other}: {error}") from None
        return pd.DataFrame(found)

    def _scores_of_items(self, task: str) -> "dict[str, NDArray[np.float64]]":
        """Return row -> main score plus each item's influence on the main score, shape (seeds, items).

        If the main score is a mean over items, these sums are the items' own scores. For any score, the mean
        of these sums over drawn items is, to first order, the score on a test set of the drawn items.
        """
        import numpy as np

        artifacts = Artifacts(open_store())
        found: dict[str, list[NDArray[np.float64]]] = {}
        scored = [(run, score) for run in self.result.runs for score in run.scores if score.task == task]
        if len(measures := {score.main_score for _, score in scored}) > 1:
            raise UserError(f"{self.result.title}: {task} has several scores: {', '.join(sorted(measures))}")
        for run, score in scored:
            evaluator = evaluator_of(score)
            items = None if evaluator is None else item_influence(score.stage, evaluator, artifacts)
            if items is None:
                raise UserError(
                    f"{self.result.title}: {task}: no items, or no influence of items on {score.main_score},"
                    f" in {open_store()}"
                )
            row = " ".join((run.variant, *map(str, run.axes.values())))
            found.setdefault(row, []).append(score.scores[score.main_score] + items.values)
        return {row: np.stack(seeds) for row, seeds in found.items()}

    @cached_property
    def comparisons(self) -> "pd.DataFrame":
        """The rows of the report's comparisons.csv, with scores x 100 (docs/statistics.md)."""
        return _frame(comparison_csv(Analysis(self.result)))

    @cached_property
    def costs(self) -> "pd.DataFrame":
        """Requests, tokens and costs of LLMs: the rows of the report's costs.csv; none without an LLM."""
        return _frame(cost_csv(Analysis(self.result)))

    def _repr_html_(self) -> str:
        return html_cell(Report(self.result))


def _coordinates(run: RunResult) -> dict[str, Any]:
    return {"variant": run.variant, **run.axes, "seed": run.seed}


def _frame(table: CsvTable) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_csv(io.StringIO(csv_text(table)))
