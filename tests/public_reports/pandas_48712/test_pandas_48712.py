"""pandas-dev/pandas #48712: the text "null" in a table is read as a missing value.

Words such as "null", "NA" or "None" are sentences like others, in every format that is read or written.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset, open_dataset
from synthbench.data.records import Pair, RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

WORDS = ["null", "NULL", "NA", "N/A", "n/a", "nan", "NaN", "None", "#N/A", "-inf", "true", "007", "1e5"]


def write(file: Path) -> None:
    rows = [{"anchor": word, "positive": f"a {word}"} for word in WORDS]
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return
    if file.suffix == ".jsonl":
        lines = [json.dumps(row) for row in rows]
    else:
        separator = "\t" if file.suffix == ".tsv" else ","
        lines = [separator.join(row) for row in ({"anchor": 0, "positive": 0}, *map(dict.values, rows))]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_words_that_resemble_missing_values_are_read_unchanged(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"own.{ending}")
    found = FileSource(file=f"own.{ending}", kind=RecordKind.PAIR).load(Roots(base=tmp_path))
    assert found.column("anchor") == WORDS
    assert found.column("positive") == [f"a {word}" for word in WORDS]


@pytest.mark.parametrize("chosen", [ExportFormat.CSV, ExportFormat.JSONL])
def test_words_that_resemble_missing_values_survive_an_export(tmp_path: Path, chosen: ExportFormat) -> None:
    pairs = [Pair(anchor=word, positive=f"a {word}") for word in WORDS]
    target = tmp_path / f"out.{chosen}"
    export_dataset(SyntheticDataset.create(RecordKind.PAIR, pairs), target, chosen)
    assert open_dataset(target).column("anchor") == WORDS
