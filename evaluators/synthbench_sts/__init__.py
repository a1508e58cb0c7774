"""Semantic textual similarity: correlation of model scores with human judgements."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    RecordKind,
    SyntheticDataset,
    finite_scores,
    spearman_influence,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEASURES = ("spearman", "pearson")


class STS(Evaluator):
    """Spearman and Pearson correlation with gold, in [-1, 1], of any pair scorer (encoders: by cosine).

    `all` correlates over all pairs of a task at once, `mean` averages the correlations of its subsets,
    `wmean` weighs them by their number of pairs; without subsets, all three are equal. Subsets appear as
    `spearman/<subset>`. If a model gives all pairs of a task or subset the same score, the undefined
    correlation counts as 0, so that a collapsed model is not missing from tables.
    """

    version: ClassVar[int] = 1
    record_kind: ClassVar[RecordKind] = RecordKind.SCORED_PAIR

    aggregation: Literal["all", "mean", "wmean"] = Field(
        "all",
        description="the Spearman correlation for tables and `selection`: over all pairs, the mean over "
        "the subsets, or that mean weighted by their sizes",
    )

    @property
    def main_score(self) -> str:
        """Name of the score for tables: Spearman of the configured aggregation."""
        return f"spearman_{self.aggregation}"

    @property
    def main_score_title(self) -> str:
        """The correlation and its aggregation in words."""
        return f"Spearman correlation (aggregation: {self.aggregation})"

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if a needed correlation has fewer than two pairs or a single gold score.

        Subsets' correlations are needed for averages over subsets.
        """
        import numpy as np

        from synthbench_sts.correlation import require_order

        gold, subsets = np.array(task.column("score"), float), np.array(task.column("subset"))
        require_order(gold, task.task_name)
        for subset in np.unique(subsets) if self.aggregation != "all" else ():
            require_order(gold[subsets == subset], f"{task.task_name} {subset}".strip())

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score every pair of the task and correlate.

        Raises UserError as `check_data`, and if a score of the model is not finite.
        """
        import numpy as np

        from synthbench_sts.correlation import correlations

        pairs = list(zip(task.column("sentence1"), task.column("sentence2"), strict=True))
        gold, subsets = np.array(task.column("score"), float), task.column("subset")
        predicted = finite_scores(model, pairs, task.task_name)
        return Evaluation(
            scores=correlations(gold, predicted, subsets, task.task_name, averages=self.aggregation != "all"),
            main_score=self.main_score,
            num_items=len(pairs),
            items={
                "id": task.column("id"),
                "subset": subsets,
                "gold": gold.tolist(),
                "predicted": predicted.tolist(),
            },
        )

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each pair's influence on the main score; for a mean, through the subset's correlation."""
        import numpy as np

        gold, predicted, subsets = items["gold"], items["predicted"], items["subset"]
        if self.aggregation == "all":
            return spearman_influence(gold, predicted)
        names = np.unique(subsets)
        found = np.zeros(len(gold))
        for name in names:
            mask = subsets == name
            share = 1 / len(names) if self.aggregation == "mean" else mask.mean()
            found[mask] = spearman_influence(gold[mask], predicted[mask]) * share / mask.mean()
        return found
