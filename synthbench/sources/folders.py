"""Standard tasks from the folders of the SentEval toolkit, or of their organisers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.reading import (
    NO_GOLD_SCORE,
    Content,
    Faults,
    is_blank,
    lines,
    read_lines,
    score_of,
    sentence_of,
)
from synthbench.data.records import Record, ScoredPair, Sentence
from synthbench.sources.tasks import Layout, Split, Task

_PREFIXES = ("senteval/STS", "senteval", "STS", "", "downstream/STS", "downstream")
_SICK_HEADER = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]


@dataclass(frozen=True)
class _GoldPair:
    """A pair as read from a task's files; `gold` is its score as text, blank if it has none."""

    path: Path
    number: int
    sentence1: str
    sentence2: str
    gold: str
    gold_path: Path
    subset: str = ""


def task_files(task: Task, split: Split, data: Path | None) -> dict[str, tuple[Path, ...]]:
    """Return the files of each part of a task's split.

    Raises UserError naming the missing folder, or every missing file in it. Raises UserError also if no data
    folder is set.
    """
    folder = _folder(task, split, data)
    files = {part: tuple(folder / name.format(part) for name in task.files) for part in task.parts[split]}
    absent = [path for paths in files.values() for path in paths if not path.is_file()]
    if absent:
        listed = ", ".join(path.name for path in absent)
        raise UserError(f"{task.name} {split}: {folder} lacks {listed}; {_advice(task)}")
    return files


def read_similarity(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a similarity task's split.

    `expected` is the required number of scored pairs; None: the published number of every part, 0: any. Pairs
    with a blank gold score are dropped and counted.

    Raises one UserError for all faults, with file and line: unequal line counts, wrong columns, scores that
    are no numbers or out of range, and empty sentences. If there are none, raises UserError for an unexpected
    size.
    """
    content, problems = Content(), Faults()
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
            f"{expected}; {_advice(task)}"
        )
    candidates = [data / prefix / task.folder for prefix in _PREFIXES]
    candidates += [data] if data.name == task.folder else []
    for folder in candidates:
        if folder.is_dir():
            return folder
    inside = ", ".join(prefix for prefix in _PREFIXES if prefix)
    raise UserError(f"{title}: no {expected} in {data} (or its {inside}); {_advice(task)}")


def _advice(task: Task) -> str:
    cures = {
        "get it with the SentEval toolkit's download script (get_transfer_data.bash)": task.is_in_senteval,
        f"take {task.hub_id} from the hub with origin: hub": bool(task.hub_id),
        f"how to get it: {task.described_in}": bool(task.described_in),
    }
    return ", or ".join(cure for cure, applies in cures.items() if applies)


def record_id(task: Task, split: Split, part: str, number: int) -> str:
    """Return the id task/split/part/line, with the part only if a split has several."""
    parts = (part,) if len(task.parts[split]) > 1 else ()
    return "/".join([task.name, split, *parts, f"{number:04d}"])


def _add(
    line: _GoldPair, own_id: str, origin: tuple[Task, Split], content: Content, problems: Faults
) -> None:
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


def _lines(task: Task, part: str, paths: tuple[Path, ...], problems: Faults) -> Iterator[_GoldPair]:
    if task.layout == "semeval":
        return _semeval_lines(task, part, paths, problems)
    return _table_lines(task, paths[0], problems)


def _semeval_lines(task: Task, part: str, paths: tuple[Path, ...], problems: Faults) -> Iterator[_GoldPair]:
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
            yield _GoldPair(path, number, row[0], row[1], gold, gold_path, subset=part)


def _table_lines(task: Task, path: Path, problems: Faults) -> Iterator[_GoldPair]:
    is_sick = task.layout == "sick"
    first, second, gold = (1, 2, 3) if is_sick else (5, 6, 4)
    for number, line in enumerate(read_lines(path), start=1):
        row = _cells(task, path, number, line, problems)
        if row and is_sick and number == 1:
            _check_header(path, row, _SICK_HEADER, problems)
        elif row:
            subset = "" if is_sick else row[1]
            yield _GoldPair(path, number, row[first], row[second], row[gold], path, subset)


def _cells(task: Task, path: Path, number: int, line: str, problems: Faults) -> list[str]:
    """Return a line's cells; if their number is wrong, note the fault and return []."""
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
    """Raise UserError if the parts have another number of records than required.

    `expected` is the number required of all parts together; None: each part's published number, 0: any.
    """
    if expected is None:
        problems = Faults()
        for part, published in task.parts[split].items():
            if published not in (0, sizes[part]):
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


TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
EMPTY = "."
_MRPC_HEADER = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
_Shared = Mapping[str, Any]


def read_transfer(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a transfer task's split: sentences whose `label` is the class; for MRPC, pairs with score 1 or 0.

    As in SentEval, a sentence is its words joined by single spaces. In files of one class each, an empty
    sentence (CR has four) counts as a full stop. Files that are not UTF-8 are read as latin-1. Notes give the
    number of empty sentences, and name files read as latin-1.
    `expected` is the required number of records; None: the published number of every part, 0: any.

    Raises one UserError for all faults, with file and line. If there are none, raises UserError for an
    unexpected size.
    """
    content, problems = Content(), Faults()
    sizes = {}
    for part, (path,) in files.items():
        before = len(content.records)
        for number, line in enumerate(_decoded_lines(path, content), start=1):
            if task.layout == "mrpc" and number == 1:
                _check_header(path, line.split("\t"), _MRPC_HEADER, problems)
                continue
            shared = {"id": record_id(task, split, part, number), "split": split}
            try:
                content.records.append(_READERS[task.layout](line, part, shared))
            except ValueError as error:
                problems.add(f"{path}:{number}: {error}")
        sizes[part] = len(content.records) - before
        _note_empty(path, content, before)
    problems.raise_if_any()
    check_sizes(task, split, files, sizes, expected)
    return content


def _decoded_lines(path: Path, content: Content) -> list[str]:
    faults = Faults()
    found = [line for _, line in lines(path, faults)]
    if not faults.messages:
        return found
    content.notes.append(f"{path.name} is not UTF-8: read as latin-1")
    text = path.read_bytes().decode("latin-1").removesuffix("\n")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _note_empty(path: Path, content: Content, first: int) -> None:
    number = sum(record.texts() == (EMPTY,) for record in content.records[first:])
    if number:
        content.notes.append(f"{path.name}: {number} empty sentences are '{EMPTY}', as SentEval encodes them")


def _check_header(path: Path, cells: list[str], header: list[str], problems: Faults) -> None:
    if cells != header:
        problems.add(f"{path}:1: the header is {', '.join(cells)}; it must be {', '.join(header)}")


def _of_class(line: str, part: str, shared: _Shared) -> Record:
    return Sentence(sentence=" ".join(line.split()) or EMPTY, label=part, **shared)


def _of_sst(line: str, part: str, shared: _Shared) -> Record:
    text, label = _exactly(line, 2)
    return Sentence(sentence=_words(text), label=_binary(label), **shared)


def _of_trec(line: str, part: str, shared: _Shared) -> Record:
    fine, _, text = line.partition(" ")
    label, colon, _ = fine.partition(":")
    if not colon or label not in TREC_CLASSES:
        raise ValueError(f"begins with '{fine}', not with a class ({', '.join(TREC_CLASSES)}) as LOC:city")
    return Sentence(sentence=_words(text), label=label, **shared)


def _of_mrpc(line: str, part: str, shared: _Shared) -> Record:
    label, _, _, first, second = _exactly(line, 5)
    return ScoredPair(
        sentence1=_words(first), sentence2=_words(second), score=float(_binary(label)), **shared
    )


_READERS: Mapping[Layout, Callable[[str, str, _Shared], Record]] = {
    "file per class": _of_class,
    "sst": _of_sst,
    "trec": _of_trec,
    "mrpc": _of_mrpc,
}


def _exactly(line: str, number: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != number:
        raise ValueError(f"{len(cells)} tab-separated columns, {number} expected")
    return cells


def _binary(label: str) -> str:
    if label.strip() not in ("0", "1"):
        raise ValueError(f"class '{label}' is neither 0 nor 1")
    return label.strip()


def _words(text: str) -> str:
    return sentence_of(" ".join(text.split()), "the sentence")


QUESTION_LABELS = {"pos": "duplicate", "neg": "different"}
NO_TITLE = "a question without a title"


def read_question_pairs(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a forum's split: pairs of titles, first from the file `pos` (score 1), then from `neg` (score 0).

    A line of the corpus has id, title and body, separated by tabs; the body is not read. A line of pairs
    begins with two ids, separated by white space. Pairs with a blank title are dropped and counted.
    `expected` is the required number of pairs, dropped ones included; None: the published number, 0: any.

    Raises one UserError for all faults, with file and line: ids missing in the corpus, and lines in another
    layout. If there are none, raises UserError for an unexpected size.
    """
    ((part, (*pair_files, corpus)),) = files.items()
    content, problems = Content(), Faults()
    titles = _titles(corpus, problems)
    for path, (kind, label) in zip(pair_files, QUESTION_LABELS.items(), strict=True):
        for number, line in enumerate(read_lines(path), start=1):
            try:
                texts = [titles[name] for name in _ids(line)]
            except KeyError as error:
                problems.add(f"{path}:{number}: {corpus.name} has no question {error}")
                continue
            except ValueError as error:
                problems.add(f"{path}:{number}: {error}")
                continue
            if not all(texts):
                content.drop(NO_TITLE)
                continue
            content.records.append(
                ScoredPair(
                    id=f"{task.name}/{split}/{kind}/{number:06d}",
                    split=split,
                    label=label,
                    sentence1=texts[0],
                    sentence2=texts[1],
                    score=float(kind == "pos"),
                )
            )
    problems.raise_if_any()
    size = len(content.records) + sum(content.dropped.values())
    check_sizes(task, split, files, {part: size}, expected)
    return content


def _ids(line: str) -> list[str]:
    ids = line.split()[:2]
    if len(ids) < 2:
        raise ValueError(f"{len(ids)} ids, 2 expected")
    return ids


def _titles(path: Path, problems: Faults) -> dict[str, str]:
    """Return the title of each id, with single spaces between words.

    Notes a fault for a line without a tab, and for an id with two different titles.
    """
    titles: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, rest = line.partition("\t")
        if not tab:
            problems.add(f"{path}:{number}: no tab; a line is id, title and body")
        title = " ".join(rest.partition("\t")[0].split())
        if titles.setdefault(name, title) != title:
            problems.add(f"{path}:{number}: the question {name} has another title in an earlier line")
    return titles
