"""The step that mines hard negatives."""

import contextlib
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.data.draws import digest
from synthbench.data.records import Pair, Record, RecordKind, Triplet
from synthbench.models.interfaces import Encoder, of_passages, of_queries
from synthbench.plugins.contracts import Records, Step, StepContext, TrainedModel
from synthbench.preparing.vectors import unit_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

ENCODER = "encoder"
AT_ONCE, CELLS = 1024, 32_000_000
"""Anchors searched at once: at most AT_ONCE, and at most CELLS cosines with all positives."""
ROWS = 16_384
"""Vectors read from the disk at once."""


class TripletStep(Step):
    """A step that turns pairs into triplets, or changes triplets' texts and drops their teacher's scores."""

    kinds = frozenset({RecordKind.PAIR, RecordKind.TRIPLET})
    scores_triplets = False

    def kind_after(self, kind: RecordKind) -> RecordKind:
        """Return the kind of the resulting records: triplets."""
        return RecordKind.TRIPLET

    def bases_apart(self) -> tuple[Mapping[str, Any], ...]:
        """Return the searching encoder's base, if there is one; it must not be the model under test."""
        base = (getattr(self, ENCODER, None) or {}).get("base")
        return (base,) if isinstance(base, Mapping) else ()


class MineNegatives(TripletStep):
    """Add hard negatives to each pair: other records' positives that a miner finds near the pair's anchor.

    The miner is an encoder, with sentence-transformers' search, or BM25. BM25 finds only negatives that share
    a word with the anchor; the number of missing negatives is recorded. Pairs become triplets, with further
    negatives if `number` is more than 1. In triplets, new negatives replace the old ones, or are added to
    them (`add`). A record without any new negative is dropped.
    """

    version = 2
    reads_queries = True

    encoder: dict[str, Any] | None = Field(
        None,
        description="the miner's encoder: settings of the trainer `none`, such as `base: {model: ...}`; "
        "not the model under test; null: only with `miner: bm25`",
    )
    miner: Literal["encoder", "bm25"] = added_field(
        "encoder",
        description="the miner: encoder, or bm25 on words without punctuation",
    )
    number: int = Field(1, ge=1, le=64, description="maximum number of negatives per record")
    skip: int = Field(
        0, ge=0, le=1000, description="number of nearest texts to skip: they may mean the same as the anchor"
    )
    max_score: float | None = Field(
        None, ge=-1.0, le=1.0, description="maximum cosine of an anchor and a negative; null: no limit"
    )
    add: bool = added_field(
        False,
        description="for triplets: true adds the new negatives to the triplet's old ones, such as another "
        "miner's; false replaces the old ones",
    )
    margin: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="minimum of the anchor's cosine with the positive minus its cosine with a negative; "
        "null: no limit",
    )

    @model_validator(mode="after")
    def _check_miner_options(self) -> Self:
        if self.miner == "encoder":
            if self.encoder is None:
                raise ValueError("needs `encoder`, such as {base: {model: ...}}, or `miner: bm25`")
            return self
        of_cosines = {"max_score": self.max_score, "margin": self.margin}
        for name, value in {"encoder": self.encoder, **of_cosines}.items():
            if value is not None:
                raise ValueError(f"miner: bm25 takes no `{name}`; leave it out")
        return self

    def version_in_use(self) -> int:
        """Return 2 for BM25, since its splitting into words has changed, and 1 for encoders."""
        return self.version if self.miner == "bm25" else 1

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the encoder, if the miner is an encoder."""
        return {} if self.encoder is None else {ENCODER: TrainedModel("none", self.encoder, (), 0)}

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield triplets, in the order of the records."""
        pairs = sorted(set(records.rows_of("anchor", "positive")))
        negatives = self._mined(pairs, context)
        num_found = 0
        for one in records:
            if (one.anchor, one.positive) in negatives:
                num_found += 1
                yield with_negatives(one, negatives[one.anchor, one.positive], is_added=self.add)
        context.count_dropped("no negative passes", len(records) - num_found)

    def _mined(
        self, pairs: Sequence[tuple[str, str]], context: StepContext
    ) -> dict[tuple[str, str], list[str]]:
        """Return pair -> its negatives, nearest first; pairs without a negative are left out."""
        num_positives = len({positive for _, positive in pairs})
        if num_positives <= self.skip + 1:
            raise UserError(
                f"mine-negatives: {num_positives} different positives leave no negative; needed: more"
                f" than {self.skip + 1}"
            )
        if self.encoder is None:
            found = self._mined_by_words(pairs)
            lacking = sum(self.number - len(found.get(pair, ())) for pair in pairs)
            context.measure("mine-negatives: negatives fewer than asked for", lacking)
            return found
        return self._mined_by_cosines(
            pairs, num_positives, _Miner(context.encoder(ENCODER), context.scratch())
        )

    def _mined_by_words(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
        from synthbench.bm25 import nearest_by_words
        from synthbench.words.scripts import words_alone

        positives_of: dict[str, set[str]] = defaultdict(set)
        for anchor, positive in pairs:
            positives_of[anchor].add(positive)
        anchors, texts = list(positives_of), sorted({positive for _, positive in pairs})
        most_own = max(map(len, positives_of.values()))
        k = min(self.number + self.skip + most_own, len(texts))
        near = nearest_by_words(texts, k, anchors, words_alone)
        found: dict[tuple[str, str], list[str]] = {}
        for anchor, row in zip(anchors, near.indices, strict=True):
            others = [texts[index] for index in row if texts[index] not in positives_of[anchor]]
            chosen = others[self.skip : self.skip + self.number]
            found.update(((anchor, positive), chosen) for positive in positives_of[anchor] if chosen)
        return found

    def _mined_by_cosines(
        self, pairs: Sequence[tuple[str, str]], num_positives: int, miner: "_Miner"
    ) -> dict[tuple[str, str], list[str]]:
        from datasets import Dataset
        from sentence_transformers.util import mine_hard_negatives

        anchors, positives = zip(*pairs, strict=True)
        data = Dataset.from_dict({"anchor": list(anchors), "positive": list(positives)})
        with contextlib.redirect_stderr(io.StringIO()):
            mined = mine_hard_negatives(
                data,
                miner,  # type: ignore[arg-type] # all that the miner needs of a model
                anchor_column_name="anchor",
                positive_column_name="positive",
                range_min=self.skip,
                max_score=self.max_score,
                absolute_margin=self.margin,
                num_negatives=min(self.number, num_positives - self.skip - 1),
                sampling_strategy="top",
                faiss_batch_size=max(1, min(AT_ONCE, CELLS // num_positives)),
                output_format="triplet",
                verbose=False,
            )
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for row in mined:
            found[row["anchor"], row["positive"]].append(row["negative"])
        return dict(found)


class DrawNegatives(Step):
    """Replace each triplet by `number` triplets with one negative each, drawn from the triplet's negatives.

    GPL draws one of a query's mined negatives for each training example (Wang et al. 2022, section 3.2). To
    do the same, set `number` to steps times batch size, divided by the number of queries. Negatives are drawn
    without repetition; a triplet with fewer than `number` negatives gives one triplet for each. A teacher's
    scores are kept.
    """

    version = 1
    kinds = frozenset({RecordKind.TRIPLET})

    number: int = Field(
        1, ge=1, le=1000, description="number of new triplets per triplet, at most one per negative"
    )
    seed: int = Field(0, description="seed of the draw")

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the new triplets; the one with id "ID/negativeN" has the N-th negative of triplet ID."""
        return (drawn for record in records if isinstance(record, Triplet) for drawn in self._drawn(record))

    def expected(self, num_records: int) -> int:
        """Return an upper bound: `number` triplets for each record."""
        return num_records * self.number

    def remark(self, before: Records, after: Records) -> str:
        """Return a remark on how many triplets are missing for lack of negatives; "" if none."""
        num_lacking = self.number * len(before) - len(after)
        return f"{num_lacking} fewer than wanted, for lack of negatives" if num_lacking else ""

    def _drawn(self, record: Triplet) -> Sequence[Triplet]:
        ranked = sorted(
            range(len(record.negatives)),
            key=lambda index: digest("draw-negatives", self.seed, record.id, index),
        )
        return [
            replace(
                record,
                id=f"{record.id}/negative{index + 1}",
                negative=record.negatives[index],
                further_negatives=(),
                scores=(record.scores[0], record.scores[index + 1]) if record.scores else (),
            )
            for index in ranked[: self.number]
        ]


class _Miner:
    """Gives an encoder the interface that sentence-transformers' miner expects: unit vectors and cosines."""

    device = "cpu"
    prompts: Mapping[str, str] = MappingProxyType({})

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder, self._folder = encoder, folder

    def encode_query(self, texts: Sequence[str], **_: object) -> "NDArray[np.float32]":
        """Return unit vectors of queries, shape (texts, dimension)."""
        return unit_vectors(of_queries(self._encoder), texts, self._folder / "queries.f32")

    def encode_document(self, texts: Sequence[str], **_: object) -> "NDArray[np.float32]":
        """Return unit vectors of passages, shape (texts, dimension)."""
        return unit_vectors(of_passages(self._encoder), texts, self._folder / "passages.f32")

    def similarity(self, first: Any, second: Any) -> "Tensor":  # noqa: ANN401 - arrays or tensors
        """Return the cosines of all pairs, shape (first, second); `second` is read in blocks."""
        import torch
        from sentence_transformers.util import cos_sim

        parts = [cos_sim(first, second[start : start + ROWS]) for start in range(0, len(second), ROWS)]
        return torch.cat(parts, dim=1)

    def similarity_pairwise(self, first: Any, second: Any) -> "Tensor":  # noqa: ANN401 - arrays or tensors
        """Return the cosine of each row of `first` with the same row of `second`, shape (rows,)."""
        import torch
        from sentence_transformers.util import pairwise_cos_sim

        starts = range(0, len(second), ROWS)
        return torch.cat([pairwise_cos_sim(first[at : at + ROWS], second[at : at + ROWS]) for at in starts])


def with_negatives(record: Pair | Triplet, negatives: Sequence[str], *, is_added: bool) -> Triplet:
    """Return the record as a triplet with these negatives; with `is_added`, its old ones stay in front."""
    own = record.negatives if is_added and isinstance(record, Triplet) else ()
    # A teacher's scores belong to the former negatives; triplets have no likelihood.
    replaced = ("negative", "further_negatives", "scores", "likelihood")
    names = [each.name for each in fields(record) if each.name not in replaced]
    shared = {name: getattr(record, name) for name in names}
    first, *further = dict.fromkeys((*own, *negatives))
    return Triplet(**shared, negative=first, further_negatives=tuple(further))
