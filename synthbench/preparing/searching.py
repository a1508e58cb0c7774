"""Steps that search texts one by one, so that several processes can share the search."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from synthbench.data.checking import RECORDS_AT_ONCE, batched
from synthbench.data.records import Record
from synthbench.plugins.contracts import Records, Step, StepContext

Find = Callable[[Sequence[str]], Mapping[str, AbstractSet[str]]]
"""Returns, by reason, which of some distinct texts the step searches for."""


class SearchContext(StepContext, Protocol):
    """The search interface of a step's context."""

    def finder(self, step: "SearchingStep") -> Find:
        """Return a function with the results of `step.finder`, which other processes may have computed."""


class SearchingStep(Step):
    """A step that searches for texts; its `apply` calls `searched`."""

    def can_be_sharded(self) -> bool:
        """Return whether several processes may share the search with these settings."""
        return True

    @abstractmethod
    def finder(self, context: StepContext) -> Find:
        """Return a function that finds the texts that the step searches for.

        The result for a text must depend only on the text and the sources, not on other texts.
        """

    def searched(
        self, records: Records, context: StepContext
    ) -> Iterator[tuple[Sequence[Record], Mapping[str, AbstractSet[str]]]]:
        """Yield records in blocks, with those of their sentences that were found, by reason."""
        find = cast("SearchContext", context).finder(self)
        with context.progress.task("searching sentences", len(records)) as task:
            for some in batched(records, RECORDS_AT_ONCE):
                yield some, find(distinct_texts(record.texts() for record in some))
                task.advance(len(some))


def distinct_texts(rows: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the distinct sentences of rows, in order."""
    return tuple(dict.fromkeys(text for row in rows for text in row))
