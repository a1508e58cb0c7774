"""Steps that search texts one by one, so that several processes may share the search."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from synthbench.data.checking import RECORDS_AT_ONCE, batched
from synthbench.data.records import Record
from synthbench.plugins.contracts import Records, Step, StepContext

Find = Callable[[Sequence[str]], Mapping[str, AbstractSet[str]]]
"""Returns which of some distinct texts are looked for, by reason."""


class SearchContext(StepContext, Protocol):
    """What such a step may use."""

    def finder(self, step: "SearchingStep") -> Find:
        """Return what finds what `step.finder` does; other processes may have looked already."""


class SearchingStep(Step):
    """A step that looks for texts; `apply` asks `searched` for them."""

    def can_be_sharded(self) -> bool:
        """Tell whether several processes may share the search with these settings."""
        return True

    @abstractmethod
    def finder(self, context: StepContext) -> Find:
        """Return what finds the texts that the step looks for.

        Whether a text is among them must depend on the text and the sources alone, not on other texts.
        """

    def searched(
        self, records: Records, context: StepContext
    ) -> Iterator[tuple[Sequence[Record], Mapping[str, AbstractSet[str]]]]:
        """Yield some records at a time, and which of their sentences the step looks for, by reason."""
        find = cast("SearchContext", context).finder(self)
        with context.progress.task("searching sentences", len(records)) as task:
            for some in batched(records, RECORDS_AT_ONCE):
                yield some, find(distinct_texts(record.texts() for record in some))
                task.advance(len(some))


def distinct_texts(rows: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the distinct sentences of rows, in order."""
    return tuple(dict.fromkeys(text for row in rows for text in row))
