"""How good labels are, measured on pairs whose gold score is known: agreement, threshold, biases."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from synthbench.auditing.confusion import Correlation, Share, correlation, share
from synthbench.base.errors import UserError
from synthbench.data.records import Record, ScoredPair
from synthbench.words import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POSITIVE = 0.5
"""Gold score from which a pair is positive, by default."""
NUM_RESAMPLES = 10_000
Texts = tuple[str, ...]


class Estimate(BaseModel):
    """A figure with its 95 % interval; a mean of one value has none."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float | None
    high: float | None


class LabelQuality(BaseModel):
    """How well a data set's labels agree with gold scores, on all gold pairs outside gold's split dev.

    A pair that gold has as (a, b) and (b, a) counts once, in the order that comes first. If the data set
    labels both orders, `swapped` and `flipped` show whether labels depend on the order. A pair is positive by
    gold if its gold score is at least `positive`, and positive by its label if the label is at least
    `threshold`. This threshold has the best kappa on gold's split dev; without labelled dev pairs, it equals
    `positive`.
    """

    model_config = ConfigDict(frozen=True)

    num_pairs: int
    num_dev: int
    num_missing: int = Field(description="pairs without a label, as after an LLM's unclear answer")
    positive: float
    threshold: float
    correlation: Correlation | None
    kappa: Estimate | None = Field(
        description="Cohen's kappa of the classes; None if gold and labels have one and the same class only"
    )
    correct: Share = Field(
        description="pairs whose label and gold score give the same class; a missing label counts as wrong"
    )
    error: Estimate = Field(description="mean of label - gold")
    swapped: Estimate | None = Field(description="mean absolute difference of a pair's labels in both orders")
    flipped: Share | None = Field(
        description="pairs whose label gives another class if the two texts are swapped"
    )
    length: Correlation | None = Field(
        description="correlation of label - gold with the total number of words of the two texts"
    )
    labels: dict[str, float] = Field(description="id of the gold record -> label, to compare labellers")


def label_quality(labelled: Sequence[Record], gold: Sequence[Record], positive: float) -> LabelQuality:
    """Compare the scores of labelled pairs with gold's scores of the same texts in the same order.

    Raises UserError if no pair outside dev has a label, or if all dev pairs have the same
    class in gold or the same label.
    """
    import numpy as np

    labels = {pair.texts(): pair.score for pair in labelled if isinstance(pair, ScoredPair)}
    known = _once([pair for pair in gold if isinstance(pair, ScoredPair)])
    dev = [pair for pair in known if pair.split == "dev" and pair.texts() in labels]
    pairs = [pair for pair in known if pair.split != "dev"]
    found = [pair for pair in pairs if pair.texts() in labels]
    if not found:
        raise UserError("none of the data's pairs has a gold score outside split dev")
    threshold = best_threshold(*_columns(dev, labels), positive) if dev else positive
    scores, truth = _columns(found, labels)
    counts = _counts(scores >= threshold, truth >= positive)
    swappable = [
        each for each in (pair.texts() for pair in found) if each[0] != each[1] and each[::-1] in labels
    ]
    both = np.array([(labels[each], labels[each[::-1]]) for each in swappable])
    errors = {pair.id: float(error) for pair, error in zip(found, scores - truth, strict=True)}
    words = {pair.id: float(sum(len(split_words(text)) for text in pair.texts())) for pair in found}
    return LabelQuality(
        num_pairs=len(pairs),
        num_dev=len(dev),
        num_missing=len(pairs) - len(found),
        positive=positive,
        threshold=threshold,
        correlation=correlation({pair.id: (labels[pair.texts()], pair.score) for pair in found}),
        kappa=kappa_of(counts),
        correct=share(int(counts[0] + counts[3]), len(pairs)),
        error=_mean(scores - truth),
        swapped=_mean(abs(both[:, 0] - both[:, 1])) if len(both) else None,
        flipped=share(int(np.diff(both >= threshold, axis=1).sum()), len(both)) if len(both) else None,
        length=correlation({name: (errors[name], words[name]) for name in errors}),
        labels={pair.id: round(labels[pair.texts()], 6) for pair in found},
    )


def best_threshold(scores: "NDArray[np.float64]", truth: "NDArray[np.float64]", positive: float) -> float:
    """Return the threshold on `scores` with the best kappa; of equally good thresholds, the highest.

    `scores` are labels, `truth` gold scores, both of shape (pairs,). The threshold lies halfway between two
    neighbouring scores. Raises UserError if all labels are equal or gold has one class only.
    """
    import numpy as np

    levels = np.unique(scores)
    cuts = (levels[1:] + levels[:-1]) / 2
    is_positive = truth >= positive
    if not len(cuts) or is_positive.all() or not is_positive.any():
        raise UserError(
            f"gold's split dev allows no threshold: its {len(scores)} pairs have {len(levels)} different"
            f" labels, and {int(is_positive.sum())} are positive, from {positive:g} on; needed: several"
            " labels and both classes"
        )
    kappas = _kappas(np.stack([_counts(scores >= cut, is_positive) for cut in cuts]))
    return float(cuts[len(cuts) - 1 - int(kappas[::-1].argmax())])


def kappa_of(counts: "NDArray[np.int64]") -> Estimate | None:
    """Return Cohen's kappa with a bootstrap interval; None if all pairs are of one class.

    `counts` are numbers of pairs: positive in both labellings, only in the first, only in the second, and in
    neither. Resampling changes only these numbers, so the bootstrap draws them instead of pairs, with seed 0.
    """
    import numpy as np

    value = float(_kappas(counts))
    if np.isnan(value):
        return None
    drawn = np.random.default_rng(0).multinomial(counts.sum(), counts / counts.sum(), NUM_RESAMPLES)
    low, high = np.nanquantile(_kappas(drawn), (0.025, 0.975))
    return Estimate(value=value, low=float(low), high=float(high))


def agreement_of_labels(
    first: LabelQuality, second: LabelQuality
) -> tuple[Correlation | None, Estimate | None]:
    """Return the rank correlation and the kappa of two labellers, on the pairs that both labelled."""
    import numpy as np

    shared = {name: (first.labels[name], second.labels[name]) for name in first.labels.keys() & second.labels}
    if not shared:
        return None, None
    one, other = np.array(list(shared.values())).T
    return correlation(shared), kappa_of(_counts(one >= first.threshold, other >= second.threshold))


def _once(pairs: Sequence[ScoredPair]) -> Sequence[ScoredPair]:
    """Return the first occurrence of each pair, treating (a, b) and (b, a) as the same."""
    found: dict[frozenset[str], ScoredPair] = {}
    for pair in pairs:
        found.setdefault(frozenset(pair.texts()), pair)
    return list(found.values())


def _columns(
    pairs: Sequence[ScoredPair], labels: Mapping[Texts, float]
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return the pairs' labels and gold scores, both of shape (pairs,)."""
    import numpy as np

    return np.array([labels[pair.texts()] for pair in pairs]), np.array([pair.score for pair in pairs])


def _counts(first: "NDArray[np.bool_]", second: "NDArray[np.bool_]") -> "NDArray[np.int64]":
    """Return the numbers of pairs positive for both, the first only, the second only, and neither."""
    import numpy as np

    return np.array(
        [(first & second).sum(), (first & ~second).sum(), (~first & second).sum(), (~first & ~second).sum()]
    )


def _kappas(counts: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """Return Cohen's kappa (1960) of `counts`, shape (..., 4); NaN where all pairs have one class."""
    import numpy as np

    both, first, second, neither = np.moveaxis(counts / counts.sum(axis=-1, keepdims=True), -1, 0)
    chance = (both + first) * (both + second) + (neither + first) * (neither + second)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(chance < 1, (both + neither - chance) / (1 - chance), np.nan))


def _mean(values: "NDArray[np.float64]") -> Estimate:
    import numpy as np

    value = float(values.mean())
    if len(values) == 1:
        return Estimate(value=value, low=None, high=None)
    margin = 1.96 * float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(value=value, low=value - margin, high=value + margin)
