"""Item noise: how much the choice of test items moves each comparison, from the per-item scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from synthbench.config.experiment import Variant
from synthbench.pipeline.engine.artifacts import Artifacts
from synthbench.pipeline.engine.plan import PlannedRun
from synthbench.pipeline.engine.result_cache import ResultCache
from synthbench.pipeline.engine.stage import Stage
from synthbench.pipeline.operations.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench.plugins import Evaluator
from synthbench.reporting.statistics.item_noise import Influences, ItemNoise, item_variances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Axes = tuple[tuple[str, str], ...]
Scored = tuple[PlannedRun, Stage]
VERSION = 1
"""Raise it whenever the same items give other figures."""


def item_noise(
    runs: Sequence[PlannedRun], is_seeded: Callable[[Variant], bool], artifacts: Artifacts
) -> Iterator[ItemNoise]:
    """Yield the item noise for each point of the grid, test set and evaluator with two rows or more.

    `is_seeded` tells whether seeds change a row. Rows whose noise between seeds is unknown are left out, and
    evaluators that don't tell how items move their score. Rows scored on different items, since pairs in
    their data were dropped, are not compared. One test set is in memory at a time; its figures are cached.
    """
    cache = ResultCache(artifacts, VERSION)
    for (axes, task, evaluator), scored in _by_test_set(runs).items():
        rows = [[run.variant.name, run.seed, is_seeded(run.variant), each.identity] for run, each in scored]
        key = (list(map(list, axes)), task, evaluator, rows)
        found = partial(_of_test_set, dict(axes), task, scored, is_seeded, artifacts)
        known = cache.get(found, *key, of=[stage.identity for _, stage in scored])
        yield from map(ItemNoise.model_validate, known)


def _of_test_set(
    axes: dict[str, str],
    task: str,
    scored: Sequence[Scored],
    is_seeded: Callable[[Variant], bool],
    artifacts: Artifacts,
) -> list[dict[str, Any]]:
    found = []
    for rows in _influences(scored, is_seeded, artifacts):
        if len(rows) > 1:
            influences = tuple(rows.values())
            noise = ItemNoise(
                axes=axes,
                task=task,
                evaluator=scored[0][1].operation.component,
                num_items=influences[0].values.shape[1],
                variants=tuple(rows),
                squared_errors=item_variances(influences),
            )
            found.append(noise.model_dump(mode="json"))
    return found


def _by_test_set(runs: Sequence[PlannedRun]) -> dict[tuple[Axes, str, str], list[Scored]]:
    found: dict[tuple[Axes, str, str], list[Scored]] = {}
    for run in runs:
        axes = tuple(sorted(dict(run.variant.axes).items()))
        for task, stage in run.evaluations.items():
            found.setdefault((axes, task, stage.operation.component), []).append((run, stage))
    return found


def _influences(
    scored: Sequence[Scored], is_seeded: Callable[[Variant], bool], artifacts: Artifacts
) -> Iterable[dict[str, Influences]]:
    """Return the influences of each row whose noise is known, grouped by items."""
    import numpy as np

    rows: dict[str, list[Scored]] = {}
    for run, stage in scored:
        rows.setdefault(run.variant.name, []).append((run, stage))
    found: dict[bytes, dict[str, Influences]] = {}
    for name, members in rows.items():
        seeded = is_seeded(members[0][0].variant)
        lines = [_influence(stage, artifacts) for _, stage in members]
        known = [line for line in lines if line is not None]
        if len(known) < len(lines) or (seeded and len(lines) < 2) or len({items for items, _ in known}) > 1:
            continue
        seeds = tuple(run.seed for run, _ in members)
        influences = Influences(np.stack([values for _, values in known]), seeds, seeded)
        found.setdefault(known[0][0], {})[name] = influences
    return found.values()


def _influence(stage: Stage, artifacts: Artifacts) -> "tuple[bytes, NDArray[np.float64]] | None":
    """Return a hash of the items' ids, and each item's influence on the main score; None if unknown."""
    assert isinstance(stage.operation, Evaluate)
    return item_influence(stage.identity, stage.operation.plugin, artifacts)


def item_influence(
    identity: str, evaluator: Evaluator, artifacts: Artifacts
) -> "tuple[bytes, NDArray[np.float64]] | None":
    """Return a hash of the ids of an evaluation's items, and each item's influence on the main score.

    None if it is unknown: the evaluator does not tell, or the items are gone.
    """
    import numpy as np
    import pyarrow.parquet as pq

    file = artifacts.file(identity, ITEMS_FILE)
    if file is None:
        return None
    table = pq.read_table(file, use_threads=False)
    items = {name: table.column(name).to_numpy() for name in table.column_names}
    scores = artifacts.json(identity, SCORES_FILE)["scores"]
    values = evaluator.influence(items, scores)
    if values is None or len(values) < 2 or "id" not in items or not np.isfinite(values).all():
        return None
    return sha256("\0".join(map(str, items["id"])).encode()).digest(), values
