"""Tiny data in place of an experiment file's SentEval folders, and overrides that reduce its amounts."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from folder_stand_ins import write_data_files, write_task

from synthbench.sources.tasks import TASKS

AMOUNTS = {
    "max_steps": 2,
    "sample.size": 12,
    "sampler.size": 24,
    "seed_optimization.seeds": 2,
    "size": 6,
    "total_queries": 48,
}
"""Ends of paths that say how much is done -> how much a test does; the longest end counts."""
MOST_CHOICES = 2
"""Values of each key that `select` ranges over."""
Path_ = tuple[str, ...]


def add_folder_tasks(folder: Path, document: Mapping[str, Any]) -> None:
    """Write the tasks and files that the file takes from the data folder."""
    common = document.get("corpora", {}).get("origin", "folder")
    tasks = [source for source in document.get("sources", {}).values() if "task" in source]
    for name in sorted({each["task"] for each in tasks if each.get("origin", common) == "folder"}):
        write_task(folder, TASKS[name])
    write_data_files(folder, document)


def smaller(document: Mapping[str, Any]) -> list[str]:
    """Return the `--set`s that reduce a file's amounts, and nothing else."""
    changes: dict[str, Any] = {}
    for path, value in _walk(document):
        ends = (".".join(path[start:]) for start in range(len(path)))
        amount = next((AMOUNTS[end] for end in ends if end in AMOUNTS), None)
        # Null takes an amount away: such a row says how much it does by another key.
        changes |= {} if amount is None or value is None else {".".join(path): amount}
        if path[-1] == "select" and value is not None:
            over = {key: values[:MOST_CHOICES] for key, values in value["over"].items()}
            changes[".".join(path)] = json.dumps({"over": over})
    for name, source in document.get("sources", {}).items():
        if "task" in source:
            # Switches off the check of the number of records, which differs for the stand-ins.
            changes[f"sources.{name}.expected_size"] = 0
    for path, value in _walk(document):
        if path[-1] == "prepare" and value is not None:
            steps = [{**step, **({"size": 1} if "size" in step else {})} for step in value]
            changes |= {".".join(path): json.dumps(steps)} if steps != value else {}
    return [text for path, value in changes.items() for text in ("--set", f"{path}={value}")]


def _walk(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from _walk(inner, (*path, *str(key).split(".")))
