"""scikit-learn's logistic regression, fitted until it converges: SentEval's classifier without PyTorch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench_transfer.protocol import Labelled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sklearn.linear_model import LogisticRegression as Model

WIDE = tuple(2.0**power for power in range(-2, 4))
"""C where dev data, or the inner of nested folds, choose it."""
STRONG = tuple(2.0**power for power in range(-1, 6))
"""C where folds of the train part choose it."""

MOST_STEPS = 1000
"""Of the solver; scikit-learn's default of 100 is too few for high C."""


class LogisticRegression:
    """A logistic regression for each C.

    Each starts from zero: from the weights of the one before, the solver ends elsewhere within its tolerance,
    which is enough to choose another C in 4 of CR's 10 folds.
    """

    strength = "C"

    def grid(self, *, by_folds: bool) -> Sequence[float]:
        """Return SentEval's values of C."""
        return STRONG if by_folds else WIDE

    def accuracies(self, train: Labelled, dev: Labelled, grid: Sequence[float]) -> "NDArray[np.float64]":
        """Return the accuracy on dev for each C."""
        import numpy as np

        return np.array([_fitted(train, value).score(dev.features, dev.classes) for value in grid])

    def predicted(
        self, train: Labelled, test: Labelled, strength: float, dev: Labelled | None
    ) -> "NDArray[np.str_]":
        """Return the classes of the test items; dev data are not needed any more."""
        found: NDArray[np.str_] = _fitted(train, strength).predict(test.features)
        return found


def _fitted(data: Labelled, strength: float) -> "Model":
    from sklearn.linear_model import LogisticRegression as Model

    return Model(C=strength, max_iter=MOST_STEPS).fit(data.features, data.classes)
