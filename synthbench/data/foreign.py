"""Checks of untrusted Parquet files against the columns of a record kind."""

from typing import TYPE_CHECKING

from synthbench.data.records import RECORD_TYPES, RecordKind

if TYPE_CHECKING:
    import pyarrow as pa

_LENGTHS = (("candidates", "grades"), ("judged", "grades"))
"""List columns whose length must equal another list's."""
_OF_FAILURES = ("reason",)


def fault_of(kind: RecordKind, batch: "pa.RecordBatch") -> str:
    """Return why these rows are not records of the kind, or "" if they are.

    Required texts and numbers must be present, texts valid Unicode, and numbers finite.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return "holds texts that are not Unicode, or lists without end"
    own = _OF_FAILURES if kind == RecordKind.FAILURE else RECORD_TYPES[kind].own_fields()
    names = {*own, "id", *RECORD_TYPES[kind].optional_fields} & {*batch.schema.names}
    for name in sorted(names):
        values = batch.column(name)
        is_list = pa.types.is_list(values.type)
        inner = pc.list_flatten(values) if is_list else values
        if values.null_count or inner.null_count:
            return f"has rows without '{name}'"
        if pa.types.is_floating(inner.type) and not pc.all(pc.is_finite(inner), min_count=0).as_py():
            return f"has a value of '{name}' that is not finite"
    for one, other in _LENGTHS:
        if {one, other} <= names and not _have_equal_lengths(batch, one, other):
            return f"has not one of '{other}' for each of '{one}'"
    return ""


def _have_equal_lengths(batch: "pa.RecordBatch", one: str, other: str) -> bool:
    import pyarrow.compute as pc

    lengths = (pc.list_value_length(batch.column(name)) for name in (one, other))
    return bool(pc.all(pc.equal(*lengths), min_count=0).as_py())
