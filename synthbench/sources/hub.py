"""Standard tasks and single files from the Hugging Face hub, or from its local cache."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean, in_one_line, unreachable
from synthbench.base.patterns import linear_pattern
from synthbench.base.terminal import bars_of_libraries
from synthbench.data.reading import NO_GOLD_SCORE, Content, Faults, is_blank, score_of, sentence_of
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.models.reference import hub_errors
from synthbench.sources import reranking
from synthbench.sources.tasks import Split, Task

_SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}
_COLUMNS = {
    RecordKind.SCORED_PAIR: ("sentence1", "sentence2", "score"),
    RecordKind.RANKING: reranking.FIELDS,
}


def check_available(task: Task, split: Split) -> None:
    """Raise UserError if the hub lacks the task, or if we are offline and the local cache lacks it.

    Sends no request; files are downloaded when they are read.
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


def resolve(task: Task, split: Split) -> list[Path]:
    """Return the task's files at the pinned commit, downloading those missing in the local cache.

    Raises UserError naming the unavailable data set and commit, and what to do.
    """
    patterns = [pattern.format(_SPLIT_NAMES[split]) for pattern in task.hub_files]
    try:
        folder = _snapshot(task.hub_id, task.hub_revision, patterns)
    except hub_errors() as error:
        raise unreachable(_unavailable(task, split, in_one_line(error)), error) from error
    for pattern in patterns:
        if matching := _matching(folder, pattern):
            return [folder / name for name in matching]
    raise UserError(_unavailable(task, split, f"none of {', '.join(patterns)} is there"))


def read_task(task: Task, split: Split, paths: list[Path], expected: int | None) -> Content:
    """Read a task's split from the files that `resolve` returned.

    `expected` is the required number of scored pairs or queries; None: the published number, 0: any. The
    hub's files have no subsets.

    Raises UserError for missing columns, bad scores, empty sentences and an unexpected size.
    """
    content, problems = Content(), Faults()
    where = f"{task.hub_id}@{task.hub_revision[:7]} {_SPLIT_NAMES[split]}"
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
    """Yield rows that `datasets` reads from files; given an id, it would ignore the commit when offline."""
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


def _unavailable(task: Task, split: Split, reason: str) -> str:
    command = f"hf download {task.hub_id} --repo-type dataset --revision {task.hub_revision}"
    return (
        f"{task.name} {split}: {task.hub_id} at {task.hub_revision} is not available ({reason.rstrip('.')}); "
        f"with a connection, '{command}' puts it into the cache; "
        f"or use {_folder(task)} with origin: folder"
    )


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
COMMIT = linear_pattern(r"[0-9a-f]{40}")


def commit(dataset: str, revision: str | None) -> str:
    """Return `revision`; if None, the commit of main in the local cache, else the hub's newest.

    Raises UserError if the hub is needed but unreachable.
    """
    from huggingface_hub import HfApi, constants

    if revision is not None:
        return revision
    ref = Path(constants.HF_HUB_CACHE) / f"datasets--{dataset.replace('/', '--')}" / "refs" / "main"
    if ref.is_file():
        return ref.read_text(encoding="utf-8").strip()
    try:
        return str(HfApi().dataset_info(dataset).sha)
    except hub_errors() as error:
        raise _file_unavailable(dataset, "its newest commit", error) from error


def resolve_file(dataset: str, revision: str | None, pattern: str) -> Path:
    """Return the only file of a data set that matches `pattern`, downloading it unless cached.

    Raises UserError if it is not available, or if no or several files match.
    """
    folder, found = _fetched(dataset, revision, [pattern])
    matching = _matching(folder, pattern)
    if len(matching) != 1:
        which = f"{len(matching)} files match: {', '.join(matching[:3])} ..." if matching else "no such file"
        raise UserError(f"{dataset}/{pattern} at {found}: {which}; `file` must name one")
    return folder / matching[0]


def resolve_either(dataset: str, revision: str | None, names: Sequence[str]) -> Path:
    """Return the first of these files that the data set has, downloading it unless cached.

    Raises UserError if the data set is not available, or has none of them.
    """
    folder, found = _fetched(dataset, revision, names)
    paths = [folder / name for name in names if (folder / name).is_file()]
    if not paths:
        raise UserError(f"{dataset} at {found}: has no {' or '.join(names)}")
    return paths[0]


def _fetched(dataset: str, revision: str | None, patterns: Sequence[str]) -> tuple[Path, str]:
    """Download the data set's files that match `patterns`; return their folder, and the commit."""
    found = commit(dataset, revision)
    try:
        return _snapshot(dataset, found, patterns), found
    except hub_errors() as error:
        raise _file_unavailable(dataset, found, error) from error


def _snapshot(dataset: str, commit: str, patterns: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download

    with bars_of_libraries():
        return Path(
            snapshot_download(dataset, repo_type="dataset", revision=commit, allow_patterns=list(patterns))
        )


def _matching(folder: Path, pattern: str) -> list[str]:
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if fnmatch(name, pattern))


def _file_unavailable(dataset: str, what: str, error: Exception) -> UserError:
    reason = in_one_line(error).rstrip(".")
    return unreachable(
        f"{dataset}: {what} is not available ({reason}); with a connection, 'hf download {dataset}"
        " --repo-type dataset' puts it into the cache",
        error,
    )
