"""The items' noise of runs, read from their artifacts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from synthbench.api import spearman_influence
from synthbench.config.experiment import Variant
from synthbench.engine.artifacts import Artifacts, write_json
from synthbench.engine.plan import PlannedRun
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.results.item_noise import item_influence, item_noise
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench.statistics.item_noise import Influences, item_variances
from synthbench_sts import STS

NUM_PAIRS = 30
SCORES = {"main_score": "spearman", "scores": {"spearman": 0.5}, "num_items": 0}
GOLD = np.linspace(0, 1, NUM_PAIRS)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def predictions(row: str, seed: int) -> NDArray[np.float64]:
    return GOLD + np.random.default_rng([len(row), seed]).normal(size=NUM_PAIRS)


def runs_of(
    store: Store,
    row: str,
    seeds: Sequence[int],
    *,
    axes: Mapping[str, str] | None = None,
    first_id: int = 0,
    has_items: bool = True,
) -> list[PlannedRun]:
    """Runs of a row on the test set A, with their artifacts."""
    runs = []
    for seed in seeds:
        operation = Evaluate("sts", STS())
        stage = Stage(operation, {f"{row} {axes} {seed}": Stage(operation)})
        folder = store.workspace(stage.identity) / "output"
        items = {
            "id": [f"pair-{first_id + number}" for number in range(NUM_PAIRS)],
            "subset": [""] * NUM_PAIRS,
            "gold": GOLD,
            "predicted": predictions(row, seed),
        }
        if has_items:
            pq.write_table(pa.table(items), folder / ITEMS_FILE)
        write_json(folder / SCORES_FILE, SCORES)
        store.commit(stage.identity, {})
        variant = Variant(row, axes or {}, (), {})
        runs.append(PlannedRun(variant, seed, {}, (), None, {"A": stage}, {}))
    return runs


def seeded(variant: Variant) -> bool:
    return variant.name != "untrained"


def test_each_pair_of_rows_has_item_noise(store: Store) -> None:
    runs = [*runs_of(store, "gold", (0, 1)), *runs_of(store, "silver", (0, 1))]

    (found,) = item_noise(runs, seeded, Artifacts(store))

    influences = [
        Influences(np.stack([spearman_influence(GOLD, predictions(row, seed)) for seed in (0, 1)]), (0, 1))
        for row in ("gold", "silver")
    ]
    assert (found.task, found.evaluator, found.num_items) == ("A", "sts", NUM_PAIRS)
    assert found.variants == ("gold", "silver")
    assert found.by_pair() == {frozenset(("gold", "silver")): item_variances(influences)[0]}


def test_rows_are_paired_at_the_same_grid_point(store: Store) -> None:
    rows = [("gold", "small"), ("silver", "small"), ("gold", "large"), ("silver", "large"), ("top", "large")]
    runs = [run for row, base in rows for run in runs_of(store, row, (0, 1), axes={"base": base})]

    found = [(each.axes, each.variants) for each in item_noise(runs, seeded, Artifacts(store))]

    assert found == [
        ({"base": "small"}, ("gold", "silver")),
        ({"base": "large"}, ("gold", "silver", "top")),
    ]


def test_rows_with_unknown_noise_or_different_items_are_left_out(store: Store) -> None:
    runs = [
        *runs_of(store, "gold", (0, 1)),
        *runs_of(store, "silver", (0, 1, 2)),
        *runs_of(store, "untrained", (0,)),
        *runs_of(store, "single", (0,)),
        *runs_of(store, "elsewhere", (0, 1), first_id=5),
    ]
    itemless = runs_of(store, "itemless", (0, 1), has_items=False)

    (found,) = item_noise([*runs, *itemless], seeded, Artifacts(store))

    assert found.variants == ("gold", "silver", "untrained")
    assert not [*item_noise(runs_of(store, "alone", (0, 1)), seeded, Artifacts(store))]


def test_rows_scored_on_different_items_are_compared_only_among_themselves(store: Store) -> None:
    """For example, two rows train on gold data whose pairs the test set drops, and two do not."""
    rows = [("untouched", 0), ("dropped", 5), ("whole", 0), ("dropped too", 5), ("alone", 9)]
    runs = [run for row, first in rows for run in runs_of(store, row, (0, 1), first_id=first)]
    changing = [*runs_of(store, "changing", (0,)), *runs_of(store, "changing", (1,), first_id=5)]

    found = [each.variants for each in item_noise([*runs, *changing], seeded, Artifacts(store))]

    assert found == [("untouched", "whole"), ("dropped", "dropped too")]


@pytest.mark.parametrize(
    "items", [b"PAR1", {"id": ["a", "b"]}, {"id": ["a", "b"], "gold": ["x", "y"], "predicted": [1.0, 2.0]}]
)
def test_invalid_item_scores_are_skipped_with_a_message(
    tmp_path: Path, items: bytes | dict[str, list[object]]
) -> None:
    store, said = Store(tmp_path), []
    stage = Stage(Evaluate("sts", STS()))
    file = store.workspace(stage.identity) / "output" / ITEMS_FILE
    if isinstance(items, bytes):
        file.write_bytes(items)
    else:
        pq.write_table(pa.table(items), file)
    write_json(file.parent / SCORES_FILE, SCORES)
    store.commit(stage.identity, {})
    assert item_influence(stage.identity, STS(), Artifacts(store, said.append)) is None
    assert len(said) == 1
