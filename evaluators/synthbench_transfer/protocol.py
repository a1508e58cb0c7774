"""SentEval's protocol: the regularisation is chosen by nested folds, folds of train, or dev data."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Labelled:
    """Features of shape (items, dimension) and the class of each item, of shape (items,)."""

    features: "NDArray[np.float32]"
    classes: "NDArray[np.str_]"

    def at(self, rows: "NDArray[np.int64]") -> "Labelled":
        """Return the items of these rows."""
        return Labelled(self.features[rows], self.classes[rows])


@dataclass(frozen=True)
class Predictions:
    """Predicted classes of the test items; accuracies and regularisation, one per outer fold if nested."""

    predicted: "NDArray[np.str_]"
    accuracies: Sequence[float]
    dev_accuracies: Sequence[float]
    chosen: Sequence[float]
    strength: str


class Classifier(Protocol):
    """A linear classifier with a regularisation parameter: "C" or "L2"."""

    @property
    def strength(self) -> str:
        """Name of the regularisation parameter."""

    def grid(self, *, by_folds: bool) -> Sequence[float]:
        """Return the values to choose from; `by_folds`: True if folds of `train` choose, else False."""

    def accuracies(self, train: Labelled, dev: Labelled, grid: Sequence[float]) -> "NDArray[np.float64]":
        """Return the accuracy on dev for each value of the grid."""

    def predicted(
        self, train: Labelled, test: Labelled, strength: float, dev: Labelled | None
    ) -> "NDArray[np.str_]":
        """Return the test items' predicted classes, by a training with `strength` that `dev` may stop."""


def num_fits(splits: Collection[str], folds: int) -> int:
    """Return how often `Fitting` calls `advance` for these splits; fitting a whole grid counts once."""
    if "dev" in splits:
        return 2
    return (folds + 1) * (1 if "train" in splits else folds)


@dataclass(frozen=True)
class Fitting:
    """Fits a classifier; calls `advance` once after all fits of a grid, and after each other fit."""

    classifier: Classifier
    folds: int
    seed: int
    advance: Callable[[], None]

    def outcome(self, train: Labelled | None, dev: Labelled | None, test: Labelled) -> Predictions:
        """Predict `test` by SentEval's protocol; the splits given decide how the regularisation is chosen."""
        if train is None:
            return self._nested(test)
        if dev is None:
            return self._by_folds(train, test, self.classifier.grid(by_folds=True))
        grid = self.classifier.grid(by_folds=False)
        return self._finished((train, dev, test), grid, self._accuracies(train, dev, grid))

    def _nested(self, data: Labelled) -> Predictions:
        """Predict each fold after training on the others; inner folds of training data choose C or L2."""
        predicted = np.empty_like(data.classes)
        outcomes = []
        for train, test in self._folds(data):
            grid = self.classifier.grid(by_folds=False)
            outcomes.append(self._by_folds(data.at(train), data.at(test), grid))
            predicted[test] = outcomes[-1].predicted
        return Predictions(
            predicted,
            [each.accuracies[0] for each in outcomes],
            [each.dev_accuracies[0] for each in outcomes],
            [each.chosen[0] for each in outcomes],
            self.classifier.strength,
        )

    def _by_folds(self, train: Labelled, test: Labelled, grid: Sequence[float]) -> Predictions:
        found = [self._accuracies(train.at(rest), train.at(fold), grid) for rest, fold in self._folds(train)]
        return self._finished((train, None, test), grid, np.mean(found, axis=0))

    def _accuracies(self, train: Labelled, dev: Labelled, grid: Sequence[float]) -> "NDArray[np.float64]":
        found = self.classifier.accuracies(train, dev, grid)
        self.advance()
        return found

    def _finished(
        self,
        parts: tuple[Labelled, Labelled | None, Labelled],
        grid: Sequence[float],
        accuracies: "NDArray[np.float64]",
    ) -> Predictions:
        """Return predictions with the best value of the grid.

        As in SentEval, accuracies are compared at two decimals of a percentage; ties go to the first value.
        """
        train, dev, test = parts
        best = int(np.argmax(np.round(100 * accuracies, 2)))
        predicted = self.classifier.predicted(train, test, grid[best], dev)
        self.advance()
        accuracy = float((predicted == test.classes).mean())
        return Predictions(
            predicted, [accuracy], [float(accuracies[best])], [grid[best]], self.classifier.strength
        )

    def _folds(self, data: Labelled) -> Iterator[tuple[Any, Any]]:
        from sklearn.model_selection import StratifiedKFold

        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        yield from splitter.split(data.features, data.classes)
