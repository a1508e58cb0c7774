"""Similarity tasks from the hub, out of a local cache that a fixture fills, offline."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hub_cache import HubCache
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.records import Ranking, RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS, Split, Task, TaskName

HUB = Roots(origin="hub")
HUB_SPLITS: dict[Split, str] = {"train": "train", "dev": "validation", "test": "test"}


def rows(count: int = 3, **changes: Any) -> list[dict[str, Any]]:
    found = [
        {"sentence1": f"a {number}", "sentence2": f"b {number}", "score": 5.0} for number in range(count)
    ]
    found[-1].update(changes)
    return found


def add(cache: HubCache, task: Task, split: Split, content: list[dict[str, Any]]) -> None:
    name = task.hub_files[0].format(HUB_SPLITS[split])
    cache.add_dataset(task.hub_id, task.hub_revision, {name: content})


def queries(count: int = 3) -> list[dict[str, Any]]:
    return [
        {"query": f"q {number}", "positive": [f"a {number}"], "negative": ["b", "c"]}
        for number in range(count)
    ]


def fault(task: TaskName = "STS12", size: int | None = 0, split: Split = "test") -> str:
    with pytest.raises(UserError) as caught:
        TaskSource(task=task, split=split, expected_size=size).load(HUB)
    return "\n".join(caught.value.messages)


ON_HUB = {name: task for name, task in TASKS.items() if task.hub_id}
SIMILARITY = [name for name, task in ON_HUB.items() if task.kind == RecordKind.SCORED_PAIR]
RERANKING = [name for name in ON_HUB if name not in SIMILARITY]


@pytest.mark.parametrize("name", RERANKING)
def test_every_reranking_task_is_read_from_its_pinned_commit(hub_cache: HubCache, name: TaskName) -> None:
    task = TASKS[name]
    add(hub_cache, task, "test", queries())
    source = TaskSource(task=name, expected_size=3)
    dataset = source.load(HUB)
    assert (dataset.kind, source.record_kind) == (RecordKind.RANKING, RecordKind.RANKING)
    first = Ranking(
        id=f"{name}/test/0001",
        split="test",
        query="q 0",
        candidates=("a 0", "b", "c"),
        grades=(1.0, 0.0, 0.0),
    )
    assert next(iter(dataset)) == first
    assert dataset.manifest.revisions == source.fingerprint(HUB) == {task.hub_id: task.hub_revision}


def test_a_readers_history_becomes_several_queries_of_one_item(hub_cache: HubCache) -> None:
    history = ["read first", "read second", "read first"]
    rows = [{**row, "query": history} for row in queries()]
    add(hub_cache, TASKS["MindSmallReranking"], "test", rows)
    first = next(iter(TaskSource(task="MindSmallReranking").load(HUB)))
    assert first.queries == ("read first", "read second")


def test_queries_are_counted_against_the_published_number(hub_cache: HubCache) -> None:
    empty = {"query": "q", "positive": [], "negative": []}
    add(hub_cache, TASKS["SciDocsRR"], "test", [*queries(), empty])
    where = "mteb/scidocs-reranking@d3c5e1f test"
    worded(fault("SciDocsRR", None), str(where), "SciDocsRR", "test")
    dataset = TaskSource(task="SciDocsRR", expected_size=4).load(HUB)
    assert (len(dataset), dataset.manifest.dropped) == (3, {"no candidates": 1})


def test_a_missing_reranking_task_names_the_needed_file(hub_cache: HubCache) -> None:
    assert fault("SciDocsRR").endswith("or use reranking/SciDocsRR.jsonl with origin: folder")


@pytest.mark.parametrize(
    ("name", "split"), [(name, split) for name in SIMILARITY for split in TASKS[name].parts]
)
def test_every_task_is_read_from_its_pinned_commit(hub_cache: HubCache, name: TaskName, split: Split) -> None:
    task = TASKS[name]
    low, high = task.score_range
    scored = zip(rows(), (high, high, low), strict=True)
    add(hub_cache, task, split, [{**row, "score": score} for row, score in scored])
    source = TaskSource(task=name, split=split, expected_size=3)
    dataset = source.load(HUB)
    assert dataset.column("score") == [1.0, 1.0, 0.0]
    assert dataset.column("id")[0] == f"{name}/{split}/0001"
    assert set(dataset.column("split")) == {split}
    assert dataset.manifest.revisions == source.fingerprint(HUB) == {task.hub_id: task.hub_revision}


def test_parquet_files_are_read_in_the_order_of_their_names(hub_cache: HubCache) -> None:
    task = TASKS["STSb"]
    files = {f"data/validation-0000{part}-of-00002.parquet": rows(2, score=float(part)) for part in (1, 0)}
    hub_cache.add_dataset(
        task.hub_id, task.hub_revision, {**files, "data/test-00000-of-00001.parquet": rows(7)}
    )
    dataset = TaskSource(task="STSb", split="dev", expected_size=4).load(HUB)
    assert dataset.column("score") == [1.0, 0.0, 1.0, 0.2]


def test_another_commit_of_the_same_data_set_is_not_used(hub_cache: HubCache) -> None:
    task = TASKS["STS12"]
    hub_cache.add_dataset(task.hub_id, "f" * 40, {"test.jsonl.gz": rows(9)})
    assert task.hub_revision in fault()
    add(hub_cache, task, "test", rows(2))
    hub_cache.add_dataset(task.hub_id, "f" * 40, {"test.jsonl.gz": rows(9)})
    assert len(TaskSource(task="STS12", expected_size=0).load(HUB)) == 2


def test_two_commits_of_sick_coexist_in_the_cache(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["SICK-R"], "test", rows(2))
    add(hub_cache, TASKS["SICK-R-all"], "test", rows(5))
    sizes = [len(TaskSource(task=name, expected_size=0).load(HUB)) for name in ("SICK-R", "SICK-R-all")]
    assert sizes == [2, 5]


def test_a_source_may_set_its_own_origin(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["STS12"], "test", rows())
    assert len(TaskSource(task="STS12", origin="hub", expected_size=0).load(Roots())) == 3
    with refused("folder"):
        TaskSource(task="STS12", origin="folder").load(HUB)


def test_offline_a_missing_data_set_is_reported_before_the_run_with_id_commit_and_advice(
    hub_cache: HubCache,
) -> None:
    task = TASKS["STS16"]
    with pytest.raises(UserError) as caught:
        TaskSource(task="STS16").fingerprint(HUB)
    (message,) = caught.value.messages
    assert message.startswith(f"STS16 test: {task.hub_id}: not in the local hub cache at {task.hub_revision}")
    assert "HF_HUB_OFFLINE is set" in message
    assert "`synthbench fetch FILE`" in message
    assert "origin: folder" in message
    assert "\n" not in message


def test_a_split_missing_in_the_cache_is_reported(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["STSb"], "test", rows())
    assert "has no train.jsonl.gz or data/train-*.parquet; it has test.jsonl.gz" in fault(
        "STSb", split="train"
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"score": 5.5}, "row 3: score 5.5 is outside 0 to 5"),
        ({"score": float("nan")}, "row 3: score is NaN; a number from 0 to 5 is needed"),
        ({"sentence2": " "}, "row 3: sentence2 is empty"),
    ],
)
def test_bad_rows_are_named(hub_cache: HubCache, change: dict[str, Any], expected: str) -> None:
    task = TASKS["STS12"]
    files = {"data/test-00000-of-00001.parquet": rows(**change)}
    hub_cache.add_dataset(task.hub_id, task.hub_revision, files)
    assert fault() == f"mteb/sts12-sts@a0d554a test: {expected}"


def test_a_row_without_a_score_is_dropped_and_counted(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["STS12"], "test", rows(score=None))
    dataset = TaskSource(task="STS12", expected_size=2).load(HUB)
    assert dataset.manifest.dropped == {"no gold score": 1}


def test_a_missing_column_is_named(hub_cache: HubCache) -> None:
    renamed = [{"sentence1": "a", "sentence_2": "b", "score": 1.0}]
    add(hub_cache, TASKS["STS12"], "test", renamed)
    worded(fault(), "mteb/sts12-sts@a0d554a", "test", "'sentence2'", "'sentence_2'")


def test_a_broken_file_is_named(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["STS12"], "test", rows())
    (blob,) = (hub_cache.root / "hub" / "datasets--mteb--sts12-sts" / "blobs").iterdir()
    blob.write_bytes(b"{not json")
    message = fault()
    assert message.startswith("mteb/sts12-sts@a0d554a test: test.jsonl.gz can't be read as json")
    assert "\n" not in message


def test_a_size_that_differs_from_the_published_one_is_reported(hub_cache: HubCache) -> None:
    add(hub_cache, TASKS["STS12"], "test", rows())
    worded(fault(size=None), "mteb/sts12-sts@a0d554a", "test", "pairs", "STS12")
    assert fault(size=4).endswith("3 scored pairs in STS12 test, 4 expected")


def test_another_process_uses_the_same_cache(hub_cache: HubCache, tmp_path: Path) -> None:
    add(hub_cache, TASKS["STS13"], "test", rows(4))
    program = (
        "from synthbench.sources.models import TaskSource\n"
        "from synthbench.sources.description import Roots\n"
        "print(len(TaskSource(task='STS13', expected_size=0).load(Roots(origin='hub'))))"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **hub_cache.environment()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.stdout.strip(), child.stderr, child.returncode) == ("4", "", 0)
