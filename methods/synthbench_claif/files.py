"""CLHAIF's released NLI triplets: a CSV file with five columns, which only their order identifies."""

import csv
from pathlib import Path

from synthbench.api import (
    Content,
    Faults,
    Importer,
    ImportOptions,
    RecordKind,
    Triplet,
    UserError,
    is_invisible,
    number_in,
)

COLUMNS = ("anchor", "positive", "negative", "score of the positive", "score of the negative")
BLANK = "blank text"


class CLHAIFFile(Importer):
    """CSV with a header: anchor, positive, hard negative, and an LLM's scores of the last two, in this order.

    The authors' code reads the columns by their order, too.
    """

    version = 1
    title = "CLHAIF's format"
    suffix = ".csv"
    kinds = (RecordKind.TRIPLET,)
    gives_scores = True

    def read(self, file: Path, kind: RecordKind | None, options: ImportOptions) -> Content:
        """Read scored triplets; rows with a blank text are dropped and counted.

        Raises UserError naming each faulty line: another number of columns, or a score that is no number.
        """
        content, faults = Content(), Faults()
        try:
            with file.open(encoding="utf-8", newline="") as stream:
                rows = csv.reader(stream)
                next(rows, None)
                for row in rows:
                    identity = f"{file.name}/{rows.line_num:04d}"
                    try:
                        _add(row, identity, options.split, content)
                    except ValueError as error:
                        faults.at(file, rows.line_num, error)
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{file}: {error}") from error
        faults.raise_if_any()
        if not content.records:
            raise UserError(f"{file}: holds no triplets")
        return content


def _add(row: list[str], identity: str, split: str, content: Content) -> None:
    if len(row) != len(COLUMNS):
        raise ValueError(f"{len(row)} columns instead of {len(COLUMNS)}: {', '.join(COLUMNS)}")
    anchor, positive, negative, *scores = row
    if any(map(is_invisible, (anchor, positive, negative))):
        content.drop(BLANK)
        return
    content.records.append(
        Triplet(
            id=identity,
            anchor=anchor,
            positive=positive,
            negative=negative,
            scores=tuple(map(number_in, scores)),
            split=split,
        )
    )
