"""Finding tasks in the folders of the SentEval toolkit, or of organisers; reading those of similarity."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synthbench.data.records import ScoredPair
from synthbench.errors import UserError
from synthbench.sources.content import NO_GOLD_SCORE, Content, missing
from synthbench.sources.problems import Problems, is_blank, read_lines, score_of, sentence_of
from synthbench.sources.tasks import Split, Task

_PREFIXES = ("senteval/STS", "senteval", "STS", "", "downstream/STS", "downstream")
_SICK_HEADER = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]


@dataclass(frozen=True)
class _Line:
    """One scored (or not yet scored) pair as it stands in the files; `gold` is the score's text."""

    path: Path
    number: int
    sentence1: str
    sentence2: str
    gold: str
    gold_path: Path
    subset: str = ""


def task_files(task: Task, split: Split, data: Path | None) -> dict[str, tuple[Path, ...]]:
    """Return the files of each part of a task's split.

    Raises UserError naming the folder that is missing or every file that is missing in it.
    """
    folder = _folder(task, split, data)
    files = {part: tuple(folder / name.format(part) for name in task.files) for part in task.parts[split]}
    absent = missing(path for paths in files.values() for path in paths)
    if absent:
        listed = ", ".join(path.name for path in absent)
        raise UserError(f"{task.name} {split}: {folder} lacks {listed}; {_cure(task)}")
    return files


def read_task(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a task's split.

    `expected` is the number of scored pairs to be found: None is the published number of every part, 0 any.
    Pairs with a blank gold score are not scored: left out and counted.

    Raises UserError naming, all together, unequal line counts, wrong columns, scores that are no numbers or
    out of range, empty sentences (each with file and line), and sizes other than expected.
    """
    content, problems = Content(), Problems()
    sizes = {}
    for part, paths in files.items():
        before = len(content.records)
        for line in _lines(task, part, paths, problems):
            _add(line, record_id(task, split, part, line.number), (task, split), content, problems)
        sizes[part] = len(content.records) - before
        if task.input_lines and content.dropped:
            content.notes.append(f"{paths[0].name}: only the first {sizes[part]} lines are scored")
    problems.raise_if_any()
    check_sizes(task, split, files, sizes, expected)
    for part in task.left_out:
        beside = next(iter(files.values()))[0].with_name(task.files[0].format(part))
        if beside.is_file():
            content.notes.append(f"{beside.name} is left out: {task.name} is scored without {part}")
    return content


def _folder(task: Task, split: Split, data: Path | None) -> Path:
    patterns = " and ".join(name.format("X") for name in task.files)
    expected = f"{task.folder}/ with {patterns} for X = {', '.join(task.parts[split])}"
    title = f"{task.name} {split}"
    if data is None:
        raise UserError(
            f"{title}: no data folder is set: point --data or SYNTHBENCH_DATA at a folder that holds "
            f"{expected}; {_cure(task)}"
        )
    candidates = [data / prefix / task.folder for prefix in _PREFIXES]
    candidates += [data] if data.name == task.folder else []
    for folder in candidates:
        if folder.is_dir():
            return folder
    inside = ", ".join(prefix for prefix in _PREFIXES if prefix)
    raise UserError(f"{title}: no {expected} in {data} (or its {inside}); {_cure(task)}")


def _cure(task: Task) -> str:
    cures = {
        "get it with the SentEval toolkit's download script (get_transfer_data.bash)": task.is_in_senteval,
        f"take {task.hub_id} from the hub with origin: hub": bool(task.hub_id),
        f"how to get it: {task.described_in}": bool(task.described_in),
    }
    return ", or ".join(cure for cure, applies in cures.items() if applies)


def record_id(task: Task, split: Split, part: str, number: int) -> str:
    """Return task/split/part/line; the part only where a split has several."""
    parts = (part,) if len(task.parts[split]) > 1 else ()
    return "/".join([task.name, split, *parts, f"{number:04d}"])


def _add(line: _Line, own_id: str, origin: tuple[Task, Split], content: Content, problems: Problems) -> None:
    task, split = origin
    if is_blank(line.gold):
        content.drop(NO_GOLD_SCORE)
        return
    path = line.path
    try:
        first = sentence_of(line.sentence1, "the first sentence")
        second = sentence_of(line.sentence2, "the second sentence")
        path = line.gold_path
        score = score_of(line.gold, task.score_range)
    except ValueError as error:
        problems.add(f"{path}:{line.number}: {error}")
        return
    pair = ScoredPair(
        id=own_id, split=split, subset=line.subset, sentence1=first, sentence2=second, score=score
    )
    content.records.append(pair)


def _lines(task: Task, part: str, paths: tuple[Path, ...], problems: Problems) -> Iterator[_Line]:
    if task.layout == "semeval":
        return _semeval_lines(task, part, paths, problems)
    if task.layout == "benchmark":
        return _benchmark_lines(task, paths[0], problems)
    return _sick_lines(task, paths[0], problems)


def _semeval_lines(task: Task, part: str, paths: tuple[Path, ...], problems: Problems) -> Iterator[_Line]:
    path, gold_path = paths
    texts, golds = read_lines(path), read_lines(gold_path)
    if len(texts) == task.input_lines and len(golds) == task.size("test"):
        golds += [""] * (len(texts) - len(golds))
    if len(texts) != len(golds):
        problems.add(
            f"{path} has {len(texts)} lines, {gold_path} has {len(golds)}: every pair needs its gold line,"
            " a blank one if it has no score"
        )
        return
    for number, (cells, gold) in enumerate(zip(texts, golds, strict=True), start=1):
        row = _cells(task, path, number, cells, problems)
        if row:
            yield _Line(path, number, row[0], row[1], gold, gold_path, subset=part)


def _benchmark_lines(task: Task, path: Path, problems: Problems) -> Iterator[_Line]:
    for number, line in enumerate(read_lines(path), start=1):
        row = _cells(task, path, number, line, problems)
        if row:
            yield _Line(path, number, row[5], row[6], row[4], path, subset=row[1])


def _sick_lines(task: Task, path: Path, problems: Problems) -> Iterator[_Line]:
    for number, line in enumerate(read_lines(path), start=1):
        row = _cells(task, path, number, line, problems)
        if number == 1:
            if row and row != _SICK_HEADER:
                problems.add(
                    f"{path}:1: the header is {', '.join(row)}; it must be {', '.join(_SICK_HEADER)}"
                )
        elif row:
            yield _Line(path, number, row[1], row[2], row[3], path)


def _cells(task: Task, path: Path, number: int, line: str, problems: Problems) -> list[str]:
    """Return a line's cells, none (and the problem noted) if their number is wrong."""
    cells = line.split("\t")
    if len(cells) in task.columns:
        return cells
    allowed = " or ".join(str(count) for count in task.columns)
    problems.add(f"{path}:{number}: {len(cells)} tab-separated columns, {allowed} expected")
    return []


def check_sizes(
    task: Task,
    split: Split,
    files: Mapping[str, tuple[Path, ...]],
    sizes: Mapping[str, int],
    expected: int | None,
) -> None:
    """Raise UserError if the parts have not the published sizes, or all together not the expected one."""
    if expected is None:
        problems = Problems()
        for part, published in task.parts[split].items():
            if sizes[part] != published:
                named = " and ".join(str(path) for path in files[part])
                problems.add(
                    f"{named}: {sizes[part]} {task.items}, {published} published ({task.name} {split})"
                )
        problems.raise_if_any()
    elif expected not in (0, sum(sizes.values())):
        folder = next(iter(files.values()))[0].parent
        raise UserError(
            f"{folder}: {sum(sizes.values())} {task.items} in {task.name} {split}, {expected} expected"
        )
