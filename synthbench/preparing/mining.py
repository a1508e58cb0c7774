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
from synthbench.data.checking import batched
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
NEIGHBOURS = 1_000_000
"""Neighbours of one call of the miner, at most."""
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
    a word with the anchor. The anchor itself and its own positives are no negatives. The number of missing
    negatives is recorded. Pairs become triplets, with further negatives if `number` is more than 1. In
    triplets, new negatives replace the old ones, or are added to them (`add`). A record without any new
    negative is dropped.
    """

    version = 3
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
        0,
        ge=0,
        le=1000,
        description="number of nearest texts to skip, after `max_score` and `margin`: they may mean the same",
    )
    max_score: float | None = Field(
        None,
        ge=-1.0,
        le=1.0,
        description="maximum cosine of an anchor and a negative; null: no limit",
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
        description="minimum difference between the anchor's lowest cosine with a positive and the anchor's"
        " cosine with a negative; null: no limit",
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

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the encoder, if the miner is an encoder."""
        return {} if self.encoder is None else {ENCODER: TrainedModel("none", self.encoder, (), 0)}

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield triplets, in the order of the records."""
        pairs = sorted(set(records.rows_of("anchor", "positive")))
        negatives = self._mined(pairs, context)
        num_found = 0
        for one in records:
            if mined := negatives[one.anchor]:
                num_found += 1
                yield with_negatives(one, mined, is_added=self.add)
        context.count_dropped("no negative passes", len(records) - num_found)

    def _mined(self, pairs: Sequence[tuple[str, str]], context: StepContext) -> dict[str, list[str]]:
        """Return anchor -> its negatives, nearest first; [] if it has none."""
        texts = list(dict.fromkeys(positive for _, positive in pairs))
        if len(texts) <= self.skip + 1:
            raise UserError(
                f"mine-negatives: {len(texts)} different positives leave no negative; needed: more"
                f" than {self.skip + 1}"
            )
        positives_of: dict[str, list[str]] = defaultdict(list)
        for anchor, positive in pairs:
            positives_of[anchor].append(positive)
        if self.encoder is None:
            found = self._mined_by_words(positives_of, sorted(texts))
        else:
            miner = _Miner(context.encoder(ENCODER), context.scratch(), list(positives_of), texts)
            found = self._mined_by_cosines(positives_of, texts, miner)
        lacking = sum(self.number - len(found[anchor]) for anchor, _ in pairs)
        context.measure("mine-negatives: negatives fewer than asked for", lacking)
        return found

    def _chosen(self, anchor: str, near: Iterable[str]) -> list[str]:
        """Return the negatives among an anchor's neighbours, which are none of its positives."""
        return [text for text in near if text != anchor][self.skip : self.skip + self.number]

    def _mined_by_words(
        self, positives_of: Mapping[str, Sequence[str]], texts: Sequence[str]
    ) -> dict[str, list[str]]:
        from synthbench.bm25 import nearest_by_words
        from synthbench.words.scripts import words_alone

        most_own = max(map(len, positives_of.values()))
        k = min(self.skip + self.number + most_own + 1, len(texts))
        near = nearest_by_words(texts, k, list(positives_of), words_alone)
        found: dict[str, list[str]] = {}
        for (anchor, positives), row in zip(positives_of.items(), near.indices, strict=True):
            own = set(positives)
            found[anchor] = self._chosen(anchor, (texts[index] for index in row if texts[index] not in own))
        return found

    def _mined_by_cosines(
        self, positives_of: Mapping[str, Sequence[str]], texts: Sequence[str], miner: "_Miner"
    ) -> dict[str, list[str]]:
        """Return anchor -> its negatives; anchors that lack negatives are searched further and further."""
        is_limited = self.max_score is not None or self.margin is not None
        most_own = max(map(len, positives_of.values()))
        reach = self.skip + self.number * (10 if is_limited else 1) + most_own
        found = self._searched(positives_of, texts, reach, miner)
        while is_limited and reach < len(texts):
            reach = min(10 * reach, len(texts))
            lacking = {
                anchor: own for anchor, own in positives_of.items() if len(found[anchor]) < self.number
            }
            found |= self._searched(lacking, texts, reach, miner)
        return found

    def _searched(
        self, positives_of: Mapping[str, Sequence[str]], texts: Sequence[str], reach: int, miner: "_Miner"
    ) -> dict[str, list[str]]:
        """Return anchor -> its negatives among the `reach` nearest texts besides its positives."""
        from datasets import Dataset
        from sentence_transformers.util import mine_hard_negatives

        # One more than wanted, since the anchor itself may be among them.
        wanted = self.skip + self.number + 1
        near: dict[str, dict[str, None]] = {anchor: {} for anchor in positives_of}
        for some in batched(positives_of, max(1, min(CELLS // reach, NEIGHBOURS // wanted))):
            pairs = [(anchor, positive) for anchor in some for positive in positives_of[anchor]]
            anchors, positives = zip(*pairs, strict=True)
            data = Dataset.from_dict({"anchor": list(anchors), "positive": list(positives)})
            with contextlib.redirect_stderr(io.StringIO()):
                mined = mine_hard_negatives(
                    data,
                    miner,  # type: ignore[arg-type] # all that the miner needs of a model
                    anchor_column_name="anchor",
                    positive_column_name="positive",
                    corpus=list(texts),
                    range_max=reach,
                    max_score=self.max_score,
                    absolute_margin=self.margin,
                    num_negatives=wanted,
                    sampling_strategy="top",
                    faiss_batch_size=max(1, min(AT_ONCE, CELLS // len(texts))),
                    output_format="triplet",
                    verbose=False,
                )
            for row in mined:
                near[row["anchor"]][row["negative"]] = None
        return {anchor: self._chosen(anchor, each) for anchor, each in near.items()}


class DrawNegatives(Step):
    """Replace each triplet by `number` triplets with one negative each, drawn from the triplet's negatives.

    GPL draws one of a query's mined negatives for each training example (Wang et al. 2022, section 3.2). To
    do the same, set `number` to steps times batch size, divided by the number of queries. Negatives are drawn
    without repetition; a triplet with fewer than `number` negatives gives one triplet for each. A teacher's
    scores are kept.
    """

    version = 1
    kinds = frozenset({RecordKind.TRIPLET})
    replaces_ids = True

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

    def __init__(self, encoder: Encoder, folder: Path, anchors: Sequence[str], texts: Sequence[str]) -> None:
        self._rows = {anchor: row for row, anchor in enumerate(anchors)}
        self._queries = unit_vectors(of_queries(encoder), anchors, folder / "queries.f32")
        self._passages = unit_vectors(of_passages(encoder), texts, folder / "passages.f32")

    def encode_query(self, texts: Sequence[str], **_: object) -> "NDArray[np.float32]":
        """Return unit vectors of some anchors, shape (texts, dimension)."""
        return self._queries[[self._rows[text] for text in texts]]

    def encode_document(self, texts: Sequence[str], **_: object) -> "NDArray[np.float32]":
        """Return unit vectors of the passages, shape (texts, dimension); `texts` are all of them."""
        return self._passages

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
    """Return the record as a triplet with these negatives; with `is_added`, they follow its old negatives."""
    own = record.negatives if is_added and isinstance(record, Triplet) else ()
    # A teacher's scores belong to the former negatives; triplets have no likelihood.
    replaced = ("negative", "further_negatives", "scores", "likelihood")
    names = [each.name for each in fields(record) if each.name not in replaced]
    shared = {name: getattr(record, name) for name in names}
    first, *further = dict.fromkeys((*own, *negatives))
    return Triplet(**shared, negative=first, further_negatives=tuple(further))
