"""Objectives: a loss and the kind of record that it learns from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.data.conversions import Thresholds, convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.draws import digest
from synthbench.data.records import RECORD_TYPES, RecordKind
from synthbench.models.work import weighted_size
from synthbench.training.settings import NUM_NEGATIVES, OF_RECORD, RECORD_TEMPERATURE
from synthbench.training.teaching import SCORES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from torch import nn

    from synthbench.training.teaching import TrainingRecords


@dataclass(frozen=True)
class Objective:
    """A training objective: `loss` builds the loss of a model; the loss reads the fields of `record_kind`."""

    record_kind: RecordKind
    loss: "Callable[[Any], nn.Module]"
    takes_several: bool = False
    """Whether triplets may have several negatives, or rankings lists of different lengths."""
    if_unscored: str = ""
    """The error message for triplets without scores, with the slot {missing}; "" if the loss needs none."""


def _cosine_similarity_loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    return CosineSimilarityLoss(model)


def _binary_cross_entropy_loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a CrossEncoder
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    return BinaryCrossEntropyLoss(model)


def contrastive(
    kind: RecordKind,
    temperature: float,
    hard_negative_weight: float = 0.0,
    chunk_size: int | None = None,
    mlm_weight: float = 0.0,
    records: "TrainingRecords | None" = None,
) -> Objective:
    """Return SimCSE's objective for records of this kind, with cached gradients if `chunk_size` is given.

    With an `mlm_weight` the model must end in a `WordHead`. `records`: the data on each record
    besides its texts, such as its temperature.
    """

    def loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a SentenceTransformer
        from synthbench.training.losses import CachedContrastiveLoss, ContrastiveLoss, LossWithMasking

        contrast = (
            ContrastiveLoss(model, temperature, hard_negative_weight, records)
            if chunk_size is None
            else CachedContrastiveLoss(model, temperature, hard_negative_weight, chunk_size, records)
        )
        return LossWithMasking(contrast, model[-1], mlm_weight, chunk_size) if mlm_weight else contrast

    return Objective(kind, loss, takes_several=kind is RecordKind.TRIPLET)


SOFT_LABELS_UNSCORED = "soft_labels: {missing}; let the step `score-triplets` give them"

COSINE_SIMILARITY = Objective(RecordKind.SCORED_PAIR, _cosine_similarity_loss)
"""Mean squared difference of cosine and score (Reimers & Gurevych 2019, section 3)."""

BINARY_CROSS_ENTROPY = Objective(RecordKind.SCORED_PAIR, _binary_cross_entropy_loss)
"""Binary cross-entropy of the sigmoid of the logit with the score (Thakur et al. 2021, section 4)."""


def training_table(
    data: Sequence[SyntheticDataset],
    objective: "Objective",
    positives_from: float = Thresholds.high,
    *,
    both_orders: bool = False,
    weights: Sequence[float] = (),
    temperatures: Sequence[float] = (),
) -> "pa.Table":
    """Return the records with split "train" of all data sets, in order, with the columns of the objective.

    Other record kinds are converted; scored pairs of at least `positives_from` become positives. With
    `both_orders`, scored pairs not made by a method are repeated at the end with their sentences exchanged.
    Each data set's records are taken `weights` times; 1.5: all once, and half of them again, drawn by ids.
    With `temperatures` (one per data set), or if a record has several negatives, columns are added for the
    second and later negatives, the number of negatives, and the temperature (NaN: none). Another column has
    the teacher's scores if the objective uses them. Rankings become a query, their candidates (a column each,
    or one column of lists) and, as labels, their grades. Raises UserError if data can't be converted, if no
    record has split "train", if a triplet lacks needed scores, or if the loss can't take the rankings.
    """
    import pyarrow as pa

    kind = objective.record_kind
    parts = [_train_part(convert(dataset, kind, high=positives_from)) for dataset in data]
    if weights:
        parts = [_times(part, weight) for part, weight in zip(parts, weights, strict=True)]
    num_records = sum(part.num_rows for part in parts)
    if num_records == 0:
        total = sum(dataset.manifest.num_records for dataset in data)
        raise UserError(f"nothing to train on: of {total} records in the data, none has split 'train'")
    if kind == RecordKind.RANKING:
        return _lists(parts, of_any_length=objective.takes_several)
    if both_orders:
        parts += [_exchanged(part) for part in parts]
    columns = RECORD_TYPES[kind].own_fields()
    if objective.if_unscored:
        _check_scores(parts, objective.if_unscored)
        columns = (*columns, SCORES)
    num_negatives = max(map(_num_negatives, parts)) if objective.takes_several else 1
    if num_negatives > 1 or temperatures:
        of_parts = temperatures or [math.nan] * len(parts)
        return pa.concat_tables(
            _with_facts(part, columns, num_negatives, temperature)
            for part, temperature in zip(parts, of_parts, strict=True)
        )
    return pa.concat_tables(part.select(list(columns)) for part in parts)


FURTHER, QUERIES, LEAST_CANDIDATES = "further_negatives", "further_queries", 2


def _check_scores(parts: Sequence["pa.Table"], complaint: str) -> None:
    """Raise UserError if triplets lack scores."""
    num_without = sum(
        part.num_rows
        if SCORES not in part.column_names
        else sum(not scores for scores in part[SCORES].to_pylist())
        for part in parts
    )
    if num_without:
        num_records = sum(part.num_rows for part in parts)
        missing = f"{num_without} of {num_records} triplets have no scores of a teacher"
        raise UserError(complaint.format(missing=missing))


def _lists(parts: Sequence["pa.Table"], *, of_any_length: bool) -> "pa.Table":
    """Return a table of each query, its candidates (highest grade first) and, as labels, their grades.

    The candidates have a column each, or, if lists may be `of_any_length`, one column of lists. Raises
    UserError if a ranking has further queries or fewer than two candidates, or if lists differ in length and
    `of_any_length` is false.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    queries = [part[QUERIES] for part in parts if QUERIES in part.column_names]
    if any(pc.sum(pc.list_value_length(each)).as_py() for each in queries):
        raise UserError("rankings: training takes one query of each, and some have `further_queries`")
    rankings = pa.concat_tables(
        part.select(["query", "candidates", "grades"]) for part in parts
    ).combine_chunks()
    sizes = sorted(pc.unique(pc.list_value_length(rankings["candidates"])).to_pylist())
    size = sizes[0]
    if (len(sizes) > 1 and not of_any_length) or size < LEAST_CANDIDATES:
        least = f"at least {LEAST_CANDIDATES}"
        wanted = f"{least} candidates" if of_any_length else f"the same number of candidates, {least}"
        found = f"{size} to {sizes[-1]}" if len(sizes) > 1 else size
        raise UserError(f"rankings: every query needs {wanted}; these have {found}")
    lists, grades = rankings["candidates"].combine_chunks(), pc.list_flatten(rankings["grades"]).to_numpy()
    # The last key is the first: by list, then by falling grade; equal grades keep their order.
    order = np.lexsort((-grades, pc.list_parent_indices(lists).to_numpy()))
    texts = pc.list_flatten(lists).take(pa.array(order))
    starts = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    columns = {"query": rankings["query"]}
    if of_any_length:
        columns["candidates"] = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), texts)
    else:
        for place in range(size):
            columns[f"candidate{place + 1}"] = texts.take(pa.array(starts[:-1] + place))
    ranked = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(grades[order], pa.float32()))
    return pa.table({**columns, OF_RECORD: ranked})


def _num_negatives(part: "pa.Table") -> int:
    """Return the largest number of negatives of any record; 1 without records."""
    import pyarrow.compute as pc

    if FURTHER not in part.column_names or not part.num_rows:
        return 1
    return 1 + (pc.max(pc.list_value_length(part[FURTHER])).as_py() or 0)


def _with_facts(part: "pa.Table", names: Sequence[str], num_negatives: int, temperature: float) -> "pa.Table":
    """Return the columns `names`, further negatives ("" if missing), number of negatives, temperature."""
    import pyarrow as pa

    rows = part[FURTHER].to_pylist() if FURTHER in part.column_names else [()] * part.num_rows
    further = [list(row or ()) for row in rows]
    columns = {name: part[name] for name in names}
    for number in range(num_negatives - 1):
        texts = [row[number] if number < len(row) else "" for row in further]
        columns[f"negative{number + 2}"] = pa.array(texts, pa.string())
    columns[NUM_NEGATIVES] = pa.array([1 + len(row) for row in further], pa.int64())
    columns[RECORD_TEMPERATURE] = pa.array([temperature] * part.num_rows, pa.float32())
    return pa.table(columns)


def _train_part(dataset: SyntheticDataset) -> "pa.Table":
    import pyarrow.compute as pc

    return dataset.table.filter(pc.equal(dataset.table["split"], "train"))


def _times(part: "pa.Table", weight: float) -> "pa.Table":
    """Return the records `weight` times over; a fraction adds a part of them, drawn by their ids."""
    ids = part["id"].to_pylist()
    whole = list(range(len(ids))) * int(weight)
    ranked = sorted(range(len(ids)), key=lambda row: digest("weight", ids[row]))
    drawn = sorted(ranked[: weighted_size(len(ids), weight) - len(whole)])
    return part.take([*whole, *drawn])


def _exchanged(pairs: "pa.Table") -> "pa.Table":
    """Return the pairs not made by a method, with exchanged sentences."""
    import pyarrow.compute as pc

    gold = pairs.filter(pc.equal(pairs["method"], ""))
    names = {"sentence1": "sentence2", "sentence2": "sentence1"}
    return gold.rename_columns([names.get(name, name) for name in gold.column_names])
