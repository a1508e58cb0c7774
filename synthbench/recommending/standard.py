"""Choose standard tasks for a study without gold pairs: tasks with words like those of its texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from synthbench.base.errors import UserError

MOST_TASKS = 2
"""How many standard tasks, at most, are used as dev sets."""
_MOST_TEXTS = 1_000
LANGUAGE = "en"
"""The language of all tasks here."""


@dataclass(frozen=True)
class StandardTask:
    """A standard task of scored pairs; its `dev` and `test` sources share no pair."""

    name: str
    dev: Mapping[str, Any]
    test: Mapping[str, Any]

    @property
    def dev_name(self) -> str:
        """The name of the task's dev part among an experiment's sources."""
        return f"{self.name}-dev"


def _part(source: Mapping[str, Any], take: str, **shares: float) -> dict[str, Any]:
    return {**source, "part": {"take": take, "by": "record", "shares": shares}}


_QUORA = {
    "hub": "sentence-transformers/quora-duplicates",
    "revision": "dcd9ad62cf663d50580a2ebd2b8502b2cb8d04b6",
    "file": "pair-class/train-*.parquet",
    "kind": "scored_pair",
    "columns": {"score": "label"},
    "skip_blank": True,
}
STANDARD_TASKS = (
    StandardTask("STSb", {"task": "STSb", "split": "dev"}, {"task": "STSb", "split": "test"}),
    StandardTask("SICK-R", {"task": "SICK-R", "split": "dev"}, {"task": "SICK-R", "split": "test"}),
    StandardTask(
        "MRPC",
        _part({"task": "MRPC", "split": "train"}, "dev", train=0.7, dev=0.3),
        {"task": "MRPC", "split": "test"},
    ),
    # 1,600 of 404,000 pairs each.
    StandardTask(
        "Quora", *(_part(_QUORA, each, train=0.992, dev=0.004, test=0.004) for each in ("dev", "test"))
    ),
)
"""STSb: captions, headlines and forums; SICK-R: captions; MRPC: news; Quora: questions on any topic."""
FIRST = STANDARD_TASKS[0]


def nearest_tasks(
    texts: Sequence[str], read: Callable[[StandardTask], Iterable[str]]
) -> tuple[StandardTask, ...]:
    """Return the standard tasks whose words are most like those of `texts`, at most MOST_TASKS, best first.

    `read` returns a task's texts; tasks for which it raises UserError are left out. Likeness is the cosine of
    mean tf-idf vectors, each over the first 1,000 texts. Without texts, return STSb. Raises UserError if no
    task can be read.
    """
    if not texts:
        return (FIRST,)
    readable: list[tuple[StandardTask, list[str]]] = []
    faults: list[UserError] = []
    for task in STANDARD_TASKS:
        try:
            readable.append((task, list(islice(read(task), _MOST_TEXTS))))
        except UserError as error:
            faults.append(error)
    if not readable:
        raise faults[0]
    like = _likeness(texts[:_MOST_TEXTS], [own for _, own in readable])
    ranked = sorted(zip(readable, like, strict=True), key=lambda each: -each[1])
    return tuple(task for (task, _), _ in ranked[:MOST_TASKS])


def _likeness(texts: Sequence[str], others: Sequence[Sequence[str]]) -> list[float]:
    """Return for each of `others` the cosine, in [0, 1], of its mean tf-idf vector with that of `texts`."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    weights = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    weights.fit([text for each in (texts, *others) for text in each])
    means = normalize(
        np.vstack([np.asarray(weights.transform(each).mean(axis=0)) for each in (texts, *others)])
    )
    return [float(value) for value in means[1:] @ means[0]]
