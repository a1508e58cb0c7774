"""A step that drops what stands in other data, such as test sets."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr

from synthbench.data.contamination.index import Check, TestIndex
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.preparing.step import Step
from synthbench.data.records import Record

PAIR = "pair"


class DropOverlap(Step):
    """Drop records that have a sentence, or a pair, in common with other sources, such as the test sets.

    Trained with it and without, a row shows what the overlap is worth (docs/data_quality.md).
    """

    version = 2

    step: Literal["drop-overlap"] = "drop-overlap"
    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="sources that the data may have nothing in common with; of `if_found` tasks those whose"
        " data are there"
    )
    by: Literal["exact", "normalised", "13-gram", "near-duplicate", "pair"] = Field(
        "normalised",
        description="how a sentence is recognised, as in `data contamination`; pair: the first sentence with"
        " another one of the record, normalised, in either order",
    )

    _index: TestIndex | None = PrivateAttr(None)

    def others(self) -> tuple[str, ...]:
        """Return the sources that it compares with."""
        return self.sources

    def with_others(self, others: Mapping[str, SyntheticDataset]) -> Self:
        """Return the step with the sentences that it looks for."""
        bound = self.model_copy()
        rows = {name: others[name].text_rows() for name in self.sources if name in others}
        checks = () if self.by == PAIR else (Check(self.by),)
        bound._index = TestIndex(rows, checks=checks)
        return bound

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that have nothing in common with the sources."""
        assert self._index is not None
        if self.by == PAIR:
            return [record for record in records if not self._index.has_pair(record.texts())]
        texts = list(dict.fromkeys(text for record in records for text in record.texts()))
        finder = self._index.finders[Check(self.by)]
        known = {text for text, found in zip(texts, finder.find(texts), strict=True) if found}
        return [record for record in records if known.isdisjoint(record.texts())]
