"""pytorch/text #612: a quotation mark at the start of a TSV cell swallows the rows behind it.

Quotation marks in TSV files are text. In CSV files, where they quote, one that is never closed is an error.
"""

from pathlib import Path

from wording import refused

from synthbench.data.records import RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

ROWS = [
    ("First", "first"),
    ('"Second', "second"),
    ('Third "sentence"', "third"),
    ("Fourth", '"fourth'),
    ("Fifth", "fifth"),
]


def test_no_row_of_a_tsv_file_is_lost_after_a_quotation_mark(tmp_path: Path) -> None:
    text = "\n".join("\t".join(row) for row in [("anchor", "positive"), *ROWS])
    (tmp_path / "own.tsv").write_text(text, encoding="utf-8")
    found = FileSource(file="own.tsv", kind=RecordKind.PAIR).load(Roots(base=tmp_path))
    assert list(zip(found.column("anchor"), found.column("positive"), strict=True)) == ROWS


def test_an_unclosed_quotation_in_a_csv_file_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text('anchor,positive\nA,a\n"B,b\nC,c\n', encoding="utf-8")
    with refused("own.csv:3"):
        FileSource(file="own.csv", kind=RecordKind.PAIR).load(Roots(base=tmp_path))
