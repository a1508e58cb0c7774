"""Item noise: how much the choice of test items moves each comparison, computed from per-item scores."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import in_one_line
from synthbench.config.coordinates import Coordinates, RowKey
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.result_cache import ResultCache
from synthbench.plugins.model_contracts import Evaluator
from synthbench.reporting.model.aggregate import ColumnSource, Measurement, Runs, column_sources
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.results import TaskScores
from synthbench.results.sentences import Sentences, number_of, shared_sentences, task_of
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Scores
from synthbench.statistics.item_noise import Averaged, Influences, ItemNoise, TestItems, item_variances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 2
"""Raise it whenever the same items give different figures."""
FindEvaluator = Callable[[TaskScores], Evaluator | None]


@dataclass(frozen=True)
class ItemInfluences:
    """The items of one evaluation, and each item's influence on the main score, of shape (items,)."""

    ids: tuple[str, ...]
    subsets: "NDArray[Any] | None"
    values: "NDArray[np.float64]"


def item_noise(analysis: Analysis, evaluator_of: FindEvaluator, artifacts: Artifacts) -> Iterator[ItemNoise]:
    """Yield the item noise per point of the grid, for each column and for test sets not in the table.

    Each ItemNoise has the rows at one point, and the rows that are the same at all points. Left out: rows
    whose noise between seeds is unknown, and evaluators that can't compute how items influence their score.
    Rows are not compared if their scored items differ, as after dropping leaks. Results are cached unless an
    evaluator is missing or fails.
    """
    whole = analysis.options.model_copy(update={"columns": None})
    columns = column_sources(analysis.result, whole, analysis.measurements)
    found = []
    for point in dict.fromkeys(row.axes for row in analysis.rows):
        rows = _rows_at(point, analysis.rows)
        paired = tuple(
            (one, other) for one, other in combinations(rows, 2) if share_draws(rows[one], rows[other])
        )
        scored = ((column, _scored(column, rows)) for column in columns)
        found += [_Column(point, column, of, paired) for column, of in scored if len(of) > 1]
    reader = _Reader(artifacts, evaluator_of, Counter(score for each in found for score in each.identities))
    cache = ResultCache(artifacts, VERSION)
    for each in found:
        of = each.identities
        is_whole = partial(reader.faults.isdisjoint, of)
        known = cache.get(partial(_computed, each, reader), *each.key(artifacts), of=of, keeps=is_whole)
        yield from map(ItemNoise.model_validate, known)


def _rows_at(point: Coordinates, rows: Mapping[RowKey, Runs]) -> dict[str, Runs]:
    """Return, by variant, the runs of rows at a point and of rows that are the same at all points."""
    once, here = (
        {row.variant: runs for row, runs in rows.items() if row.axes == axes} for axes in ((), point)
    )
    return {**here, **{name: runs for name, runs in once.items() if name not in here}}


@dataclass(frozen=True)
class _Scored:
    """A row's scores in a column, by seed: one per test set of the column."""

    by_seed: Mapping[int, tuple[TaskScores, ...]]
    is_seeded: bool


def _scored(column: ColumnSource, rows: Mapping[str, Runs]) -> dict[str, _Scored]:
    """Return the rows whose noise between seeds is known, without seeds that lack a test set's score."""
    found = {}
    for name, runs in rows.items():
        by_seed: dict[int, tuple[TaskScores, ...]] = {}
        for seed in dict.fromkeys(run.seed for run in runs):
            of_seed = [run for run in runs if run.seed == seed]
            scores = tuple(score for one in column.measurements for score in one.scores(of_seed))
            if len(scores) == len(column.measurements):
                by_seed[seed] = scores
        is_seeded = any(run.is_seeded for run in runs)
        if len(by_seed) > is_seeded:
            found[name] = _Scored(by_seed, is_seeded)
    return found


@dataclass(frozen=True)
class _Column:
    """The rows that are compared in one column at one point of the grid.

    `paired` has the pairs of rows whose seeds redraw data that both rows use.
    """

    point: Coordinates
    column: ColumnSource
    rows: Mapping[str, _Scored]
    paired: tuple[tuple[str, str], ...]

    @property
    def identities(self) -> list[str]:
        """The identities of the evaluation stages of all rows and seeds."""
        return [
            score.stage for row in self.rows.values() for scores in row.by_seed.values() for score in scores
        ]

    def key(self, artifacts: Artifacts) -> list[object]:
        """Return the cache key: everything that the item noise depends on."""
        rows = [
            [name, row.is_seeded, [[seed, *(each.stage for each in of)] for seed, of in row.by_seed.items()]]
            for name, row in self.rows.items()
        ]
        tasks = {task_of(each, artifacts) for each in self.identities}
        known = sorted(task for task in tasks if artifacts.has_dataset(task))
        return [self.point, list(map(_named, self.column.measurements)), rows, self.paired, known]


def _named(one: Measurement) -> list[object]:
    return [one.task, one.evaluator, list(one.coordinates)]


def _computed(compared: _Column, reader: "_Reader") -> list[dict[str, Any]]:
    return [noise.model_dump(mode="json") for noise in _noise(compared, reader)]


def _noise(compared: _Column, reader: "_Reader") -> Iterator[ItemNoise]:
    """Yield one ItemNoise per group of rows that were scored on the same items."""
    import numpy as np

    over = compared.column.measurements
    by_items: dict[tuple[bytes, ...], dict[str, Influences]] = {}
    sets: dict[tuple[bytes, ...], list[TestItems]] = {}
    for name, row in compared.rows.items():
        lines = [[reader.read(score) for score in scores] for scores in row.by_seed.values()]
        keys = {tuple(each.key if each else b"" for each in line) for line in lines}
        if len(keys) > 1 or b"" in (key := keys.pop()):
            continue
        values = np.stack([np.concatenate([each.values for each in line if each]) for line in lines])
        by_items.setdefault(key, {})[name] = Influences(values, tuple(row.by_seed), row.is_seeded)
        sets.setdefault(key, [each.items for each in lines[0] if each])
    for key, rows in by_items.items():
        if len(rows) < 2:
            continue
        names = tuple(rows)
        pairs = [
            (names.index(one), names.index(other))
            for one, other in compared.paired
            if {one, other} <= {*rows}
        ]
        errors, degrees, of_components, their_degrees = zip(
            *item_variances(tuple(rows.values()), sets[key], pairs), strict=True
        )
        yield ItemNoise(
            **_of_column(compared.point, over, is_average=compared.column.column.is_average),
            num_items=sum(each.num_items for each in sets[key]),
            variants=names,
            squared_errors=errors,
            degrees=degrees,
            component_squared_errors=of_components,
            component_degrees=their_degrees,
            lacks_sentences=any(each.sentences is None for each in sets[key]),
        )


def _of_column(point: Coordinates, over: Sequence[Measurement], *, is_average: bool) -> dict[str, Any]:
    """Return the ItemNoise fields that name a column and a point of the grid."""
    if not is_average:
        (one,) = over
        return {"axes": dict((*point, *one.coordinates)), "task": one.task, "evaluator": one.evaluator}
    averaged = [Averaged(task=one.task, evaluator=one.evaluator, axes=dict(one.coordinates)) for one in over]
    return {"axes": dict(point), "averaged": averaged}


@dataclass(frozen=True)
class _Read:
    """One evaluation's items, their influences (`values`), and a `key`, equal for the same items."""

    key: bytes
    items: TestItems
    values: "NDArray[np.float64]"


@dataclass
class _Reader:
    """Reads influences, keeping in memory those needed again for an average or another grid point.

    `faults`: evaluations whose evaluator is missing or fails, or whose items are invalid. Results that need
    them are not cached, since a retry may work.
    """

    artifacts: Artifacts
    evaluator_of: FindEvaluator
    uses: Counter[str]
    faults: set[str] = field(default_factory=set)
    _known: dict[str, _Read | None] = field(default_factory=dict)
    _items: dict[bytes, TestItems] = field(default_factory=dict)

    def read(self, score: TaskScores) -> _Read | None:
        """Return the influences of one evaluation; None if they are unknown."""
        self.uses[score.stage] -= 1
        found = self._known.pop(score.stage) if score.stage in self._known else self._read(score)
        if self.uses[score.stage] > 0:
            self._known[score.stage] = found
        return found

    def _read(self, score: TaskScores) -> _Read | None:
        evaluator = self.evaluator_of(score)
        if evaluator is None:
            self.faults.add(score.stage)
            return None
        found = item_influence(score.stage, evaluator, self.artifacts, self.faults)
        if found is None:
            return None
        names = [score.task, score.evaluator, self._content(score.stage), *found.ids]
        key = sha256("\0".join(names).encode()).digest()
        if key not in self._items:
            self._items[key] = items_of(score, evaluator, found, self.artifacts)
        return _Read(key, self._items[key], found.values)

    def _content(self, evaluation: str) -> str:
        """Return the content hash of a test set; its stage's identity if the store no longer has it."""
        task = task_of(evaluation, self.artifacts)
        return self.artifacts.manifest(task).content_hash if self.artifacts.has_dataset(task) else task


def items_of(
    score: TaskScores, evaluator: Evaluator, found: ItemInfluences, artifacts: Artifacts
) -> TestItems:
    """Return the sentences, subsets and names of a score's items, as far as known."""
    import numpy as np

    ids = Sentences(artifacts).ids(score.stage, evaluator)
    subsets = None if found.subsets is None else np.unique(found.subsets, return_inverse=True)[1]
    names = np.array([number_of(f"{score.task}\0{item}") for item in found.ids])
    return TestItems(len(found.ids), shared_sentences(found.ids, ids), subsets, names)


def item_influence(
    identity: str, evaluator: Evaluator, artifacts: Artifacts, faults: set[str] | None = None
) -> ItemInfluences | None:
    """Return an evaluation's items, and each item's influence on the main score.

    None if the evaluator can't compute influences, or its items are gone or invalid. If the items are invalid
    or the evaluator fails, the identity is added to `faults`.
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
        if faults is not None:
            faults.add(identity)
        return None
    if values is None or len(values) < 2 or "id" not in items or not np.isfinite(values).all():
        return None
    return ItemInfluences(tuple(map(str, items["id"])), items.get("subset"), values)
