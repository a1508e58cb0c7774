"""Data sets that are written as their records come: all at once they may be more than fits into memory."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from synthbench.data.checking import CheckedRecords
from synthbench.data.dataset import FAILURES_FILE, RECORDS_FILE, Manifest, SyntheticDataset, write_manifest
from synthbench.data.records import RECORD_TYPES, Record, RecordKind


def write_records(
    folder: Path,
    kind: RecordKind,
    records: Iterable[Record],
    **manifest: Any,  # noqa: ANN401 - the manifest's own fields
) -> Manifest:
    """Write records, and the failures among them, as a data set into `folder`, which must exist.

    What is read from there is what `SyntheticDataset.create` makes of them. Raises UserError as that does.
    """
    if RECORD_TYPES[kind].optional_fields:
        # Which columns there are is known at the end only.
        return _write_at_once(folder, kind, list(records), manifest)
    import pyarrow.parquet as pq

    with ExitStack() as files:

        def into(name: str, kind: RecordKind) -> CheckedRecords:
            checked = CheckedRecords(kind, lambda batch: file.write_batch(batch))
            file = files.enter_context(pq.ParquetWriter(folder / name, checked.schema))
            return checked

        kept, failures = into(RECORDS_FILE, kind), into(FAILURES_FILE, RecordKind.FAILURE)
        for record in records:
            (failures if record.kind == RecordKind.FAILURE else kept).add(record)
        kept.finish()
        failures.finish()
    written = Manifest(
        kind=kind,
        num_records=kept.num_records,
        num_failures=failures.num_records,
        content_hash=kept.content_hash,
        **manifest,
    )
    write_manifest(written, folder)
    return written


def _write_at_once(
    folder: Path, kind: RecordKind, records: Iterable[Record], manifest: dict[str, Any]
) -> Manifest:
    kept: list[Record] = []
    failures: list[Record] = []
    for record in records:
        (failures if record.kind == RecordKind.FAILURE else kept).append(record)
    dataset = SyntheticDataset.create(kind, kept, failures=failures, **manifest)
    dataset.write(folder)
    return dataset.manifest
