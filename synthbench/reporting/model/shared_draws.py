"""Tell which rows are paired by design: seeds redraw data that both rows use."""

from collections.abc import Mapping, Sequence

from synthbench.reporting.results import RunResult


def share_draws(runs: Sequence[RunResult], others: Sequence[RunResult]) -> bool:
    """Return whether seeds redraw data of both rows, so that their scores go up and down together.

    True if the rows have two or more common seeds, and at each of these seeds both rows use a data stage
    that neither row uses at another of these seeds. Equal seeds alone do not pair rows. Nor does a draw made
    once for all seeds.
    """
    ours, theirs = _stages_by_seed(runs), _stages_by_seed(others)
    shared = {seed: ours[seed] & theirs[seed] for seed in ours.keys() & theirs.keys()}
    return len(shared) > 1 and all(
        stages - {stage for other in shared if other != seed for stage in ours[other] | theirs[other]}
        for seed, stages in shared.items()
    )


def _stages_by_seed(runs: Sequence[RunResult]) -> Mapping[int, set[str]]:
    found: dict[int, set[str]] = {}
    for run in runs:
        stages = found.setdefault(run.seed, set())
        for data in run.datasets:
            stages |= {data.stage, *(each.stage for each in data.made_of)}
    return found
