"""How far one histogram is from another."""

from collections.abc import Sequence


def kl_divergence(counts: Sequence[float], reference: Sequence[float]) -> float:
    """Return the Kullback-Leibler divergence of counts in the same bins from the reference's, in nats.

    Half a count is added to each of the reference's bins, so that one that it leaves empty gives no infinity;
    none to the others, for a few of them would seem to be spread as widely as the reference. One there must
    be.
    """
    import numpy as np
    from scipy.special import rel_entr

    ours = np.asarray(counts, np.float64)
    theirs = np.asarray(reference, np.float64) + 0.5
    return float(rel_entr(ours / ours.sum(), theirs / theirs.sum()).sum())
