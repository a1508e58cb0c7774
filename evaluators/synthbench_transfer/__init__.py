"""Transfer tasks: a linear classifier on frozen embeddings, as SentEval trains it."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    Progress,
    RecordKind,
    SyntheticDataset,
    UserError,
    progress_task,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synthbench_transfer.protocol import Labelled, Predictions

SPLITS = ("train", "dev", "test")
POSITIVE = "1"
DEV_SHARE = 20
"""Without dev data, SentEval's classifier uses 1 of this many items as dev data."""


class Transfer(Evaluator):
    """Accuracy, in [0, 1], of a linear classifier on the frozen embeddings of sentences.

    Follows SentEval's protocol (Conneau and Kiela 2018), grids and folds. The evaluation's splits decide how
    the regularisation is chosen: without `train`, by nested folds of the test set (MR, CR, SUBJ, MPQA); with
    `train`, by its folds (TREC); with `train` and `dev`, by dev (SST2). A sentence's class is its label.
    """

    version: ClassVar[int] = 2
    record_kind: ClassVar[RecordKind] = RecordKind.SENTENCE
    needs_encoder: ClassVar[bool] = True
    learns_from: ClassVar[Collection[str]] = ("train", "dev")
    main_score: ClassVar[str] = "accuracy"

    classifier: Literal["senteval", "logistic-regression"] = Field(
        "senteval",
        description="senteval: SentEval's own, as in the literature, trained by Adam and stopped by dev "
        "accuracy; logistic-regression: scikit-learn's, fitted until it converges, at most 1000 steps",
    )
    folds: int = Field(
        10,
        ge=2,
        le=100,
        description="number of folds that choose the regularisation, and of the outer folds if nested",
    )
    seed: int = Field(
        1111,
        ge=0,
        lt=2**32,
        description="seed of the folds; for `senteval`, also of initial weights and batches",
    )

    def check_learning(self, given: Collection[str]) -> None:
        """Raise UserError for dev data without train data."""
        if "dev" in given and "train" not in given:
            raise UserError("dev chooses for a classifier that learns from `train`; give `train`, too")

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if the data can't be fitted, before anything is encoded.

        The reasons: an item has no class; all items have one class; a test or dev item has a class that no
        train item has; a class has too few items for the folds; `senteval` has too few to take dev data from.
        """
        classes = self._classes(task)
        rows = _rows_of_splits(task, classes)
        learnt = "train" if "train" in rows else "test"
        numbers = Counter(classes[rows[learnt]].tolist())
        if len(numbers) < 2:
            raise UserError(f"{task.task_name}: all {learnt} items are of one class, {next(iter(numbers))}")
        for split in rows:
            unknown = sorted({*classes[rows[split]].tolist()} - numbers.keys())
            if unknown:
                raise UserError(
                    f"{task.task_name}: no train item has the class '{unknown[0]}' of a {split} item"
                )
        rarest = min(numbers, key=lambda each: (numbers[each], each))
        # An outer fold's items are missing in its inner folds.
        left = numbers[rarest] if learnt == "train" else numbers[rarest] - -(-numbers[rarest] // self.folds)
        if "dev" not in rows and left < self.folds:
            raise UserError(
                f"{task.task_name}: the class '{rarest}' has {numbers[rarest]} {learnt} items, too few for"
                f" {self.folds} folds; give fewer `folds`"
            )
        num_items = len(rows[learnt])
        left = num_items if learnt == "train" else num_items - -(-num_items // self.folds)
        if self.classifier == "senteval" and "dev" not in rows and left < DEV_SHARE:
            raise UserError(
                f"{task.task_name}: {left} items to learn from; classifier: senteval needs {DEV_SHARE}, for"
                " 5 % of them end its training; classifier: logistic-regression needs fewer"
            )

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Encode all items, fit and predict.

        Raises UserError as `check_data`, and for vectors that are not finite.
        """
        return self.evaluate_with_progress(model, task, None)

    def evaluate_with_progress(
        self, model: PairScorer | Encoder, task: SyntheticDataset, progress: Progress | None
    ) -> Evaluation:
        """Evaluate as `evaluate` does, and report every fit."""
        import numpy as np

        from synthbench_transfer.protocol import Labelled

        if not isinstance(model, Encoder):
            raise TypeError(f"{type(model).__name__} is not an Encoder")
        self.check_data(task)
        classes = self._classes(task)
        rows = _rows_of_splits(task, classes)
        features = self._features(model, task)
        if not np.isfinite(features).all():
            raise UserError(f"{task.task_name}: the model's vectors are not all finite")
        parts = {split: Labelled(features[index], classes[index]) for split, index in rows.items()}
        outcome = self._outcome(parts, task.task_name, progress)
        return self._evaluation(outcome, parts["test"], task, rows["test"])

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each item's influence on the accuracy, with the fitted classifiers fixed."""
        import numpy as np

        is_right = items["gold"] == items["predicted"]
        return np.asarray(is_right - is_right.mean(), float)

    def _classes(self, task: SyntheticDataset) -> "NDArray[np.str_]":
        import numpy as np

        labels = task.column("label")
        if not all(labels):
            record_id = task.column("id")[labels.index("")]
            raise UserError(f"{task.task_name}: {record_id} has no label, which is a sentence's class")
        return np.array(labels)

    def _features(self, model: Encoder, task: SyntheticDataset) -> "NDArray[np.float32]":
        return model.encode(task.column("sentence"))

    def _outcome(
        self, parts: "Mapping[str, Labelled]", task: str, progress: Progress | None
    ) -> "Predictions":
        from threadpoolctl import threadpool_limits

        from synthbench_transfer.classifiers import LogisticRegression, SentEval
        from synthbench_transfer.protocol import Fitting, num_fits

        classifier = SentEval(self.seed) if self.classifier == "senteval" else LogisticRegression()
        total = num_fits(parts, self.folds)
        # Sums over threads depend on their number, and threads gain nothing on products with few columns.
        with threadpool_limits(1), progress_task(progress, f"classify {task}", total) as task_progress:
            fitting = Fitting(classifier, self.folds, self.seed, task_progress.advance)
            return fitting.outcome(parts.get("train"), parts.get("dev"), parts["test"])

    def _evaluation(
        self, outcome: "Predictions", test: "Labelled", task: SyntheticDataset, rows: "NDArray[np.int64]"
    ) -> Evaluation:
        import numpy as np

        ids = task.column("id")
        return Evaluation(
            scores={
                "accuracy": float(np.mean(outcome.accuracies)),
                "dev_accuracy": float(np.mean(outcome.dev_accuracies)),
                f"lowest_{outcome.strength}": min(outcome.chosen),
                f"highest_{outcome.strength}": max(outcome.chosen),
                **self._further_scores(outcome, test),
            },
            main_score=self.main_score,
            num_items=len(rows),
            items={
                "id": [ids[row] for row in rows],
                "gold": test.classes.tolist(),
                "predicted": outcome.predicted.tolist(),
            },
        )

    def _further_scores(self, outcome: "Predictions", test: "Labelled") -> Mapping[str, float]:
        return {}


class TransferPairs(Transfer):
    """`Transfer` for pairs with embeddings u and v: the features are |u - v| and u * v (MRPC).

    A pair is positive if its gold score is at least 0.5. F1 is that of the positive class.
    """

    version: ClassVar[int] = 2
    record_kind: ClassVar[RecordKind] = RecordKind.SCORED_PAIR

    def _classes(self, task: SyntheticDataset) -> "NDArray[np.str_]":
        import numpy as np

        return np.where(np.array(task.column("score"), float) >= 0.5, POSITIVE, "0")

    def _features(self, model: Encoder, task: SyntheticDataset) -> "NDArray[np.float32]":
        import numpy as np

        first, second = (model.encode(task.column(name)) for name in ("sentence1", "sentence2"))
        return np.hstack([np.abs(first - second), first * second])

    def _further_scores(self, outcome: "Predictions", test: "Labelled") -> Mapping[str, float]:
        from sklearn.metrics import f1_score

        return {"f1": float(f1_score(test.classes, outcome.predicted, pos_label=POSITIVE))}


def _rows_of_splits(task: SyntheticDataset, classes: "NDArray[np.str_]") -> "dict[str, NDArray[np.int64]]":
    """Return the rows of each split, shorter sentences first, the order in which SentEval draws folds.

    If no item has the split "test", all items are test items.
    """
    import numpy as np

    lengths = [tuple(len(text.split()) for text in texts) for texts in task.text_rows()]
    splits = task.column("split")
    has_test = "test" in splits
    rows: dict[str, list[int]] = {}
    for row in sorted(range(len(lengths)), key=lambda row: (lengths[row], classes[row])):
        rows.setdefault(splits[row] if has_test else "test", []).append(row)
    return {split: np.array(rows[split]) for split in SPLITS if split in rows}
