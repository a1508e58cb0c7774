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

    A trainer takes every column but scores and labels as a text. The list of further negatives therefore
    becomes columns: as many as every record has. A teacher's scores are included if all texts have one.
    """

    kind: RecordKind
    num_further: int = 0
    has_scores: bool = False

    @classmethod
    def of(cls, dataset: SyntheticDataset) -> "TrainingColumns":
        """Return the columns of a data set."""
        table = dataset.table
        if dataset.kind is not RecordKind.TRIPLET or not table.num_rows:
            return cls(dataset.kind)
        further = _lengths(table, FURTHER)
        return cls(dataset.kind, min(further), _lengths(table, SCORES) == {2 + min(further)})

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
        """Return all other columns: provenance, and lists of negatives."""
        return table.select([name for name in table.column_names if name not in self.names])


def _lengths(table: "pa.Table", column: str) -> set[int]:
    """Return the distinct lengths of a column's lists; {0} without such a column."""
    import pyarrow.compute as pc

    if column not in table.column_names:
        return {0}
    lengths: list[int | None] = pc.unique(pc.list_value_length(table[column])).to_pylist()
    return {length or 0 for length in lengths}
