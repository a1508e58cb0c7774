"""Tiny models and data in the place of what an experiment file names: the hub's, and SentEval's folders."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hub_cache import (
    SENTENCES,
    HubCache,
    quoting_gpt2,
    tiny_bert,
    tiny_roberta,
    tiny_sentence_transformer,
    tiny_word_vectors,
)

from synthbench.data.records import RecordKind
from synthbench.sources.tasks import TASKS, Task

NEWEST = "f" * 40
"""The commit of files on the hub for which an experiment file gives none."""
SIZES = {"train": 12, "dev": 12, "test": 20}
"""Pairs in each split, and in each part of a test set."""
AMOUNTS = {"max_steps": 2, "size": 6}
"""Keys that say how much is done, wherever they stand -> how much a test does."""
BUILDERS: Mapping[str, Callable[[Path], None]] = {
    "gpt2": quoting_gpt2,
    "word_embeddings": tiny_word_vectors,
    "sentence-transformers/": tiny_sentence_transformer,
    "roberta": tiny_roberta,
    "bert": tiny_bert,
}
"""What a hub id holds -> what is built under it; the first match counts."""

Path_ = tuple[str, ...]


def add_models(hub_cache: HubCache, document: Mapping[str, Any]) -> set[str]:
    """Put every model with a commit into the cache; return the commits."""
    named = {
        (str(value["model"]), str(value["revision"]))
        for _, value in _walk(document)
        if isinstance(value, dict) and "revision" in value and "model" in value
    }
    for model, revision in named:
        build = next(build for part, build in BUILDERS.items() if part in model)
        hub_cache.add_model(model, revision, build)
    return {revision for _, revision in named}


def add_tasks(hub_cache: HubCache, folder: Path, document: Mapping[str, Any]) -> set[str]:
    """Put the data of every task where the file looks for it; return the commits of those on the hub."""
    common = document.get("corpora", {}).get("origin", "folder")
    origins: dict[str, set[str]] = {}
    for source in document.get("sources", {}).values():
        if "task" in source:
            origins.setdefault(source.get("origin", common), set()).add(source["task"])
    for name in sorted(origins.get("folder", ())):
        _write_folder(folder, TASKS[name])
    for name in sorted(origins.get("hub", ())):
        add_hub_task(hub_cache, TASKS[name])
    return {TASKS[name].hub_revision for name in origins.get("hub", ())}


def add_files(hub_cache: HubCache, document: Mapping[str, Any]) -> set[str]:
    """Put the files on the hub that sources name into the cache, with their columns; return the commits."""
    columns: dict[tuple[str, str], dict[str, None]] = {}
    for source in document.get("sources", {}).values():
        if "hub" in source:
            named = source.get("columns", {"sentence": "sentence"}).values()
            columns.setdefault((source["hub"], source["file"]), {}).update(dict.fromkeys(named))
    files: dict[str, dict[str, list[dict[str, str]]]] = {}
    for (name, file), names in columns.items():
        draw = random.Random(file)
        rows = [
            dict(zip(names, draw.sample(SENTENCES, len(names)), strict=True)) for _ in range(SIZES["train"])
        ]
        files.setdefault(name, {})[file.replace("*", "00002")] = rows
    for name, contents in files.items():
        hub_cache.add_dataset(name, NEWEST, contents)
    return {NEWEST} if files else set()


def add_hub_task(hub_cache: HubCache, task: Task) -> None:
    """Put Parquet files of all three splits into the cache."""
    draw, names = random.Random(task.name), {"train": "train", "dev": "validation", "test": "test"}
    files = {
        task.hub_files[1].format(name).replace("*", "00000-of-00001"): list(_rows(draw, SIZES[split], task))
        for split, name in names.items()
    }
    hub_cache.add_dataset(task.hub_id, task.hub_revision, files)


def _write_folder(folder: Path, task: Task) -> None:
    """Write a test set in SemEval's layout, each of its subsets a part."""
    assert task.layout == "semeval", task.name
    draw = random.Random(task.name)
    (folder / task.folder).mkdir(parents=True)
    for part in task.parts["test"]:
        rows = list(_rows(draw, SIZES["test"], task))
        lines = (
            [f"{row['sentence1']}\t{row['sentence2']}" for row in rows],
            [str(row["score"]) for row in rows],
        )
        for name, content in zip(task.files, lines, strict=True):
            text = "".join(f"{line}\n" for line in content)
            (folder / task.folder / name.format(part)).write_text(text, encoding="utf-8")


def _rows(draw: random.Random, size: int, task: Task) -> Iterator[dict[str, Any]]:
    for _ in range(size):
        if task.kind == RecordKind.RANKING:
            query, positive, *negative = draw.sample(SENTENCES, 5)
            yield {"query": query, "positive": [positive], "negative": negative}
            continue
        first, second = draw.sample(SENTENCES, 2)
        yield {"sentence1": first, "sentence2": second, "score": round(draw.uniform(*task.score_range), 2)}


def smaller(document: Mapping[str, Any]) -> list[str]:
    """Return the `--set`s that reduce a file's amounts, and nothing else."""
    changes: dict[str, Any] = {
        ".".join(path): AMOUNTS[path[-1]] for path, _ in _walk(document) if path[-1] in AMOUNTS
    }
    for name, source in document.get("sources", {}).items():
        if "task" in source:
            # The number is checked; that of the stand-ins is another.
            changes[f"sources.{name}.expected_size"] = 0
    for path, value in _walk(document):
        if path[-1] == "prepare":
            steps = [{**step, **({"size": 1} if "size" in step else {})} for step in value]
            changes |= {".".join(path): json.dumps(steps)} if steps != value else {}
    return [text for path, value in changes.items() for text in ("--set", f"{path}={value}")]


def _walk(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from _walk(inner, (*path, str(key)))
