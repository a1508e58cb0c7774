"""Steps that keep one of several near-duplicates: alike in letters, or alike in meaning."""

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from synthbench.data.checking import batched
from synthbench.data.draws import shuffled
from synthbench.data.likeness import NEAR, bare, similarity
from synthbench.data.near_duplicates import AT_ONCE, Buckets, band_keys, num_bands
from synthbench.data.records import RECORD_TYPES, Record
from synthbench.data.text_rows import TextRows
from synthbench.plugins.contracts import Records, Step, StepContext, TrainedModel
from synthbench.preparing.vectors import unit_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODER = "encoder"
MOST_POSITIONS = 3
"""How many of a record's first sentences find candidates; all its sentences are then compared."""
ROWS, KEPT = 1024, 4096
"""Sizes of the blocks that are compared at once: ROWS records with KEPT kept records."""
ROUNDING = 1e-6
"""Tolerance of the threshold: in float32, a cosine of 1 can be slightly less."""


class _NearDuplicateStep(Step):
    """Keep one of several near-duplicate records, chosen at random by their ids and `seed`.

    Two records are near if each sentence of one is near the sentence at the same position of the other. The
    step shuffles the records, then drops each record that is near an earlier kept record. The order of
    records in the data set does not matter.
    """

    name: ClassVar[str]
    """The step's name, which seeds the shuffle together with `seed`."""

    seed: int = Field(0, description="seed of the shuffle that decides which of several near records is kept")

    @abstractmethod
    def kept_mask(
        self, records: Records, order: "NDArray[np.intp]", context: StepContext
    ) -> "NDArray[np.bool_]":
        """Return whether to keep each record, shape (records,).

        `order`: the row numbers in the shuffle's order; of two near records the earlier one is kept.
        """

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records that are near no kept record, in their original order."""
        order = shuffled(self.name, self.seed, records)
        return compress(records, self.kept_mask(records, order, context))


class DropNearDuplicates(_NearDuplicateStep):
    """Keep one of several near-duplicates, by character 5-grams, as `data inspect` counts them.

    Case, punctuation and white space are ignored. Hashes of the ids, not the order of records, decide which
    record is kept.
    """

    version = 1
    name = "drop-near-duplicates"

    threshold: float = Field(
        NEAR, ge=0.5, le=1.0, description="minimum Jaccard similarity of two near sentences' 5-grams"
    )

    def memory(self, num_records: int) -> float:
        """Return the memory in bytes, for the MinHash bands and buckets of two sentences per record."""
        return num_records * 2.0 * (512 if self.threshold >= NEAR else 1024)

    def kept_mask(
        self, records: Records, order: "NDArray[np.intp]", context: StepContext
    ) -> "NDArray[np.bool_]":
        """Return whether to keep each record; a record is dropped if one of its candidates is near.

        Each of a record's first texts has candidates: the kept records that share a bucket with the text.
        Only the candidates of the text with the fewest are compared.
        """
        import numpy as np

        stays = np.ones(len(order), bool)
        # The inverse permutation: each row's place in the order.
        texts, buckets = self._in_buckets(records, order.argsort(), context)
        in_company = np.logical_and.reduce([each.has_company() for each in buckets])
        with context.progress.task("looking for near-duplicates", int(in_company.sum())) as task:
            for place in np.flatnonzero(in_company).tolist():
                fewest = min(buckets, key=lambda each: each.number_of_candidates(place))
                known = (texts[order[other]] for other in fewest.candidates(place))
                if self._is_near_one(texts[order[place]], known):
                    stays[order[place]] = False
                else:
                    for each in buckets:
                        each.add(place)
                task.advance(1)
        return stays

    def _in_buckets(
        self, records: Records, places: "NDArray[np.intp]", context: StepContext
    ) -> tuple[TextRows, list[Buckets]]:
        """Return all texts, normalised by `bare`, and one `Buckets` for each of the first text fields.

        `places[row]` is the record's rank after the shuffle. Buckets hold these ranks.
        """
        import numpy as np

        number = min(len(RECORD_TYPES[records.kind].text_fields), MOST_POSITIONS)
        keys = [np.empty((len(places), num_bands(self.threshold)), np.uint32) for _ in range(number)]
        texts = TextRows(context.scratch() / "texts.arrow")
        start = 0
        with texts, context.progress.task("sketching sentences", len(places)) as task:
            for some in batched(records.text_rows(), AT_ONCE):
                rows = [[bare(text) for text in row] for row in some]
                texts.add(rows)
                here = places[start : start + len(rows)]
                for position, of_position in enumerate(keys):
                    of_position[here] = band_keys([row[position] for row in rows], self.threshold)
                start += len(rows)
                task.advance(len(rows))
        return texts, [Buckets(of_position) for of_position in keys]

    def _is_near_one(self, texts: Sequence[str], known: Iterable[Sequence[str]]) -> bool:
        return any(len(texts) == len(others) and all(map(self._is_near, texts, others)) for others in known)

    def _is_near(self, first: str, second: str) -> bool:
        return first == second or similarity(first, second) >= self.threshold


class SemanticDedup(_NearDuplicateStep):
    """Keep one of several records that mean nearly the same, by an encoder's cosines (SemDeDup).

    SemDeDup (Abbas et al. 2023, arXiv 2303.09540) keeps one item of each group of close embeddings. Here,
    hashes of the ids decide which record is kept.
    """

    version = 1
    name = "semantic-dedup"

    encoder: dict[str, Any] = Field(
        description="the encoder: settings of the trainer `none`, such as `base: {model: ...}`"
    )
    threshold: float = Field(0.95, gt=0.0, le=1.0, description="minimum cosine of two near sentences")

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the encoder."""
        return {ENCODER: TrainedModel("none", self.encoder, (), 0)}

    def kept_mask(
        self, records: Records, order: "NDArray[np.intp]", context: StepContext
    ) -> "NDArray[np.bool_]":
        """Return whether to keep each record, after comparing it with all kept records, in blocks."""
        import numpy as np

        stays = np.ones(len(order), bool)
        texts = sorted({text for row in records.text_rows() for text in row})
        vectors = unit_vectors(context.encoder(ENCODER), texts, context.scratch() / "vectors.f32")
        with context.progress.task("looking for near records", len(order)) as task:
            for rows, numbers in _by_length(records, texts, order):
                search = _NearRecords(vectors, numbers, self.threshold - ROUNDING)
                for start, alive in search.keep_masks():
                    stays[rows[start : start + len(alive)]] = alive
                    task.advance(len(alive))
        return stays


def _by_length(
    records: Records, texts: Sequence[str], order: "NDArray[np.intp]"
) -> "Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]":
    """Group records by their number of texts; yield each group's row numbers and its texts' indices.

    The row numbers, shape (rows,), are in the given order. The indices, shape (rows, texts), are positions in
    `texts`.
    """
    import numpy as np

    numbers = {text: number for number, text in enumerate(texts)}
    found = [array("L", map(numbers.__getitem__, row)) for row in records.text_rows()]
    lengths = np.fromiter(map(len, found), np.intp, len(found))[order]
    for length in np.unique(lengths).tolist():
        rows = order[lengths == length]
        yield rows, np.array([found[row] for row in rows.tolist()], np.intp)


class _NearRecords:
    """Finds records near an earlier kept record.

    `numbers`: the indices of each record's vectors, shape (records, texts). `least`: the minimum cosine.
    """

    def __init__(self, vectors: "NDArray[np.float32]", numbers: "NDArray[np.intp]", least: float) -> None:
        self._vectors, self._numbers, self._least = vectors, numbers, least

    def keep_masks(self) -> "Iterator[tuple[int, NDArray[np.bool_]]]":
        """Yield, for each block of records, the first record's index and a mask of the kept records."""
        import numpy as np

        kept = self._numbers[:0]
        for start in range(0, len(self._numbers), ROWS):
            some = self._numbers[start : start + ROWS]
            alive = np.ones(len(some), bool)
            for first in range(0, len(kept), KEPT):
                rest = np.flatnonzero(alive)
                alive[rest] = ~self._near(some[rest], kept[first : first + KEPT]).any(axis=1)
            near = self._near(some, some)
            for row in range(len(some)):
                if alive[row]:
                    alive[row + 1 :] &= ~near[row, row + 1 :]
            kept = np.concatenate([kept, some[alive]])
            yield start, alive

    def _near(self, first: "NDArray[np.intp]", second: "NDArray[np.intp]") -> "NDArray[np.bool_]":
        """Return, for each record of `first` and each of `second`, whether all their texts are near."""
        import numpy as np

        found = np.ones((len(first), len(second)), bool)
        for position in range(self._numbers.shape[1]):
            rows, columns = np.flatnonzero(found.any(axis=1)), np.flatnonzero(found.any(axis=0))
            one, other = first[rows, position], second[columns, position]
            cosines = self._vectors[one] @ self._vectors[other].T
            near = (cosines > np.float32(self._least)) | (one[:, None] == other)
            found[np.ix_(rows, columns)] &= near
        return found
