"""The one rule that decides whether a lead is more than noise."""

from collections.abc import Sequence

from synthbench.reporting.statistics.differences import Noise, over_seeds
from synthbench.reporting.statistics.samples import Sample

__all__ = ["NOISE_RULE", "Sample", "leads"]

NOISE_RULE = "t-test, two-sided 5 %, of the differences by seed where rows have the same seeds"


def leads(best: Sample, other: Sample, items: Sequence[Noise] = ()) -> bool:
    """Say whether `best` lies above `other` by more than the noise between seeds and, if given, of the items.

    The 95 % confidence interval of their difference must lie above 0. A single seed tells nothing of the
    noise, so it neither leads nor is led; nor do two rows lead each other that have no noise known.
    """
    difference = over_seeds(best, other)
    if difference is None or not (difference.noise or items):
        return False
    whole = difference.with_items(items)
    return whole.value > whole.half_width
