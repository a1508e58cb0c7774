"""The test items of two results: their noise is that of two rows of one, where the items are the same."""

import shutil
from pathlib import Path

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
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.model.two_results import comparison_of
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.results.items_of_two import items_of_two
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench.statistics.item_noise import Influences, item_variances
from synthbench_sts import STS

NUM_PAIRS = 30
GOLD = np.linspace(0, 1, NUM_PAIRS)
SEEDS = (0, 1, 2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def predictions(result: str, seed: int) -> NDArray[np.float64]:
    """Return what a model says: each result errs on the same items with every seed, and a little anew."""
    lasting = np.random.default_rng(ord(result)).normal(size=NUM_PAIRS)
    return GOLD + lasting + 0.1 * np.random.default_rng([ord(result), seed]).normal(size=NUM_PAIRS)


def a_result(store: Store, name: str, file: str = "a.tsv", content: str = "x") -> ExperimentResult:
    """Return a result of one row on one test set, with its artifacts in the store."""
    task = Stage(ReadFile(file, content))
    if not store.has(task.identity):
        pairs = [
            ScoredPair(id=f"pair-{row}", sentence1=f"{content} {row}", sentence2="b", score=gold)
            for row, gold in enumerate(GOLD.tolist())
        ]
        folder = store.workspace(task.identity) / "output" / DATASET_FOLDER
        folder.mkdir()
        SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs).write(folder)
        store.commit(task.identity, {"spec": task.spec})
    return ExperimentResult(
        experiment="study",
        identity=name,
        tasks=("A",),
        runs=tuple(a_run(store, name, seed, task) for seed in SEEDS),
    )


def a_run(store: Store, name: str, seed: int, task: Stage) -> RunResult:
    stage = Stage(Evaluate("sts", STS()), {"task": task, "model": Stage(ReadFile(name, str(seed)))})
    folder = store.workspace(stage.identity) / "output"
    items = {
        "id": [f"pair-{number}" for number in range(NUM_PAIRS)],
        "subset": [""] * NUM_PAIRS,
        "gold": GOLD,
        "predicted": predictions(name, seed),
    }
    pq.write_table(pa.table(items), folder / ITEMS_FILE)
    write_json(folder / SCORES_FILE, {"main_score": "spearman", "scores": {"spearman": 0.5}, "num_items": 0})
    store.commit(stage.identity, {"spec": stage.spec})
    score = TaskScores(
        task="A",
        evaluator="sts",
        main_score="spearman_all",
        scores={"spearman_all": 0.5 + 0.01 * seed + 0.002 * (ord(name) % 7) * seed},
        num_items=NUM_PAIRS,
        settings=STS().model_dump(mode="json"),
        stage=stage.identity,
    )
    return RunResult(variant="dino", seed=seed, identity=f"{name}{seed}", scores=(score,))


def compared(store: Store, first: ExperimentResult, second: ExperimentResult) -> Comparison:
    """Return the one comparison of two results."""
    (column,) = comparison_of(first, second, *items_of_two(first, second, Artifacts(store))).comparisons
    (comparison,) = column.comparisons
    return comparison


def test_two_results_on_the_same_items_have_the_item_noise_of_one_result(store: Store) -> None:
    first, second = a_result(store, "f"), a_result(store, "s")
    comparison = compared(store, first, second)
    assert comparison.over_seeds is not None and comparison.over_items is not None
    influences = [
        Influences(np.stack([spearman_influence(GOLD, predictions(name, seed)) for seed in SEEDS]), SEEDS)
        for name in ("f", "s")
    ]
    (noise,) = comparison.over_items.noise[len(comparison.over_seeds.noise) :]
    assert (noise.squared_error, noise.degrees_of_freedom) == item_variances(influences)[0][:2]
    assert comparison.over_items.half_width > comparison.over_seeds.half_width


def test_a_renamed_file_with_equal_content_has_the_same_items(store: Store) -> None:
    comparison = compared(store, a_result(store, "f", "a.tsv"), a_result(store, "s", "moved.tsv"))
    # The test sets have different stages but equal content, which decides.
    assert comparison.over_items is not None


def test_different_sentences_under_the_same_ids_are_not_compared(store: Store) -> None:
    first, second = a_result(store, "f"), a_result(store, "s", content="y")
    assert compared(store, first, second).refusal
    section = comparison_section(comparison_of(first, second, *items_of_two(first, second, Artifacts(store))))
    assert section is not None
    assert [note for note in section.notes if "different items" in note] == [
        "A: dino (B) − dino (A): not compared: scored on different items or by different metrics."
    ]


def test_a_missing_test_set_is_neither_equal_nor_different(store: Store) -> None:
    first, second = a_result(store, "f"), a_result(store, "s", "moved.tsv")
    shutil.rmtree(store.folder(Stage(ReadFile("moved.tsv", "x")).identity))
    comparison = compared(store, first, second)
    assert (comparison.refusal, comparison.over_items) == ("", None)
    assert comparison.over_seeds is not None


def test_without_items_the_interval_over_seeds_remains(store: Store, tmp_path: Path) -> None:
    first, second = a_result(store, "f"), a_result(store, "s")
    comparison = compared(Store(tmp_path / "another"), first, second)
    assert comparison.over_seeds is not None
    assert comparison.over_items is None
    assert not comparison.refusal


def test_items_that_were_damaged_count_again_after_repair(store: Store) -> None:
    first, second = a_result(store, "f"), a_result(store, "s")
    file = store.folder(first.runs[0].scores[0].stage) / ITEMS_FILE
    whole = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(b"x" * len(whole))
    assert compared(store, first, second).over_items is None
    file.write_bytes(whole)
    assert compared(store, first, second).over_items is not None


def test_with_changed_evaluator_settings_only_the_interval_over_seeds_remains(store: Store) -> None:
    first, second = a_result(store, "f"), a_result(store, "s")
    (score,) = second.runs[0].scores
    strange = score.model_copy(update={"settings": {"aggregation": "no such one"}})
    runs = (second.runs[0].model_copy(update={"scores": (strange,)}), *second.runs[1:])
    comparison = compared(store, first, second.model_copy(update={"runs": runs}))
    assert comparison.over_seeds is not None
    assert comparison.over_items is None
