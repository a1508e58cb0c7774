"""Agreement of several annotators beyond chance."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from pydantic import BaseModel, ConfigDict

Answers = Sequence[str | None]
"""One item's answers in the order of the annotators; None where one is missing."""


class Agreement(BaseModel):
    """Agreement over the items that at least two annotators answered.

    `raw` is the share of equal answers among all pairs of answers to the same item, in [0, 1]. Kappa and
    alpha are 1 for perfect agreement and about 0 for chance. A figure is None if there is nothing to
    compare. Kappa and alpha are also None if all answers are one label. For more than two annotators, kappa
    is None.
    """

    model_config = ConfigDict(frozen=True)

    num_annotators: int
    num_items: int
    raw: float | None
    cohen_kappa: float | None
    krippendorff_alpha: float | None


def agreement(answers: Sequence[Answers]) -> Agreement:
    """Return the agreement of at least two annotators."""
    num_annotators = len(answers[0])
    shared = [row for row in map(_given, answers) if len(row) > 1]
    return Agreement(
        num_annotators=num_annotators,
        num_items=len(shared),
        raw=raw_agreement(answers),
        cohen_kappa=cohen_kappa(answers) if num_annotators == 2 else None,
        krippendorff_alpha=krippendorff_alpha(answers),
    )


def raw_agreement(answers: Sequence[Answers]) -> float | None:
    """Return the share of equal answers among all pairs of answers to the same item; None without pairs."""
    equal = [first == second for row in answers for first, second in combinations(_given(row), 2)]
    return sum(equal) / len(equal) if equal else None


def cohen_kappa(answers: Sequence[Answers]) -> float | None:
    """Return Cohen's kappa (1960) over items that both annotators answered; None for a single label."""
    from sklearn.metrics import cohen_kappa_score

    both = [row for row in map(_given, answers) if len(row) == 2]
    if len({label for row in both for label in row}) < 2:
        return None
    return float(cohen_kappa_score(*zip(*both, strict=True)))


def krippendorff_alpha(answers: Sequence[Answers]) -> float | None:
    """Return Krippendorff's alpha for nominal labels, any number of annotators and missing answers.

    1 - observed / expected disagreement, by coincidences (Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability"): each ordered pair of an item's m answers has the weight 1 / (m - 1). None if all
    answers are one label, or no item has two answers.
    """
    coincidences: dict[tuple[str, str], float] = defaultdict(float)
    for row in map(_given, answers):
        if len(row) < 2:
            continue
        counts = Counter(row)
        for first, number in counts.items():
            for second, other in counts.items():
                pairs = number * (other - (first == second))
                coincidences[first, second] += pairs / (len(row) - 1)
    return _alpha(coincidences)


def _alpha(coincidences: Mapping[tuple[str, str], float]) -> float | None:
    totals: dict[str, float] = {}
    for (first, _), weight in coincidences.items():
        totals[first] = totals.get(first, 0.0) + weight
    whole = sum(totals.values())
    expected = whole**2 - sum(total**2 for total in totals.values())
    if not expected:
        return None
    observed = sum(weight for (first, second), weight in coincidences.items() if first != second)
    return 1 - (whole - 1) * observed / expected


def _given(row: Answers) -> tuple[str, ...]:
    return tuple(answer for answer in row if answer is not None)
