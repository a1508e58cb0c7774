"""SentEval's choice of C for a logistic regression, by nested folds, folds of the train part, or dev data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sklearn.linear_model import LogisticRegression

WIDE = tuple(2.0**power for power in range(-2, 4))
"""C where dev data, or the inner of nested folds, choose it."""
STRONG = tuple(2.0**power for power in range(-1, 6))
"""C where folds of the train part choose it."""

MOST_STEPS = 1000
"""Of the solver; scikit-learn's default of 100 is too few for high C."""


@dataclass(frozen=True)
class Labelled:
    """Features of shape (items, dimension) and the class of each item, of shape (items,)."""

    features: "NDArray[np.float32]"
    classes: "NDArray[np.str_]"

    def at(self, rows: "NDArray[np.int64]") -> "Labelled":
        """Return these rows."""
        return Labelled(self.features[rows], self.classes[rows])


@dataclass(frozen=True)
class Outcome:
    """What is predicted for the test items, the accuracies (of each fold), and the C that were chosen."""

    predicted: "NDArray[np.str_]"
    accuracies: Sequence[float]
    dev_accuracies: Sequence[float]
    chosen: Sequence[float]


@dataclass(frozen=True)
class Protocol:
    """How many folds there are, and the seed that draws them."""

    folds: int
    seed: int

    def nested(self, data: Labelled) -> Outcome:
        """Predict each fold from the others, within which further folds choose C."""
        import numpy as np

        predicted = np.empty_like(data.classes)
        outcomes = []
        for train, test in self._folds(data):
            outcome = self.by_folds(data.at(train), data.at(test), WIDE)
            predicted[test] = outcome.predicted
            outcomes.append(outcome)
        return Outcome(
            predicted,
            [each.accuracies[0] for each in outcomes],
            [each.dev_accuracies[0] for each in outcomes],
            [each.chosen[0] for each in outcomes],
        )

    def by_folds(self, train: Labelled, test: Labelled, grid: Sequence[float] = STRONG) -> Outcome:
        """Predict test from train, of which folds choose C."""
        import numpy as np

        found = [_accuracies(train.at(rest), train.at(fold), grid) for rest, fold in self._folds(train)]
        return _finished(train, test, grid, np.mean(found, axis=0))

    def by_dev(self, train: Labelled, dev: Labelled, test: Labelled) -> Outcome:
        """Predict test from train; dev chooses C."""
        import numpy as np

        return _finished(train, test, WIDE, np.array(_accuracies(train, dev, WIDE)))

    def _folds(self, data: Labelled) -> Iterator[tuple[Any, Any]]:
        from sklearn.model_selection import StratifiedKFold

        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        yield from splitter.split(data.features, data.classes)


def _accuracies(train: Labelled, dev: Labelled, grid: Sequence[float]) -> list[float]:
    return [model.score(dev.features, dev.classes) for model in _fitted(train, grid)]


def _finished(
    train: Labelled, test: Labelled, grid: Sequence[float], accuracies: "NDArray[np.float64]"
) -> Outcome:
    """Take the best C; of those that are equal to two decimals of a percentage, as SentEval, the smallest."""
    import numpy as np

    best = int(np.argmax(np.round(100 * accuracies, 2)))
    (model,) = _fitted(train, grid[best : best + 1])
    predicted = model.predict(test.features)
    accuracy = float((predicted == test.classes).mean())
    return Outcome(predicted, [accuracy], [float(accuracies[best])], [grid[best]])


def _fitted(data: Labelled, grid: Sequence[float]) -> "Iterator[LogisticRegression]":
    """Yield a regression for each C.

    Each starts from zero: from the weights of the one before, the solver ends elsewhere within its tolerance,
    which is enough to choose another C in 4 of CR's 10 folds.
    """
    from sklearn.linear_model import LogisticRegression

    for strength in grid:
        yield LogisticRegression(C=strength, max_iter=MOST_STEPS).fit(data.features, data.classes)
