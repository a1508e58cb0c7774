"""Data sets written and read in batches equal data sets written and read at once."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import record_lists
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data import checking
from synthbench.data.checking import Fingerprints
from synthbench.data.dataset import StoredRecords, SyntheticDataset, write_records
from synthbench.data.records import Failure, RecordKind, ScoredPair

NAMES = ("records.parquet", "failures.parquet", "manifest.json")


@given(record_lists())
@settings(max_examples=25)
def test_streamed_writing_equals_writing_at_once(drawn: tuple) -> None:
    kind, records = drawn
    failures = [Failure(reason="refused"), Failure(reason="empty")]
    expected = SyntheticDataset.create(kind, records, failures=failures, method="m", dropped={"long": 2})

    with TemporaryDirectory() as name:
        mixed = [failures[0], *records, failures[1]]
        manifest = write_records(Path(name), kind, mixed, method="m", dropped={"long": 2})
        found = SyntheticDataset.read(Path(name))
        stored = StoredRecords(Path(name))
        assert (list(stored), len(stored)) == (list(expected), len(expected))
        assert stored.column("id") == expected.column("id")

    assert found.manifest == manifest == expected.manifest
    assert found.table.equals(expected.table)
    assert found.failure_table.equals(expected.failure_table)


def pairs(number: int) -> list[ScoredPair]:
    return [ScoredPair(sentence1=f"a {n % 7}", sentence2="b", score=0.5) for n in range(number)]


def test_full_batches_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "RECORDS_AT_ONCE", 10)

    write_records(tmp_path, RecordKind.SCORED_PAIR, pairs(25))

    with pq.ParquetFile(tmp_path / "records.parquet") as parquet:
        assert parquet.num_row_groups == 3
    expected = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs(25))
    assert SyntheticDataset.read(tmp_path).table.equals(expected.table)


def test_faults_of_streamed_records_are_reported(tmp_path: Path) -> None:
    twice = ScoredPair(id="x", sentence1="a", sentence2="b", score=0.5)
    blank = ScoredPair(id="y", sentence1=" ", sentence2="b", score=2.0)

    with pytest.raises(UserError) as caught:
        write_records(tmp_path, RecordKind.SCORED_PAIR, [twice, twice, blank])

    worded(caught.value.messages, "record", "sentence", "score", "[0", "1]", "2.0")


def test_iteration_reports_damage_at_the_damaged_record(tmp_path: Path) -> None:
    write_records(tmp_path, RecordKind.SCORED_PAIR, pairs(3))
    stored = StoredRecords(tmp_path)
    (tmp_path / "records.parquet").write_bytes(b"PAR1 no more")

    with refused("records.parquet"):
        next(iter(stored))
    (tmp_path / "records.parquet").unlink()
    with refused("records.parquet"):
        stored.column("score")


@given(st.lists(st.text(max_size=2), max_size=200))
def test_fingerprints_recognise_known_texts(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checking, "RECORDS_AT_ONCE", 3)
        fingerprints = Fingerprints()
        found = [fingerprints.add(text) for text in texts]

    assert found == [text not in texts[:place] for place, text in enumerate(texts)]
