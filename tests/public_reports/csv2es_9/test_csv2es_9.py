"""rholder/csv2es #9: a CSV file with a cell of more than 131,072 characters can't be read.

Here it can, with a header line and quotation marks, by experiments and commands.
"""

from pathlib import Path

from synthbench.data.importing import import_file


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f'anchor,positive\n"{"long, " * 40_000}",b\n')
    (record,) = import_file(file)
    assert len(record.anchor) == 240_000
