"""Steps that search texts one by one, so that several processes may share the search."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from synthbench.data.records import Record
from synthbench.plugins import Step, StepContext


class SearchContext(StepContext, Protocol):
    """What such a step may use."""

    def found(self, step: "SearchingStep", texts: Sequence[str]) -> Mapping[str, AbstractSet[str]]:
        """Return what `step.find` finds in the texts; other processes may have looked already."""


class SearchingStep(Step):
    """A step that looks for texts; `apply` asks `found` for them."""

    def can_be_sharded(self) -> bool:
        """Tell whether several processes may share the search with these settings."""
        return True

    @abstractmethod
    def find(self, texts: Sequence[str], context: StepContext) -> Mapping[str, AbstractSet[str]]:
        """Return which of the distinct texts the step looks for, by reason.

        Whether a text is among them must depend on the text and the sources alone, not on other texts.
        """

    def found(self, records: Iterable[Record], context: StepContext) -> Mapping[str, AbstractSet[str]]:
        """Return which sentences of the records the step looks for, by reason."""
        return cast("SearchContext", context).found(self, distinct_texts(records))


def distinct_texts(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the distinct sentences of records, in order."""
    return tuple(dict.fromkeys(text for record in records for text in record.texts()))
