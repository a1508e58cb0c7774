"""Bitext retrieval: whether a sentence's translation is its nearest text in the other language."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    RecordKind,
    SyntheticDataset,
    UserError,
    directions,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CELLS = 32_000_000
"""Cosines computed at once, at most."""
DIRECTIONS = {"forward": ("anchor", "positive"), "backward": ("positive", "anchor")}


class Bitext(Evaluator):
    """Accuracy and F1, in [0, 1], of finding each text's translation by cosine, in both directions.

    A pair is a text (anchor) and its translation (positive). `forward` searches each anchor's translation
    among all distinct positives, `backward` each positive's translation among all anchors. If the pairs name
    several translations of a text, each is right. `accuracy` and `f1` are the means of both directions. F1
    follows mteb's bitext mining, where each text has one right translation. Each distinct translation is a
    class; F1 is the mean over classes, weighted by their numbers of pairs.
    """

    version: ClassVar[int] = 1
    record_kind: ClassVar[RecordKind] = RecordKind.PAIR
    needs_encoder: ClassVar[bool] = True
    main_score: ClassVar[str] = "accuracy"
    main_score_title: ClassVar[str] = "accuracy of the nearest translation, mean of both directions"

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if one side has fewer than two distinct texts."""
        for side in ("anchor", "positive"):
            if len(set(task.column(side))) < 2:
                raise UserError(f"{task.task_name}: one distinct {side} only: nothing to search")

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Search for all translations; raises UserError as `check_data`, or if a vector is not finite."""
        import numpy as np

        if not isinstance(model, Encoder):
            raise TypeError(f"{type(model).__name__} is not an Encoder")
        self.check_data(task)
        columns: dict[str, list[float]] = {}
        for name, sides in DIRECTIONS.items():
            sources, targets = (list(task.column(side)) for side in sides)
            is_right, f1 = _found(model, sources, targets, task.task_name)
            columns |= {name: is_right.tolist(), f"f1_{name}": f1.tolist()}
        means = {name: float(np.mean(column)) for name, column in columns.items()}
        scores = {
            "accuracy": (means["forward"] + means["backward"]) / 2,
            "f1": (means["f1_forward"] + means["f1_backward"]) / 2,
            **{f"accuracy/{name}": means[name] for name in DIRECTIONS},
            **{f"f1/{name}": means[f"f1_{name}"] for name in DIRECTIONS},
        }
        return Evaluation(scores, self.main_score, len(task), {"id": task.column("id"), **columns})

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each pair's influence on the accuracy, with the searched texts fixed."""
        values = (items["forward"].astype(float) + items["backward"]) / 2
        centred: NDArray[np.float64] = values - values.mean()
        return centred


def _found(
    model: Encoder, sources: Sequence[str], targets: Sequence[str], task: str
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return per pair whether the source's nearest target is right (1 or 0), and the right target's F1.

    For F1, each distinct target is a class.
    """
    import numpy as np

    number = {text: index for index, text in enumerate(dict.fromkeys(targets))}
    right: dict[str, set[int]] = {}
    for source, target in zip(sources, targets, strict=True):
        right.setdefault(source, set()).add(number[target])
    asked = list(right)
    nearest = dict(zip(asked, _nearest(model, asked, list(number), task).tolist(), strict=True))
    predicted = np.array([nearest[source] for source in sources])
    is_right = np.array([nearest[source] in right[source] for source in sources])
    gold = np.where(is_right, predicted, [number[target] for target in targets])
    hits, pairs, guesses = (
        np.bincount(each, minlength=len(number)) for each in (gold[is_right], gold, predicted)
    )
    return is_right.astype(float), (2 * hits[gold] / (pairs[gold] + guesses[gold])).astype(float)


def _nearest(model: Encoder, asked: Sequence[str], texts: Sequence[str], task: str) -> "NDArray[np.intp]":
    """Return each asked text's nearest among `texts` by cosine, as an index; ties go to the lower one."""
    import numpy as np

    queries, others = (_unit(model.encode(list(each)), task) for each in (asked, texts))
    step = max(1, CELLS // len(texts))
    blocks = [
        (queries[start : start + step] @ others.T).argmax(axis=1) for start in range(0, len(asked), step)
    ]
    return np.concatenate(blocks)


def _unit(vectors: "NDArray[np.float32]", task: str) -> "NDArray[np.float32]":
    import numpy as np

    if not np.isfinite(vectors).all():
        raise UserError(f"{task}: the model gives vectors that are not finite")
    return directions(vectors)
