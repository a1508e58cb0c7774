"""Steps that draw records at random. A draw depends on ids and a seed, not on the order of records."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.data.draws import digest, rounded, shuffled
from synthbench.data.records import Record, RecordKind
from synthbench.plugins.contracts import Records, Step, StepContext

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE, KEEP_PER_GROUP, SPLIT = "sample", "keep-per-group", "split"
"""Names that seed the draws, so that with one seed a sample and a split choose different records."""


class Sample(Step):
    """Keep a random sample: `size` records or a `fraction` of them.

    The draw depends only on the records' ids and the seed, not on their order. With one seed, a larger sample
    contains every smaller one.
    """

    version = 1

    size: int | None = Field(None, ge=1, description="number of records to keep; set this or `fraction`")
    fraction: float | None = Field(None, gt=0.0, le=1.0, description="share of the records to keep")
    seed: int = Field(0, description="seed of the draw")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.size is None) == (self.fraction is None):
            raise ValueError("give either size or fraction")
        return self

    def expected(self, num_records: int) -> int:
        """Return the number of records in the sample."""
        return self.size if self.size is not None else rounded(num_records * (self.fraction or 0.0))

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the sample in the records' original order.

        Raises UserError if there are fewer records than `size`, or if `fraction` keeps none of them.
        """
        size = self.expected(len(records))
        check_amount(SAMPLE, size, self.fraction, len(records))
        return _chosen(records, shuffled(SAMPLE, self.seed, records)[:size])


class KeepPerGroup(Step):
    """Keep at most `most` records of each group with the same values in some columns, drawn at random."""

    version = 1

    columns: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="columns whose values define a group: sentence1, label, source_id ..."
    )
    most: int = Field(ge=1, description="maximum number of records per group")
    seed: int = Field(0, description="seed of the draw")

    def columns_used(self) -> tuple[str, ...]:
        """Return the columns that define a group."""
        return self.columns

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the chosen records in their original order."""
        import numpy as np

        groups: dict[Hashable, int] = {}
        numbers = np.fromiter(
            (groups.setdefault(values, len(groups)) for values in records.rows_of(*self.columns)),
            np.intp,
            len(records),
        )
        order = shuffled(KEEP_PER_GROUP, self.seed, records)
        return _chosen(records, _first_of_groups(numbers, order, self.most))


class Split(Step):
    """Move a random part of the train records to the split "dev".

    Dev gets the share `dev` of the train records, rounded to a whole number. The draw is stratified: dev and
    train have nearly the same distribution of scores (or of labels, without scores). With `grouped_by`,
    records with the same value in this column stay in one split; then dev is not stratified, and can be
    smaller.
    """

    version = 1

    dev: float = Field(gt=0.0, lt=1.0, description="share of the train records to move to dev")
    seed: int = Field(0, description="seed of the draw")
    grouped_by: str | None = Field(
        None,
        description="column; records with the same value in it stay in one split: sentence1, source_id ...",
    )

    def columns_used(self) -> tuple[str, ...]:
        """Return the grouping column, if one is set."""
        return (self.grouped_by,) if self.grouped_by else ()

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield all records; raises UserError if a dev split exists, or if dev or train would be empty."""
        splits = Counter(split for (split,) in records.rows_of("split"))
        if splits["dev"]:
            raise UserError("split: the data set has a dev split already")
        num_train = splits["train"]
        num_dev = rounded(num_train * self.dev)
        is_dev = self._of_groups(records, num_dev) if self.grouped_by else self._stratified(records, num_dev)
        if is_dev.sum() in (0, num_train):
            raise UserError(
                f"split: a dev part of {self.dev} leaves train or dev empty ({num_train} train records)"
            )
        rows = zip(records, is_dev, strict=True)
        return (replace(record, split="dev") if chosen else record for record, chosen in rows)

    def remark(self, before: Records, after: Records) -> str:
        """Return the size of dev and how it was drawn."""
        how = (
            f"grouped by {self.grouped_by}, not stratified" if self.grouped_by else "stratified, not grouped"
        )
        return f"{sum(split == 'dev' for (split,) in after.rows_of('split'))} of them dev, {how}"

    def _stratified(self, records: Records, num_dev: int) -> "NDArray[np.bool_]":
        """Return which records to move to dev, shape (records,).

        The train records are sorted by score and label, and cut into `num_dev` blocks; one record of each
        block is moved.
        """
        import numpy as np

        is_scored = records.kind == RecordKind.SCORED_PAIR
        is_train = (split == "train" for (split,) in records.rows_of("split"))
        train = np.flatnonzero(np.fromiter(is_train, bool, len(records)))
        # The inverse permutation: each row's place in the shuffle.
        places = shuffled(SPLIT, self.seed, records).argsort()[train]
        codes: dict[str, int] = {}
        labels = [codes.setdefault(label, len(codes)) for (label,) in records.rows_of("label")]
        ranks = {codes[label]: rank for rank, label in enumerate(sorted(codes))}
        of_labels = np.array([ranks[code] for code in labels], np.intp)[train]
        scores = np.array(records.column("score") if is_scored else [0.0] * len(records))[train]
        ordered = np.lexsort((places, of_labels, scores))
        is_dev = np.zeros(len(records), bool)
        ends = [len(ordered) * block // max(num_dev, 1) for block in range(num_dev + 1)]
        for start, end in pairwise(ends):
            block = ordered[start:end]
            is_dev[train[block[places[block].argmin()]]] = True
        return is_dev

    def _of_groups(self, records: Records, num_dev: int) -> "NDArray[np.bool_]":
        """Return which records to move to dev, shape (records,).

        Whole groups of train records are moved, in random order. A group with which dev would exceed
        `num_dev` records is skipped.
        """
        import numpy as np

        name = str(self.grouped_by)
        sizes = Counter(value for value, split in records.rows_of(name, "split") if split == "train")
        chosen: set[str] = set()
        number = 0
        for value in sorted(sizes, key=lambda value: digest(SPLIT, self.seed, value)):
            if number + sizes[value] <= num_dev:
                chosen.add(value)
                number += sizes[value]
        rows = records.rows_of(name, "split")
        return np.array([split == "train" and value in chosen for value, split in rows], bool)


def check_amount(step: str, size: int, fraction: float | None, num_records: int) -> None:
    """Raise UserError if there are fewer records than `size`, or if `fraction` keeps none of them."""
    if not size and num_records:
        raise UserError(f"{step}: a fraction of {fraction} of {num_records} records keeps none")
    if size > num_records:
        raise UserError(f"{step}: size {size}, but there are only {num_records} records")


def _chosen(records: Records, rows: "NDArray[np.intp]") -> Iterable[Record]:
    """Return the records with these row numbers, in their original order."""
    import numpy as np

    is_chosen = np.zeros(len(records), bool)
    is_chosen[rows] = True
    return compress(records, is_chosen)


def _first_of_groups(numbers: "NDArray[np.intp]", order: "NDArray[np.intp]", most: int) -> "NDArray[np.intp]":
    """Return the first `most` rows of each group in the given `order`; `numbers` has each row's group."""
    import numpy as np

    by_group = order[np.argsort(numbers[order], kind="stable")]
    sizes = np.bincount(numbers)
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found: NDArray[np.intp] = by_group[within < most]
    return found
