"""An experiment's results as pandas data frames; in a notebook, they show their table."""

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

    def agreement(self, people: str, other: str) -> "pd.DataFrame":
        """Return how well two test sets agree on the order of the rows, such as gold and synthetic ones.

        Columns: measure (Kendall's tau, Spearman's rho, order of clear pairs), value, low and high (of the
        95 % interval), number (of rows, or pairs of rows): see `synthbench.statistics.orders`. Raises
        UserError if fewer than three rows have scores on both, if the store lacks their items, or if the
        evaluator does not give the items' influence on its score.
        """
        import pandas as pd

        try:
            found = agreement(self._scores_of_items(people), self._scores_of_items(other))
        except ValueError as error:
            raise UserError(f"{self.result.title}: {people}, {other}: {error}") from None
        return pd.DataFrame(found)

    def _scores_of_items(self, task: str) -> "dict[str, NDArray[np.float64]]":
        """Return row -> main score plus each item's influence on it, shape (seeds, items).

        For a mean over items these are the items' own scores. The mean over drawn items is then, to first
        order, the score of the drawn test set.
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
        """The comparisons of the report, as in its comparisons.csv: scores x 100 (docs/statistics.md)."""
        return _frame(comparison_csv(Analysis(self.result)))

    @cached_property
    def costs(self) -> "pd.DataFrame":
        """Requests, tokens and costs of LLMs, as in the report's costs.csv; empty without an LLM."""
        return _frame(cost_csv(Analysis(self.result)))

    def _repr_html_(self) -> str:
        return html_cell(Report(self.result))


def _coordinates(run: RunResult) -> dict[str, Any]:
    return {"variant": run.variant, **run.axes, "seed": run.seed}


def _frame(table: CsvTable) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_csv(io.StringIO(csv_text(table)))
