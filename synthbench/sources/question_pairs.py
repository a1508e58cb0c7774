"""Duplicate questions of forums as Shah et al. (2018) released them: a corpus of titles, and pairs of ids."""

import gzip
from collections.abc import Mapping
from pathlib import Path

from synthbench.data.records import ScoredPair
from synthbench.errors import UserError
from synthbench.sources.content import Content
from synthbench.sources.problems import Problems, read_lines
from synthbench.sources.senteval import check_sizes
from synthbench.sources.tasks import Split, Task

LABELS = {"pos": "duplicate", "neg": "different"}
NO_TITLE = "a question without a title"


def read_task(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a forum's split: pairs of titles, score 1 (of the file `pos`) or 0 (`neg`), positives first.

    A line of the corpus is id, title and body, a tab between; the body is not read. A line of pairs begins
    with two ids, white space between. Pairs with a question whose title is blank are left out and counted;
    `expected` counts them, too: None is the published number, 0 any.

    Raises UserError naming, all together and by file and line, ids that the corpus lacks and lines that are
    not as above, or another size.
    """
    ((part, (*pair_files, corpus)),) = files.items()
    content, problems = Content(), Problems()
    titles = _titles(corpus, problems)
    for path, (kind, label) in zip(pair_files, LABELS.items(), strict=True):
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


def _titles(path: Path, problems: Problems) -> dict[str, str]:
    """Return the title of each id, with one blank between its words."""
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: can't be read as text in UTF-8, compressed by gzip: {error}") from error
    titles = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        name, tab, rest = line.partition("\t")
        if not tab:
            problems.add(f"{path}:{number}: no tab; a line is id, title and body")
        titles[name] = " ".join(rest.partition("\t")[0].split())
    return titles
