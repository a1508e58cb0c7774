"""A stranger's data set with valid columns and sizes: invalid values are found before it is used."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthbench.base.errors import UserError
from synthbench.data.dataset import FAILURES_FILE, RECORDS_FILE, SyntheticDataset, check_dataset
from synthbench.data.records import Failure, Pair, Ranking, Record, RecordKind, ScoredPair

RECORDS: dict[RecordKind, Record] = {
    RecordKind.SCORED_PAIR: ScoredPair(sentence1="a", sentence2="b", score=0.5),
    RecordKind.RANKING: Ranking(query="q", candidates=("a", "b"), grades=(1.0, 0.0)),
    RecordKind.PAIR: Pair(anchor="a", positive="b", seed=None),
}
Values = Callable[[], pa.Array]


def not_unicode() -> pa.Array:
    raw = pa.array([b"\xff\xfe"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 1, raw.buffers())


@pytest.mark.parametrize(
    ("kind", "column", "values", "fault"),
    [
        (RecordKind.PAIR, "anchor", lambda: pa.nulls(1, pa.string()), "rows without 'anchor'"),
        (RecordKind.PAIR, "id", lambda: pa.nulls(1, pa.string()), "rows without 'id'"),
        (RecordKind.PAIR, "positive", not_unicode, "not Unicode"),
        (RecordKind.PAIR, "label", not_unicode, "not Unicode"),
        (RecordKind.SCORED_PAIR, "score", lambda: pa.array([float("nan")]), "'score' that is not finite"),
        (RecordKind.SCORED_PAIR, "score", lambda: pa.nulls(1, pa.float64()), "rows without 'score'"),
        (RecordKind.RANKING, "candidates", lambda: pa.array([["a", None]]), "rows without 'candidates'"),
        (RecordKind.RANKING, "grades", lambda: pa.array([[1.0]]), "has not one of 'grades'"),
        (RecordKind.RANKING, "grades", lambda: pa.array([[1.0, float("inf")]]), "'grades' that is not"),
        (RecordKind.FAILURE, "reason", lambda: pa.nulls(1, pa.string()), "rows without 'reason'"),
    ],
)
def test_invalid_values_in_foreign_records_are_found(
    tmp_path: Path, kind: RecordKind, column: str, values: Values, fault: str
) -> None:
    is_failure = kind is RecordKind.FAILURE
    record = RECORDS[RecordKind.PAIR if is_failure else kind]
    SyntheticDataset.create(record.kind, [record], failures=[Failure(reason="empty")]).write(tmp_path)
    check_dataset(tmp_path)
    file = tmp_path / (FAILURES_FILE if is_failure else RECORDS_FILE)
    table = pq.ParquetFile(file).read()
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, table.schema.field(index), values()), file)
    with pytest.raises(UserError) as raised:
        check_dataset(tmp_path)
    assert fault in raised.value.messages[0]
