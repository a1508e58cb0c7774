"""Tiny models and data that replace an experiment file's hub models, hub data and SentEval folders."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from folder_stand_ins import scored_texts, write_data_files, write_task
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
AMOUNTS = {"max_steps": 2, "size": 6, "sample.size": 12, "sampler.size": 24, "seed_optimization.seeds": 2}
"""Ends of paths that say how much is done -> how much a test does; the longest end counts."""
MOST_CHOICES = 2
"""Values of each key that `select` ranges over."""
LARGE_FILE = 400
"""Pairs in a file on the hub that is divided into parts."""
BUILDERS: Mapping[str, Callable[[Path], None]] = {
    "gpt2": quoting_gpt2,
    "mistralai/": quoting_gpt2,
    "word_embeddings": tiny_word_vectors,
    "sentence-transformers/": tiny_sentence_transformer,
    "roberta": tiny_roberta,
    # Spreads scores like a trained model: KDE would keep no pair if all scores were nearly equal.
    "bert": partial(tiny_bert, weights=0.5),
}
"""Part of a hub id -> builder of its replacement; the first match counts."""

Path_ = tuple[str, ...]


def add_models(hub_cache: HubCache, document: Mapping[str, Any]) -> None:
    """Put every model into the cache: at its commit, or at the newest where the file gives none."""
    named = {
        (str(value["model"]), str(value.get("revision", NEWEST)))
        for _, value in _walk(document)
        if isinstance(value, dict) and "model" in value and "base_url" not in value
    }
    for model, revision in named:
        build = next(build for part, build in BUILDERS.items() if part in model)
        hub_cache.add_model(model, revision, build)


def add_tasks(hub_cache: HubCache, folder: Path, document: Mapping[str, Any]) -> set[str]:
    """Put the data of every task where the file looks for it; return the commits of those on the hub."""
    common = document.get("corpora", {}).get("origin", "folder")
    origins: dict[str, set[str]] = {}
    for source in document.get("sources", {}).values():
        if "task" in source:
            origins.setdefault(source.get("origin", common), set()).add(source["task"])
    for name in sorted(origins.get("folder", ())):
        write_task(folder, TASKS[name])
    write_data_files(folder, document)
    for name in sorted(origins.get("hub", ())):
        add_hub_task(hub_cache, TASKS[name])
    return {TASKS[name].hub_revision for name in origins.get("hub", ())}


def add_files(hub_cache: HubCache, document: Mapping[str, Any]) -> set[str]:
    """Put the files on the hub that sources name into the cache, with their columns; return the commits."""
    sources: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for source in document.get("sources", {}).values():
        if "hub" in source:
            key = (source["hub"], source.get("revision", NEWEST), source["file"])
            sources.setdefault(key, []).append(source)
    files: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for (name, revision, file), using in sources.items():
        files.setdefault((name, revision), {})[file.replace("*", "00002")] = _file_rows(file, using)
    for (name, revision), contents in files.items():
        hub_cache.add_dataset(name, revision, contents)
    return {revision for _, revision in files}


def _file_rows(file: str, sources: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the columns that sources read: duplicates or not, or texts."""
    if sources[0].get("kind") == "scored_pair":
        columns = {name: name for name in ("sentence1", "sentence2", "score")} | sources[0]["columns"]
        rows = scored_texts(file, LARGE_FILE, (1, 0))
        return [dict(zip(columns.values(), row, strict=True)) for row in rows]
    given = [source.get("columns", {"sentence": "sentence"}).values() for source in sources]
    names, draw = dict.fromkeys(name for listed in given for name in listed), random.Random(file)
    return [dict(zip(names, draw.sample(SENTENCES, len(names)), strict=True)) for _ in range(SIZES["train"])]


def add_hub_task(hub_cache: HubCache, task: Task) -> None:
    """Put Parquet files of all three splits into the cache."""
    draw, names = random.Random(task.name), {"train": "train", "dev": "validation", "test": "test"}
    files = {
        task.hub_files[-1].format(name).replace("*", "00000-of-00001"): list(_rows(draw, SIZES[split], task))
        for split, name in names.items()
    }
    hub_cache.add_dataset(task.hub_id, task.hub_revision, files)


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
    changes: dict[str, Any] = {}
    for path, value in _walk(document):
        ends = (".".join(path[start:]) for start in range(len(path)))
        amount = next((AMOUNTS[end] for end in ends if end in AMOUNTS), None)
        changes |= {} if amount is None else {".".join(path): amount}
        if path[-1] == "select" and value is not None:
            over = {key: values[:MOST_CHOICES] for key, values in value["over"].items()}
            changes[".".join(path)] = json.dumps({"over": over})
    for name, source in document.get("sources", {}).items():
        if "task" in source:
            # Switches off the check of the number of records, which differs for the stand-ins.
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
        yield from _walk(inner, (*path, *str(key).split(".")))
