"""Item noise: how much the choice of test items moves each comparison, computed from per-item scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import in_one_line
from synthbench.config.experiment import Variant
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import PlannedRun
from synthbench.engine.result_cache import ResultCache
from synthbench.plugins.contracts import Evaluator
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate, Scores
from synthbench.statistics.item_noise import Influences, ItemNoise, item_variances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Axes = tuple[tuple[str, str], ...]
VERSION = 2
"""Raise it whenever the same items give different figures."""


@dataclass(frozen=True)
class Scored:
    """A run's score on a test set: the identity of the evaluation, and the run's row and evaluator."""

    row: str
    seed: int
    is_seeded: bool
    identity: str
    evaluator: Evaluator


def item_noise(
    runs: Sequence[PlannedRun], is_seeded: Callable[[Variant], bool], artifacts: Artifacts
) -> Iterator[ItemNoise]:
    """Yield the item noise for each grid point, test set and evaluator with two or more rows.

    `is_seeded` returns whether seeds change a row. Left out: rows whose noise between seeds is unknown, and
    evaluators that can't compute how items influence their score. Rows scored on different items, because
    pairs in their data were dropped, are not compared. Figures are cached; one test set is in memory at a
    time.
    """
    cache = ResultCache(artifacts, VERSION)
    for (axes, task, evaluator), scored in _by_test_set(runs, is_seeded).items():
        rows = [[each.row, each.seed, each.is_seeded, each.identity] for each in scored]
        key = (list(map(list, axes)), task, evaluator, rows)
        found = partial(_of_test_set, (dict(axes), task, evaluator), scored, artifacts)
        known = cache.get(found, *key, of=[each.identity for each in scored])
        yield from map(ItemNoise.model_validate, known)


def _of_test_set(
    of: tuple[dict[str, str], str, str], scored: Sequence[Scored], artifacts: Artifacts
) -> list[dict[str, Any]]:
    return [noise.model_dump(mode="json") for noise in noise_of_rows(of, scored, artifacts)]


def noise_of_rows(
    of: tuple[dict[str, str], str, str], scored: Sequence[Scored], artifacts: Artifacts
) -> Iterator[ItemNoise]:
    """Yield the item noise of rows that were scored on the same items of one test set.

    `of`: grid coordinates, test set and evaluator's name.
    """
    axes, task, evaluator = of
    for rows in _influences(scored, artifacts):
        if len(rows) > 1:
            influences = tuple(rows.values())
            errors, degrees, of_components, their_degrees = zip(*item_variances(influences), strict=True)
            yield ItemNoise(
                axes=axes,
                task=task,
                evaluator=evaluator,
                num_items=influences[0].values.shape[1],
                variants=tuple(rows),
                squared_errors=errors,
                degrees=degrees,
                component_squared_errors=of_components,
                component_degrees=their_degrees,
                lacks_sentences=True,
            )


def _by_test_set(
    runs: Sequence[PlannedRun], is_seeded: Callable[[Variant], bool]
) -> dict[tuple[Axes, str, str], list[Scored]]:
    found: dict[tuple[Axes, str, str], list[Scored]] = {}
    for run in runs:
        axes = tuple(sorted(dict(run.variant.axes).items()))
        for task, stage in run.evaluations.items():
            assert isinstance(stage.operation, Evaluate)
            scored = Scored(
                run.variant.name, run.seed, is_seeded(run.variant), stage.identity, stage.operation.plugin
            )
            found.setdefault((axes, task, stage.operation.component), []).append(scored)
    return found


def _influences(scored: Sequence[Scored], artifacts: Artifacts) -> Iterable[dict[str, Influences]]:
    """Return the influences of each row with known noise between seeds, grouped by items."""
    import numpy as np

    rows: dict[str, list[Scored]] = {}
    for each in scored:
        rows.setdefault(each.row, []).append(each)
    found: dict[bytes, dict[str, Influences]] = {}
    for name, members in rows.items():
        seeded = members[0].is_seeded
        lines = [item_influence(each.identity, each.evaluator, artifacts) for each in members]
        known = [line for line in lines if line is not None]
        if len(known) < len(lines) or (seeded and len(lines) < 2) or len({items for items, _ in known}) > 1:
            continue
        seeds = tuple(each.seed for each in members)
        influences = Influences(np.stack([values for _, values in known]), seeds, seeded)
        found.setdefault(known[0][0], {})[name] = influences
    return found.values()


def item_influence(
    identity: str, evaluator: Evaluator, artifacts: Artifacts
) -> "tuple[bytes, NDArray[np.float64]] | None":
    """Return a hash of an evaluation's item ids, and each item's influence on the main score, shape (items,).

    None if the evaluator can't compute influences, or its items are gone or invalid.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = artifacts.file(identity, ITEMS_FILE)
    if file is None:
        return None
    scores = artifacts.json(identity, SCORES_FILE, Scores)["scores"]
    try:
        table = pq.read_table(file, use_threads=False)
        items = {name: table.column(name).to_numpy() for name in table.column_names}
        values = evaluator.influence(items, scores)
    except (pa.ArrowException, OSError, KeyError, IndexError, TypeError, ValueError) as error:
        name = artifacts.path_in_home(identity, ITEMS_FILE)
        artifacts.say(
            f"{name} is not what the evaluator writes, so its noise is unknown: {in_one_line(error)}"
        )
        return None
    if values is None or len(values) < 2 or "id" not in items or not np.isfinite(values).all():
        return None
    return sha256("\0".join(map(str, items["id"])).encode()).digest(), values
