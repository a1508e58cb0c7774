r"""wbolster/jsonlines #53: `str.splitlines` cuts JSON lines at U+0085 and others, which JSON keeps.

Only \n ends a line, in what is read and in what is written here.
"""

import json
from pathlib import Path

import pytest

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset, open_dataset
from synthbench.data.records import RecordKind, Sentence
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = [f"before{separator}after" for separator in SEPARATORS]


@pytest.mark.parametrize("ending", ["jsonl", "txt", "tsv", "csv"])
def test_unicode_line_separators_do_not_split_a_sentence(tmp_path: Path, ending: str) -> None:
    lines = {
        "jsonl": [json.dumps({"sentence": text}, ensure_ascii=False) for text in TEXTS],
        "txt": TEXTS,
        "tsv": ["sentence\tid", *(f"{text}\t{number}" for number, text in enumerate(TEXTS))],
        "csv": ["sentence,id", *(f"{text},{number}" for number, text in enumerate(TEXTS))],
    }[ending]
    (tmp_path / f"own.{ending}").write_bytes("\n".join([*lines, ""]).encode())
    found = FileSource(file=f"own.{ending}", kind=RecordKind.SENTENCE).load(Roots(base=tmp_path))
    assert found.column("sentence") == TEXTS


@pytest.mark.parametrize("chosen", [ExportFormat.JSONL, ExportFormat.CSV])
def test_written_values_are_read_back(tmp_path: Path, chosen: ExportFormat) -> None:
    data = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in TEXTS])
    export_dataset(data, tmp_path / f"out.{chosen}", chosen)
    assert open_dataset(tmp_path / f"out.{chosen}").column("sentence") == TEXTS
