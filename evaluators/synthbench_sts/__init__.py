"""Semantic textual similarity: correlation of model scores with human judgements."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    RecordKind,
    SyntheticDataset,
    UserError,
)
from synthbench_sts.influence import spearman_influence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEASURES = ("spearman", "pearson")
AGGREGATIONS = ("all", "mean", "wmean")


class STS(Evaluator):
    """Spearman and Pearson correlation with gold, in [-1, 1], of any pair scorer (encoders: by cosine).

    `all` correlates over all pairs of a task at once, `mean` averages the correlations of its subsets,
    `wmean` weighs them by their number of pairs; a task without subsets has all three equal. Subsets appear
    as `spearman/<subset>`. A model that gives every pair of a subset the same score has no ranking of it:
    its correlation, undefined, counts as 0, so that a collapsed model is the worst and not missing.
    """

    version: ClassVar[int] = 1
    record_kind: ClassVar[RecordKind] = RecordKind.SCORED_PAIR

    aggregation: Literal["all", "mean", "wmean"] = Field(
        "all",
        description="which Spearman correlation tables show and `selection` uses: over all pairs, the mean "
        "over the subsets, or that mean weighted by their sizes",
    )

    @property
    def main_score(self) -> str:
        """Name of the score that tables print: Spearman of the chosen aggregation."""
        return f"spearman_{self.aggregation}"

    @property
    def main_score_title(self) -> str:
        """The correlation and its aggregation in words."""
        return f"Spearman correlation (aggregation: {self.aggregation})"

    @property
    def score_names(self) -> tuple[str, ...]:
        """Both correlations in all aggregations."""
        return tuple(f"{measure}_{aggregation}" for measure in MEASURES for aggregation in AGGREGATIONS)

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if a correlation that is needed has fewer than two pairs or one gold score only.

        Each subset's is needed where subsets are averaged.
        """
        import numpy as np

        gold, subsets = np.array(task.column("score"), float), np.array(task.column("subset"))
        _require_order(gold, task.task_name)
        for subset in np.unique(subsets) if self.aggregation != "all" else ():
            _require_order(gold[subsets == subset], f"{task.task_name} {subset}".strip())

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score every pair of the task and correlate.

        Raises UserError where `check_data` does, and if a score of the model is not finite.
        """
        import numpy as np

        if not isinstance(model, PairScorer):
            raise TypeError(f"{type(model).__name__} is not a PairScorer")
        pairs = list(zip(task.column("sentence1"), task.column("sentence2"), strict=True))
        gold, subsets = np.array(task.column("score"), float), task.column("subset")
        predicted = np.asarray(model.score(pairs), float)
        faulty = np.flatnonzero(~np.isfinite(predicted))
        if len(faulty):
            raise UserError(
                f"{task.task_name}: the model's score of {pairs[faulty[0]]} is {predicted[faulty[0]]}"
            )
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
        """Return how each pair moves the Spearman correlation: of its subset's, unless over all pairs."""
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


def correlations(
    gold: "NDArray[np.float64]",
    predicted: "NDArray[np.float64]",
    subsets: Sequence[str],
    name: str,
    *,
    averages: bool,
) -> Mapping[str, float]:
    """Return all scores of a task; arrays are of shape (pairs,), `name` is for messages.

    Raises UserError where gold has no correlation with anything. If `averages` are not needed, a subset in
    which it has none is left out, and with it the averages over subsets.
    """
    import numpy as np

    members = {subset: np.array([each == subset for each in subsets]) for subset in dict.fromkeys(subsets)}
    if not averages:
        members = {subset: mask for subset, mask in members.items() if _has_order(gold[mask])}
    weights = [int(mask.sum()) for mask in members.values()]
    is_whole = sum(weights) == len(gold)
    scores: dict[str, float] = {}
    for measure in MEASURES:
        parts = {
            subset: _correlation(measure, gold[mask], predicted[mask], f"{name} {subset}".strip())
            for subset, mask in members.items()
        }
        scores[f"{measure}_all"] = _correlation(measure, gold, predicted, name)
        if is_whole:
            scores[f"{measure}_mean"] = float(np.mean(list(parts.values())))
            scores[f"{measure}_wmean"] = float(np.average(list(parts.values()), weights=weights))
        scores |= {f"{measure}/{subset}": value for subset, value in parts.items() if subset}
    return scores


def _has_order(gold: "NDArray[np.float64]") -> bool:
    return len(gold) > 1 and bool((gold != gold[0]).any())


def _require_order(gold: "NDArray[np.float64]", name: str) -> None:
    if not _has_order(gold):
        raise UserError(
            f"{name}: a correlation needs pairs with different gold scores, found {len(gold)} pairs"
        )


def _correlation(
    measure: str, gold: "NDArray[np.float64]", predicted: "NDArray[np.float64]", name: str
) -> float:
    import numpy as np
    from scipy import stats

    _require_order(gold, name)
    if (predicted == predicted[0]).all():
        return 0.0
    correlate = stats.spearmanr if measure == "spearman" else stats.pearsonr
    value = float(correlate(gold, predicted).statistic)
    return value if np.isfinite(value) else 0.0
