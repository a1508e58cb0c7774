"""Classification of sentence pairs, such as duplicate or not, by a model's score."""

from collections.abc import Collection, Mapping
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
    finite_scores,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TITLES = {
    "f1": "F1 of the positive class, threshold chosen on dev",
    "accuracy": "accuracy, threshold chosen on dev",
    "average_precision": "average precision",
    "auc_0.05": "area under the ROC curve up to a false-positive rate of 0.05, normalised",
}
NEED_DEV = ("f1", "accuracy")
WITHOUT_DEV = ("average_precision", "auc_0.05")
POSITIVE = 0.5


class Pairs(Evaluator):
    """F1, accuracy, average precision and AUC(0.05), in [0, 1], of any pair scorer (encoders: by cosine).

    A pair is positive if its gold score is at least 0.5. F1 (of the positive class) and accuracy each use
    their best threshold on dev data, which the evaluation must name as `dev`; these records have the split
    "dev" (Thakur et al. 2021, section 5). The other two need no threshold; AUC(0.05) is the area under the
    ROC curve for false-positive rates up to 0.05, divided by 0.05 (Shah et al. 2018).
    """

    version: ClassVar[int] = 2
    record_kind: ClassVar[RecordKind] = RecordKind.SCORED_PAIR
    learns_from: ClassVar[Collection[str]] = ("dev",)

    measure: Literal["f1", "accuracy", "average_precision", "auc_0.05"] = Field(
        "f1", description="the measure for tables and `selection`; f1 and accuracy need `dev`"
    )

    @property
    def main_score(self) -> str:
        """Name of the score for tables: the configured measure."""
        return self.measure

    @property
    def main_score_title(self) -> str:
        """The measure in words."""
        return TITLES[self.measure]

    def check_learning(self, given: Collection[str]) -> None:
        """Raise UserError if the measure needs a threshold, but there are no dev data."""
        if self.measure in NEED_DEV and "dev" not in given:
            raise UserError(
                f"measure {self.measure} takes the threshold that is best on dev: give `dev`, a list of"
                f" sources, or a measure without a threshold ({' or '.join(WITHOUT_DEV)})"
            )

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if the dev pairs or the test pairs are all of one class."""
        is_dev, is_positive = _parts(task)
        for part, mask in (("dev", is_dev), ("test", ~is_dev)):
            if mask.any() and len({*is_positive[mask].tolist()}) < 2:
                raise UserError(
                    f"{task.task_name}: all {mask.sum():,} {part} pairs are of one class; needed are scores"
                    f" below {POSITIVE:g} and others of at least that"
                )

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score all pairs, choose thresholds on the pairs of split "dev", and measure on all other pairs.

        If all pairs are dev, as when selecting checkpoints, they are measured with their own thresholds.
        Raises UserError as `check_data` and `check_learning`, or if a model's score is not finite.
        """
        import numpy as np

        from synthbench_pairs.measures import PairThresholds, measured

        is_dev, is_positive = _parts(task)
        is_measured = is_dev if is_dev.all() else ~is_dev
        self.check_learning(("dev",) if is_dev.any() else ())
        self.check_data(task)
        pairs = list(zip(task.column("sentence1"), task.column("sentence2"), strict=True))
        scores = finite_scores(model, pairs, task.task_name)
        thresholds = PairThresholds.best(scores[is_dev], is_positive[is_dev]) if is_dev.any() else None
        ids = np.array(task.column("id"))
        return Evaluation(
            scores=measured(scores[is_measured], is_positive[is_measured], thresholds),
            main_score=self.main_score,
            num_items=int(is_measured.sum()),
            items={
                "id": ids[is_measured].tolist(),
                "gold": is_positive[is_measured].astype(float).tolist(),
                "predicted": scores[is_measured].tolist(),
            },
        )

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each pair's influence on the configured measure, with thresholds fixed."""
        import numpy as np

        from synthbench_pairs import measures

        is_positive, predicted = items["gold"] >= POSITIVE, items["predicted"]
        if self.measure == "f1":
            return measures.f1_influence(is_positive, predicted >= scores["threshold_f1"])
        if self.measure == "accuracy":
            is_right = (predicted >= scores["threshold_accuracy"]) == is_positive
            return np.asarray(is_right - is_right.mean(), float)
        if self.measure == "average_precision":
            return measures.average_precision_influence(predicted, is_positive)
        return measures.partial_auc_influence(predicted, is_positive)


def _parts(task: SyntheticDataset) -> "tuple[NDArray[np.bool_], NDArray[np.bool_]]":
    """Return which pairs are dev, and which are positive."""
    import numpy as np

    is_dev = np.array([split == "dev" for split in task.column("split")], bool)
    return is_dev, np.array(task.column("score"), float) >= POSITIVE
