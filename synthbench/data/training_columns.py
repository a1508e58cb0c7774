"""The columns that sentence-transformers trainers read, in their order, and the remaining columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, RecordKind

if TYPE_CHECKING:
    import pyarrow as pa

SCORES, FURTHER = "scores", "further_negatives"


@dataclass(frozen=True)
class TrainingColumns:
    """The columns of a data set that a loss takes, the same for all splits.

    A trainer reads every column as texts, except scores and labels. Therefore, further negatives become a
    column each, up to the smallest number in any record. A teacher's scores are included only if all records
    have them and equally many negatives. `left_out` names what is omitted: further negatives or a teacher's
    scores.
    """

    kind: RecordKind
    num_further: int = 0
    has_scores: bool = False
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: SyntheticDataset) -> "TrainingColumns":
        """Return the columns of a data set."""
        table = dataset.table
        if dataset.kind is not RecordKind.TRIPLET or not table.num_rows:
            return cls(dataset.kind)
        further, scores = _lengths(table, FURTHER), _lengths(table, SCORES)
        has_scores = scores == {2 + min(further)}
        left_out = (
            *(["further negatives"] if len(further) > 1 else []),
            *(["a teacher's scores"] if scores != {0} and not has_scores else []),
        )
        return cls(dataset.kind, min(further), has_scores, left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in the order in which losses take them."""
        negatives = (f"negative{number + 2}" for number in range(self.num_further))
        return (*RECORD_TYPES[self.kind].own_fields(), *negatives, *([SCORES] if self.has_scores else ()))

    def select(self, table: "pa.Table") -> "pa.Table":
        """Return these columns of a table of records."""
        import pyarrow as pa
        import pyarrow.compute as pc

        own = RECORD_TYPES[self.kind].own_fields()
        columns = {name: table[name] for name in own}
        for number in range(self.num_further):
            columns[f"negative{number + 2}"] = pc.list_element(table[FURTHER], number)
        if self.has_scores:
            columns[SCORES] = table[SCORES]
        return pa.table(columns)

    def others(self, table: "pa.Table") -> "pa.Table":
        """Return all other columns, such as provenance, the list of further negatives, and omitted scores."""
        return table.select([name for name in table.column_names if name not in self.names])


def _lengths(table: "pa.Table", column: str) -> set[int]:
    """Return the distinct lengths of a column's lists; {0} without such a column."""
    import pyarrow.compute as pc

    if column not in table.column_names:
        return {0}
    lengths: list[int | None] = pc.unique(pc.list_value_length(table[column])).to_pylist()
    return {length or 0 for length in lengths}
