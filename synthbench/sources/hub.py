"""Standard tasks from the Hugging Face hub, or from its local cache."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.data.reading import NO_GOLD_SCORE, Content, Faults, is_blank, score_of, sentence_of
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.hub.repositories import HubFiles, HubRepository
from synthbench.sources import reranking
from synthbench.sources.tasks import Split, Task

_SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}
_COLUMNS = {
    RecordKind.SCORED_PAIR: ("sentence1", "sentence2", "score"),
    RecordKind.RANKING: reranking.FIELDS,
}


def check_available(task: Task, split: Split) -> None:
    """Raise UserError if no data set on the hub is known for the task.

    With HF_HUB_OFFLINE, also raises UserError if the local cache lacks the task's files. Sends no request;
    files are downloaded when they are read.
    """
    from huggingface_hub import is_offline_mode

    if not task.hub_id:
        raise UserError(f"{task.name} {split}: {unknown(task)}")
    if is_offline_mode():
        resolve(task, split)


def unknown(task: Task) -> str:
    """Return advice for a task without a known data set on the hub."""
    return (
        f"no data set on the hub is known for {task.name}; use {_folder(task)} with origin: folder,"
        " or a source with `hub:` and `file:`"
    )


def files_of(task: Task, split: Split) -> HubFiles:
    """Return which files on the hub hold the task's split, at the pinned commit."""
    patterns = tuple(pattern.format(_SPLIT_NAMES[split]) for pattern in task.hub_files)
    return HubFiles(HubRepository("dataset", task.hub_id, task.hub_revision), (patterns,))


def resolve(task: Task, split: Split) -> list[Path]:
    """Return the local paths of the split's files; downloads files missing in the local cache.

    Raises UserError naming the unavailable data set and commit, and what to do.
    """
    try:
        return files_of(task, split).resolve()
    except UserError as error:
        raise type(error)(
            *(
                f"{task.name} {split}: {line}; or use {_folder(task)} with origin: folder"
                for line in error.messages
            )
        ) from error


def check_columns(task: Task, split: Split, paths: list[Path]) -> None:
    """Raise UserError if the files that `resolve` returned can't be read or lack one of the columns."""
    next(_rows(paths, _where(task, split), _COLUMNS[task.kind]), None)


def read_task(task: Task, split: Split, paths: list[Path], expected: int | None) -> Content:
    """Read a task's split from the files that `resolve` returned.

    `expected` is the required number of scored pairs or queries; None: the published number, 0: any. Records
    from the hub have no subsets. Pairs without a score and queries without candidates are dropped and
    counted.

    Raises UserError for unreadable files, missing columns, bad scores, empty sentences and an unexpected
    size.
    """
    content, problems = Content(), Faults()
    where = _where(task, split)
    for number, row in enumerate(_rows(paths, where, _COLUMNS[task.kind]), start=1):
        shared = {"id": f"{task.name}/{split}/{number:04d}", "split": split}
        try:
            if task.kind == RecordKind.RANKING:
                reranking.add_ranking(row, shared, content)
            else:
                _add_pair(row, shared, task, content)
        except ValueError as error:
            problems.add(f"{where}: row {number}: {error}")
    problems.raise_if_any()
    found = reranking.num_queries(content)
    wanted = task.size(split) if expected is None else expected
    if wanted not in (0, found):
        source = "published" if expected is None else "expected"
        raise UserError(f"{where}: {found} {task.items} in {task.name} {split}, {wanted} {source}")
    return content


def _where(task: Task, split: Split) -> str:
    return f"{task.hub_id}@{task.hub_revision[:7]} {_SPLIT_NAMES[split]}"


def _add_pair(row: Mapping[str, Any], shared: Mapping[str, Any], task: Task, content: Content) -> None:
    if is_blank(row["score"]):
        content.drop(NO_GOLD_SCORE)
        return
    pair = ScoredPair(
        sentence1=sentence_of(row["sentence1"], "sentence1"),
        sentence2=sentence_of(row["sentence2"], "sentence2"),
        score=score_of(row["score"], task.score_range),
        **shared,
    )
    content.records.append(pair)


def _rows(paths: list[Path], where: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of these files; raises UserError for unreadable files and missing columns.

    `datasets` gets local files instead of the data set's id, since it would ignore the commit offline.
    """
    import datasets

    file_format = "parquet" if paths[0].suffix == ".parquet" else "json"
    was_silent = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        table = datasets.load_dataset(file_format, data_files=[str(path) for path in paths], split="train")
    except (datasets.exceptions.DatasetsError, OSError) as error:
        raise UserError(
            f"{where}: {paths[0].name} can't be read as {file_format}: {error.__cause__ or error}"
        ) from error
    finally:
        if not was_silent:
            datasets.enable_progress_bars()
    for column in columns:
        if column not in table.column_names:
            raise UserError(f"{where}: no column '{column}'{did_you_mean(column, table.column_names)}")
    yield from table


def _folder(task: Task) -> str:
    if task.is_in_senteval:
        return f"SentEval's folder {task.folder}"
    parts = next(iter(task.parts.values()))
    names = (f"{task.folder}/{file.format(part)}" for part in parts for file in task.files)
    return " and ".join(dict.fromkeys(names))


PUBLISHED_ROWS = {
    ("princeton-nlp/datasets-for-simcse", "nli_for_simcse.csv"): 276_000,
    ("princeton-nlp/datasets-for-simcse", "wiki1m_for_simcse.txt"): 1_000_000,
}
"""Approximate number of rows by data set and file, as in papers: for estimates before files are read."""
