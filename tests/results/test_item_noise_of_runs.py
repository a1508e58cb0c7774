"""The items' noise of runs, read from their artifacts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_stages import ReadFile
from numpy.typing import NDArray

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset, spearman_influence
from synthbench.engine.artifacts import DATASET_FOLDER, Artifacts, write_json
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult, TaskScores
from synthbench.results.item_noise import item_influence, item_noise
from synthbench.results.sentences import Sentences
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench.statistics.item_noise import Influences, ItemNoise, TestItems, item_variances
from synthbench.statistics.shared_sentences import SharedSentences
from synthbench_sts import STS

NUM_PAIRS = 30
SCORES = {"main_score": "spearman", "scores": {"spearman": 0.5}, "num_items": 0}
GOLD = np.linspace(0, 1, NUM_PAIRS)
HUB = 5
"""Every fifth pair holds the same sentence."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def a_test_set(store: Store, name: str) -> Stage:
    """Return the stage of a test set: pairs of which every fifth holds the same sentence, in all sets."""
    stage = Stage(ReadFile(name))
    if not store.has(stage.identity):
        pairs = [
            ScoredPair(
                id=f"pair-{number}",
                sentence1="The hub." if number % HUB == 0 else f"{name} {number}",
                sentence2=f"{name} second {number}",
                score=gold,
            )
            for number, gold in enumerate(GOLD.tolist())
        ]
        folder = store.workspace(stage.identity) / "output" / DATASET_FOLDER
        folder.mkdir()
        SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs).write(folder)
        store.commit(stage.identity, {"spec": stage.spec})
    return stage


def predictions(row: str, seed: int, task: str = "A") -> NDArray[np.float64]:
    return GOLD + np.random.default_rng([len(row), seed, ord(task)]).normal(size=NUM_PAIRS)


def runs_of(
    store: Store,
    row: str,
    seeds: Sequence[int],
    *,
    axes: Mapping[str, str] | None = None,
    first_id: int = 0,
    has_items: bool = True,
    tasks: str = "A",
    has_tasks: bool = True,
    **others: Any,
) -> list[RunResult]:
    """Return the runs of a row on these test sets, with their artifacts."""
    runs = []
    for seed in seeds:
        scores = []
        for task in tasks:
            model = Stage(ReadFile(f"{row} {axes} {seed} {task}"))
            inputs = {"task": a_test_set(store, task), "model": model} if has_tasks else {"model": model}
            stage = Stage(Evaluate("sts", STS()), inputs)
            folder = store.workspace(stage.identity) / "output"
            items = {
                "id": [f"pair-{first_id + number}" for number in range(NUM_PAIRS)],
                "subset": [""] * NUM_PAIRS,
                "gold": GOLD,
                "predicted": predictions(row, seed, task),
            }
            if has_items:
                pq.write_table(pa.table(items), folder / ITEMS_FILE)
            write_json(folder / SCORES_FILE, SCORES)
            store.commit(stage.identity, {"spec": stage.spec})
            scores.append(TaskScores(task=task, evaluator="sts", stage=stage.identity, **SCORES))
        known = {"axes": axes or {}, "is_seeded": row != "untrained", "identity": f"{row}{seed}", **others}
        runs.append(RunResult(variant=row, seed=seed, scores=tuple(scores), **known))
    return runs


def noise_of(store: Store, runs: Sequence[RunResult], **table: Any) -> list[ItemNoise]:
    tasks = tuple(dict.fromkeys(score.task for run in runs for score in run.scores))
    result = ExperimentResult(experiment="e", identity="", runs=tuple(runs), tasks=tasks, table=table)
    return [*item_noise(Analysis(result), lambda score: STS(), Artifacts(store))]


def influences(row: str, *seeds: int, task: str = "A") -> Influences:
    lines = [spearman_influence(GOLD, predictions(row, seed, task)) for seed in seeds]
    return Influences(np.stack(lines), seeds)


def the_items(*, first_sentence: int = 0) -> TestItems:
    """Return the items of a test set: two sentences each, the first of every fifth the same."""
    items = np.repeat(np.arange(NUM_PAIRS), 2)
    sentences = first_sentence + np.arange(2 * NUM_PAIRS)
    sentences[:: 2 * HUB] = 0
    return TestItems(NUM_PAIRS, SharedSentences(items, sentences, NUM_PAIRS))


def test_each_pair_of_rows_has_the_noise_of_items_that_share_sentences(store: Store) -> None:
    runs = [*runs_of(store, "gold", (0, 1)), *runs_of(store, "silver", (0, 1))]

    (found,) = noise_of(store, runs)

    expected = item_variances([influences("gold", 0, 1), influences("silver", 0, 1)], [the_items()])
    assert (found.task, found.evaluator, found.num_items) == ("A", "sts", NUM_PAIRS)
    assert found.variants == ("gold", "silver")
    assert found.by_pair() == {frozenset(("gold", "silver")): expected[0]}
    assert not found.lacks_sentences


def test_items_of_unknown_sentences_are_independent_which_is_recorded(store: Store) -> None:
    runs = [run for row in ("gold", "silver") for run in runs_of(store, row, (0, 1), has_tasks=False)]

    (found,) = noise_of(store, runs)

    expected = item_variances([influences("gold", 0, 1), influences("silver", 0, 1)])
    assert found.by_pair() == {frozenset(("gold", "silver")): expected[0]}
    assert found.lacks_sentences


def test_rows_whose_seeds_redraw_shared_data_lose_the_interaction_of_their_differences(store: Store) -> None:
    def drawn(seed: int) -> dict[str, Any]:
        data = DatasetSummary(part="gold", kind="pair", num_records=1, content_hash="", stage=f"draw {seed}")
        return {"datasets": (data,)}

    runs = [
        run
        for row in ("gold", "silver")
        for seed in (0, 1)
        for run in runs_of(store, row, (seed,), **drawn(seed))
    ]

    (found,) = noise_of(store, runs)

    rows = [influences("gold", 0, 1), influences("silver", 0, 1)]
    assert [*found.by_pair().values()] == [*item_variances(rows, [the_items()], [(0, 1)])]


def test_an_average_has_the_noise_of_the_union_of_its_items(store: Store) -> None:
    """The hub is a sentence of both test sets, and ties them."""
    runs = [run for row in ("gold", "silver") for run in runs_of(store, row, (0, 1), tasks="AB")]

    *singles, average = noise_of(store, runs, averages={"Average": ["A", "B"]}, columns=["Average"])

    rows = [
        Influences(np.hstack([influences(row, 0, 1, task=task).values for task in "AB"]), (0, 1))
        for row in ("gold", "silver")
    ]
    expected = item_variances(rows, [the_items(), the_items(first_sentence=1_000)])
    assert [each.task for each in singles] == ["A", "B"]
    assert [(each.task, each.evaluator) for each in average.averaged] == [("A", "sts"), ("B", "sts")]
    assert (average.num_items, [*average.by_pair().values()]) == (2 * NUM_PAIRS, [*expected])


def test_a_test_set_at_several_coordinates_of_an_average_is_one_set(store: Store) -> None:
    runs = [
        run
        for row in ("gold", "silver")
        for base in ("small", "large")
        for run in runs_of(store, row, (0, 1), axes={"base": base})
    ]

    *_, average = noise_of(store, runs, averages={"Average": ["A"]}, across=["base"])
    alone = noise_of(store, [run for run in runs if run.axes["base"] == "small"])

    # Both points have the same predictions here, so their mean is no better known than each.
    assert [each.axes for each in average.averaged] == [{"base": "small"}, {"base": "large"}]
    assert average.squared_errors == pytest.approx(alone[0].squared_errors)


def test_rows_are_compared_at_the_same_grid_point_and_with_rows_shown_once(store: Store) -> None:
    rows = [("gold", "small"), ("silver", "small"), ("gold", "large"), ("silver", "large"), ("top", "large")]
    runs = [run for row, base in rows for run in runs_of(store, row, (0, 1), axes={"base": base})]
    once = [*runs_of(store, "everywhere", (0, 1)), *runs_of(store, "untrained", (0,))]

    found = [(each.axes, each.variants) for each in noise_of(store, [*runs, *once])]

    assert found == [
        ({"base": "small"}, ("gold", "silver", "everywhere", "untrained")),
        ({"base": "large"}, ("gold", "silver", "top", "everywhere", "untrained")),
        ({}, ("everywhere", "untrained")),
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

    (found,) = noise_of(store, [*runs, *itemless])

    assert found.variants == ("gold", "silver", "untrained")
    assert not noise_of(store, runs_of(store, "alone", (0, 1)))


def test_rows_scored_on_different_items_are_compared_only_among_themselves(store: Store) -> None:
    """For example, two rows train on gold data whose pairs the test set drops, and two do not."""
    rows = [("untouched", 0), ("dropped", 5), ("whole", 0), ("dropped too", 5), ("alone", 9)]
    runs = [run for row, first in rows for run in runs_of(store, row, (0, 1), first_id=first)]
    changing = [*runs_of(store, "changing", (0,)), *runs_of(store, "changing", (1,), first_id=5)]

    found = [each.variants for each in noise_of(store, [*runs, *changing])]

    assert found == [("untouched", "whole"), ("dropped", "dropped too")]


def test_figures_are_computed_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run for row in ("gold", "silver") for run in runs_of(store, row, (0, 1))]
    first = noise_of(store, runs)

    monkeypatch.setattr("synthbench.results.item_noise.item_influence", lambda *_: None)

    assert noise_of(store, runs) == first


def test_noise_that_an_evaluator_failed_to_tell_is_computed_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise ValueError("no such column")

    runs = [run for row in ("gold", "silver") for run in runs_of(store, row, (0, 1))]
    with monkeypatch.context() as patch:
        patch.setattr(STS, "influence", failing)
        assert noise_of(store, runs) == []
    assert len(noise_of(store, runs)) == 1


def test_an_evaluator_that_fails_to_name_sentences_leaves_items_independent(store: Store) -> None:
    class Faulty(STS):
        def sentences(self, task: SyntheticDataset) -> None:
            raise ValueError("no such column")

    (run,), said = runs_of(store, "gold", (0,)), []

    assert Sentences(Artifacts(store, said.append)).ids(run.scores[0].stage, Faulty()) is None
    assert said == ["Faulty.sentences failed, so items count as independent: no such column"]


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
