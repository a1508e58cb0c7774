"""From data sets to the one table that a training reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.data.conversions import Thresholds, convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from synthbench.training.objectives import Objective


def training_table(
    data: Sequence[SyntheticDataset],
    objective: "Objective",
    positives_from: float = Thresholds.high,
    *,
    both_orders: bool = False,
) -> "pa.Table":
    """Return the records with split "train" of all data sets, in the given order, as the objective's columns.

    Data sets of another kind are converted, scored pairs from `positives_from` on to positives. With
    `both_orders` scored pairs that no method made come once more at the end, with their sentences exchanged.
    Raises UserError if data can't be converted, or if nothing is left.
    """
    import pyarrow as pa

    kind = objective.record_kind
    parts = [_train_part(convert(dataset, kind, high=positives_from)) for dataset in data]
    num_records = sum(part.num_rows for part in parts)
    if num_records == 0:
        total = sum(dataset.manifest.num_records for dataset in data)
        raise UserError(f"nothing to train on: of {total} records in the data, none has split 'train'")
    if both_orders:
        parts += [_exchanged(part) for part in parts]
    return pa.concat_tables(part.select(list(objective.columns)) for part in parts)


def _train_part(dataset: SyntheticDataset) -> "pa.Table":
    import pyarrow.compute as pc

    return dataset.table.filter(pc.equal(dataset.table["split"], "train"))


def _exchanged(pairs: "pa.Table") -> "pa.Table":
    """Return the gold pairs as (b, a)."""
    import pyarrow.compute as pc

    gold = pairs.filter(pc.equal(pairs["method"], ""))
    names = {"sentence1": "sentence2", "sentence2": "sentence1"}
    return gold.rename_columns([names.get(name, name) for name in gold.column_names])
