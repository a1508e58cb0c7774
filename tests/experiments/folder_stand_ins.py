"""Small data in the layouts of the tasks' folders, and of single files in the data folder."""

import csv
import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hub_cache import SENTENCES

from synthbench.sources.description import IN_DATA_FOLDER
from synthbench.sources.folders import TREC_CLASSES
from synthbench.sources.tasks import Layout, Task

SIZE = 20
"""Records in each part of a test set."""
TO_DIVIDE = 60
"""Records in each subset of a divided set: a tenth of them must have different scores."""


def write_task(folder: Path, task: Task) -> None:
    """Write every split of a task as its layout has it."""
    place = folder / task.folder
    place.mkdir(parents=True, exist_ok=True)
    for parts in task.parts.values():
        for part in parts:
            _WRITERS[task.layout](place, task, part)


def write_data_files(folder: Path, document: Mapping[str, Any]) -> None:
    """Write each file of scored pairs that sources name in the data folder: CSVs with all their subsets."""
    for source in document.get("sources", {}).values():
        if write := _RELEASED.get(source.get("format", "")):
            path = folder / str(source["file"]).removeprefix(IN_DATA_FOLDER)
            path.parent.mkdir(exist_ok=True)
            write(path)
    files: dict[str, tuple[Mapping[str, str], dict[str, None]]] = {}
    for source in document.get("sources", {}).values():
        name = str(source.get("file", ""))
        if name.startswith(IN_DATA_FOLDER) and name.endswith(".csv") and "format" not in source:
            columns = {field: field for field in ("sentence1", "sentence2", "score")} | source["columns"]
            _, subsets = files.setdefault(name.removeprefix(IN_DATA_FOLDER), (columns, {}))
            subsets.update(dict.fromkeys(source.get("subsets", ())))
    for name, (columns, subsets) in files.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([columns["subset"], columns["sentence1"], columns["sentence2"], columns["score"]])
            for subset in subsets:
                writer.writerows([subset, *texts, score] for *texts, score in scored_texts(subset, TO_DIVIDE))


def _write_dino(path: Path) -> None:
    """Write pairs as DINO's authors release them; labels that their clean-up smoothed are numbers."""
    labels: tuple[str | float, ...] = ("0", "0.5", "1")
    if "postprocessed" in path.name:
        labels = (0, 0.1, 0.5, 0.9)
    pairs = ((first, second) for first, second, _ in scored_texts(path.name, TO_DIVIDE))
    rows = (
        {"text_a": first, "text_b": second, "label": labels[row % len(labels)]}
        for row, (first, second) in enumerate(pairs)
    )
    _write(path, [json.dumps(row) for row in rows])


def _write_clhaif(path: Path) -> None:
    """Write triplets with an LLM's scores as CLAIF's authors release them: the order of columns counts."""
    texts = (
        f"{first},{second},{second} Not,{score},0" for first, second, score in scored_texts(path.name, SIZE)
    )
    _write(path, ["sent0,sent1,hard_neg,score,score", *texts])


_RELEASED: Mapping[str, Callable[[Path], None]] = {"clhaif": _write_clhaif, "dino": _write_dino}
"""Format of a source -> writer of a file as its authors release it."""


def scored_texts(name: str, size: int, scores: tuple[float, ...] = ()) -> Iterator[tuple[str, str, float]]:
    """Yield pairs without common sentences, with these scores in turn, or any in [0, 1]."""
    draw = random.Random(name)
    for row in range(size):
        first, second = (f"{text.rstrip('.')} {row}." for text in draw.sample(SENTENCES, 2))
        yield first, second, scores[row % len(scores)] if scores else round(draw.random(), 2)


def _semeval(place: Path, task: Task, part: str) -> None:
    low, high = task.score_range
    rows = list(scored_texts(f"{task.name}/{part}", SIZE if "test" in task.parts else TO_DIVIDE))
    lines = (
        [f"{first} {part}\t{second} {part}" for first, second, _ in rows],
        [f"{low + score * (high - low):.2f}" for *_, score in rows],
    )
    for name, content in zip(task.files, lines, strict=True):
        _write(place / name.format(part), content)


def _mrpc(place: Path, task: Task, part: str) -> None:
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = (
        f"{score:.0f}\t1\t2\t{first} {part}\t{second} {part}"
        for first, second, score in scored_texts(f"{task.name}/{part}", 2 * SIZE, (1, 0))
    )
    _write(place / task.files[0].format(part), [header, *rows])


def _file_per_class(place: Path, task: Task, part: str) -> None:
    _write(place / task.files[0].format(part), random.Random(part).sample(SENTENCES, SIZE))


def _sst(place: Path, task: Task, part: str) -> None:
    texts = random.Random(part).sample(SENTENCES, SIZE)
    _write(place / task.files[0].format(part), [f"{text}\t{row % 2}" for row, text in enumerate(texts)])


def _trec(place: Path, task: Task, part: str) -> None:
    texts = random.Random(part).sample(SENTENCES, 10 * len(TREC_CLASSES))
    lines = [f"{TREC_CLASSES[row % len(TREC_CLASSES)]}:any {text}" for row, text in enumerate(texts)]
    _write(place / task.files[0].format(part), lines)


def _question_pairs(place: Path, task: Task, part: str) -> None:
    numbers = range(3 * SIZE)
    titles = (f"{row}\t{SENTENCES[row].rstrip('.')} {task.folder}\tbody" for row in numbers)
    (place / task.files[2]).write_bytes(gzip.compress("".join(f"{line}\n" for line in titles).encode()))
    draw = random.Random(f"{task.name}/{part}")
    for file, size in zip(task.files[:2], (SIZE // 2, 2 * SIZE), strict=True):
        _write(place / file.format(part), ["{} {}".format(*draw.sample(numbers, 2)) for _ in range(size)])


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


_WRITERS: Mapping[Layout, Callable[[Path, Task, str], None]] = {
    "semeval": _semeval,
    "mrpc": _mrpc,
    "file per class": _file_per_class,
    "sst": _sst,
    "trec": _trec,
    "question pairs": _question_pairs,
}
