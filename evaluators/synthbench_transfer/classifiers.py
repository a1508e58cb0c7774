"""Linear classifiers for transfer tasks: SentEval's own, and scikit-learn's logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synthbench_transfer import DEV_SHARE
from synthbench_transfer.protocol import Labelled

if TYPE_CHECKING:
    from numpy.random import RandomState
    from numpy.typing import NDArray
    from sklearn.linear_model import LogisticRegression as Model

WIDE = tuple(2.0**power for power in range(-2, 4))
"""Values of C to choose from by dev data or inner folds."""
STRONG = tuple(2.0**power for power in range(-1, 6))
"""Values of C to choose from by folds of the train part."""

MOST_STEPS = 1000
"""Iterations of the solver; scikit-learn's default of 100 is too few for high C."""


class LogisticRegression:
    """scikit-learn's logistic regression, fitted once for each C.

    Each fit starts from zero. A warm start ends at slightly different weights, within the solver's
    tolerance, which changes the chosen C in 4 of CR's 10 folds.
    """

    strength = "C"

    def grid(self, *, by_folds: bool) -> Sequence[float]:
        """Return SentEval's values of C."""
        return STRONG if by_folds else WIDE

    def accuracies(self, train: Labelled, dev: Labelled, grid: Sequence[float]) -> "NDArray[np.float64]":
        """Return the accuracy on dev for each C."""
        return np.array([_fitted(train, value).score(dev.features, dev.classes) for value in grid])

    def predicted(
        self, train: Labelled, test: Labelled, strength: float, dev: Labelled | None
    ) -> "NDArray[np.str_]":
        """Return the classes of the test items; dev data are unused."""
        found: NDArray[np.str_] = _fitted(train, strength).predict(test.features)
        return found


def _fitted(data: Labelled, strength: float) -> "Model":
    from sklearn.linear_model import LogisticRegression as Model

    return Model(C=strength, max_iter=MOST_STEPS).fit(data.features, data.classes)


GRID = (1e-5, 1e-4, 1e-3, 1e-2)
BATCH_SIZE = 64
PASSES = 4
"""Passes over the train part between dev evaluations (SentEval's epoch_size)."""
MOST_PASSES = 200
"""Training ends at the first dev evaluation after more passes than this."""
TENACITY = 5
"""Tolerated dev evaluations without a better accuracy, in total: a better one does not reset the count."""
_RATE, _FIRST_DECAY, _SECOND_DECAY, _EPSILON = 1e-3, 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class SentEval:
    """SentEval's own classifier (PyTorch, no hidden layer), whose accuracies the literature prints.

    Adam trains a linear layer on the mean cross-entropy. Every four passes over the train part, the layer is
    evaluated on dev data. Training ends at the sixth evaluation without improvement (in total, not in a row),
    or after 204 passes; the best layer is kept. L2 is Adam's weight decay, also of the bias. SentEval reseeds
    each training, so layers that differ only in L2 have the same initial weights and batches: here they are
    trained side by side. `seed` draws initial weights, the items' order, and dev data if there are none.
    """

    seed: int
    strength = "L2"

    def grid(self, *, by_folds: bool) -> Sequence[float]:
        """Return SentEval's values of L2, with or without folds."""
        return GRID

    def accuracies(self, train: Labelled, dev: Labelled, grid: Sequence[float]) -> "NDArray[np.float64]":
        """Return the best accuracy on dev for each L2."""
        return self._trained(train, dev, grid, np.random.RandomState(self.seed)).accuracies

    def predicted(
        self, train: Labelled, test: Labelled, strength: float, dev: Labelled | None
    ) -> "NDArray[np.str_]":
        """Return the classes of the test items; without dev data, 5 % of the train items serve as dev."""
        draw, whole = np.random.RandomState(self.seed), train
        if dev is None:
            order = draw.permutation(len(train.classes))
            num_dev = len(order) // DEV_SHARE
            train, dev = whole.at(order[num_dev:]), whole.at(order[:num_dev])
        best = self._trained(train, dev, [strength], draw)
        rows = _logits(_with_bias(test.features), best.weights[0]).argmax(axis=1)
        return np.asarray(best.classes[rows])

    def _trained(self, train: Labelled, dev: Labelled, grid: Sequence[float], draw: "RandomState") -> "_Best":
        names = np.unique(np.concatenate([train.classes, dev.classes]))
        x, y = _with_bias(train.features), np.searchsorted(names, train.classes)
        dev_x, dev_y = _with_bias(dev.features), np.searchsorted(names, dev.classes)
        layers = _Layers(self._first_weights(x.shape[1] - 1, len(names)), grid)
        best = _Best(names, np.full(len(grid), -1.0), np.repeat(layers.first[None], len(grid), axis=0))
        left = np.full(len(grid), TENACITY)
        num_passes = 0
        while len(layers.numbers) and num_passes <= MOST_PASSES:
            for _ in range(PASSES):
                _pass_over(x, y, layers, draw)
            num_passes += PASSES
            accuracies = (layers.predicted(dev_x) == dev_y).mean(axis=1)
            is_better = accuracies > best.accuracies[layers.numbers]
            best.keep(layers.numbers[is_better], accuracies[is_better], layers.weights[is_better])
            left[layers.numbers[~is_better]] -= 1
            layers.keep_layers(left[layers.numbers] >= 0)
        return best

    def _first_weights(self, dimension: int, num_classes: int) -> "NDArray[np.float32]":
        """Return PyTorch's initial weights, shape (classes, dimension + 1); the last column is the bias."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            layer = torch.nn.Linear(dimension, num_classes)
        weights, bias = (each.detach().numpy() for each in (layer.weight, layer.bias))
        return np.hstack([weights, bias[:, None]])


@dataclass(frozen=True)
class _Best:
    """The best dev accuracy of each layer, shape (layers,), and its weights at that evaluation.

    `weights` have shape (layers, classes, dimension + 1).
    """

    classes: "NDArray[np.str_]"
    accuracies: "NDArray[np.float64]"
    weights: "NDArray[np.float32]"

    def keep(
        self, numbers: "NDArray[np.int64]", accuracies: "NDArray[np.float64]", weights: "NDArray[np.float32]"
    ) -> None:
        self.accuracies[numbers] = accuracies
        self.weights[numbers] = weights


class _Layers:
    """Layers that differ only in L2, with Adam's moments; finished ones are removed.

    They form one matrix of shape (layers * classes, dimension + 1), so that one product serves them all.
    """

    def __init__(self, first: "NDArray[np.float32]", grid: Sequence[float]) -> None:
        self.first = first
        self.numbers = np.arange(len(grid))
        self._matrix = np.tile(first, (len(grid), 1))
        self._l2 = np.repeat(np.array(grid, np.float32), len(first))[:, None]
        self._mean, self._square = np.zeros_like(self._matrix), np.zeros_like(self._matrix)
        self._num_steps = 0

    @property
    def weights(self) -> "NDArray[np.float32]":
        """Weights of shape (layers, classes, dimension + 1)."""
        return self._matrix.reshape(-1, *self.first.shape)

    def predicted(self, x: "NDArray[np.float32]") -> "NDArray[np.int64]":
        """Return each layer's predicted class numbers, shape (layers, items)."""
        return np.asarray(self._logits(x).argmax(axis=2).T)

    def keep_layers(self, is_left: "NDArray[np.bool_]") -> None:
        """Remove the finished layers, for which `is_left`, shape (layers,), is False."""
        if is_left.all():
            return
        self.numbers = self.numbers[is_left]
        rows = np.repeat(is_left, len(self.first))
        self._matrix, self._l2 = self._matrix[rows], self._l2[rows]
        self._mean, self._square = self._mean[rows], self._square[rows]

    def step(self, x: "NDArray[np.float32]", y: "NDArray[np.int64]") -> None:
        """Train each layer on a batch: the cross-entropy's gradient is softmax minus truth."""
        errors = self._logits(x)
        errors -= errors.max(axis=2, keepdims=True)
        np.exp(errors, out=errors)
        errors /= errors.sum(axis=2, keepdims=True)
        errors[np.arange(len(x)), :, y] -= 1
        errors /= len(x)
        gradient = errors.reshape(len(x), -1).T @ x
        gradient += self._l2 * self._matrix
        self._adam_step(gradient)

    def _logits(self, x: "NDArray[np.float32]") -> "NDArray[np.float32]":
        return _logits(x, self._matrix).reshape(len(x), -1, len(self.first))

    def _adam_step(self, gradient: "NDArray[np.float32]") -> None:
        """Take a step of Adam (Kingma and Ba 2015); Python floats keep the arrays in single precision."""
        self._num_steps += 1
        self._mean *= _FIRST_DECAY
        self._mean += (1 - _FIRST_DECAY) * gradient
        self._square *= _SECOND_DECAY
        np.square(gradient, out=gradient)
        gradient *= 1 - _SECOND_DECAY
        self._square += gradient
        step = np.sqrt(self._square)
        step /= (1 - _SECOND_DECAY**self._num_steps) ** 0.5
        step += _EPSILON
        np.divide(self._mean, step, out=step)
        step *= _RATE / (1 - _FIRST_DECAY**self._num_steps)
        self._matrix -= step


def _pass_over(
    x: "NDArray[np.float32]", y: "NDArray[np.int64]", layers: _Layers, draw: "RandomState"
) -> None:
    order = draw.permutation(len(x))
    for start in range(0, len(x), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        layers.step(x[rows], y[rows])


def _with_bias(features: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the features with a column of ones for the bias."""
    return np.hstack([features, np.ones((len(features), 1), np.float32)]).astype(np.float32, copy=False)


def _logits(x: "NDArray[np.float32]", weights: "NDArray[np.float32]") -> "NDArray[np.float32]":
    return x @ weights.T
