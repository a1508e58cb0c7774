"""SentEval's transfer tasks: sentences with a class, and MRPC's pairs, as its folders hold them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from synthbench.data.records import Record, ScoredPair, Sentence
from synthbench.sources.content import Content
from synthbench.sources.problems import NotUTF8Error, Problems, read_lines
from synthbench.sources.senteval import check_sizes, record_id
from synthbench.sources.tasks import Layout, Split, Task

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
EMPTY = "."
_MRPC_HEADER = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
_Shared = Mapping[str, Any]


def read_task(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a task's split: sentences whose `label` is the class; of MRPC, pairs with score 1 or 0.

    As in SentEval a sentence is its words with one blank between, and an empty one of a file per class (CR
    has four) counts and is a full stop. Files are UTF-8; one that is not is read as latin-1. Both leave a
    note. `expected` is the number of records to be found: None is the published number of every part, 0 any.

    Raises UserError naming, all together and by file and line, what is wrong with a line, or other sizes.
    """
    content, problems = Content(), Problems()
    sizes = {}
    for part, (path,) in files.items():
        before = len(content.records)
        lines = _lines(path, content)
        for number, line in enumerate(lines, start=1):
            if task.layout == "mrpc" and number == 1:
                _check_header(path, line, problems)
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


def _lines(path: Path, content: Content) -> list[str]:
    try:
        return read_lines(path)
    except NotUTF8Error:
        content.notes.append(f"{path.name} is not UTF-8: read as latin-1")
        return read_lines(path, "latin-1")


def _note_empty(path: Path, content: Content, first: int) -> None:
    number = sum(record.texts() == (EMPTY,) for record in content.records[first:])
    if number:
        content.notes.append(f"{path.name}: {number} empty sentences are '{EMPTY}', as SentEval encodes them")


def _check_header(path: Path, line: str, problems: Problems) -> None:
    cells = line.split("\t")
    if cells != _MRPC_HEADER:
        problems.add(f"{path}:1: the header is {', '.join(cells)}; it must be {', '.join(_MRPC_HEADER)}")


def _of_class(line: str, part: str, shared: _Shared) -> Record:
    return Sentence(sentence=" ".join(line.split()) or EMPTY, label=part, **shared)


def _of_sst(line: str, part: str, shared: _Shared) -> Record:
    text, label = _cells(line, 2)
    return Sentence(sentence=_words(text), label=_binary(label), **shared)


def _of_trec(line: str, part: str, shared: _Shared) -> Record:
    fine, _, text = line.partition(" ")
    label, colon, _ = fine.partition(":")
    if not colon or label not in TREC_CLASSES:
        raise ValueError(f"begins with '{fine}', not with a class ({', '.join(TREC_CLASSES)}) as LOC:city")
    return Sentence(sentence=_words(text), label=label, **shared)


def _of_mrpc(line: str, part: str, shared: _Shared) -> Record:
    label, _, _, first, second = _cells(line, 5)
    return ScoredPair(
        sentence1=_words(first), sentence2=_words(second), score=float(_binary(label)), **shared
    )


_READERS: Mapping[Layout, Callable[[str, str, _Shared], Record]] = {
    "file per class": _of_class,
    "sst": _of_sst,
    "trec": _of_trec,
    "mrpc": _of_mrpc,
}


def _cells(line: str, number: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != number:
        raise ValueError(f"{len(cells)} tab-separated columns, {number} expected")
    return cells


def _binary(label: str) -> str:
    if label.strip() not in ("0", "1"):
        raise ValueError(f"class '{label}' is neither 0 nor 1")
    return label.strip()


def _words(text: str) -> str:
    words = text.split()
    if not words:
        raise ValueError("the sentence is empty")
    return " ".join(words)
