"""Content keys of test items: equal items have equal keys, whatever their file, format and order."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from synthbench.data.checking import fingerprint
from synthbench.data.item_texts import Graded, relevant_passages
from synthbench.data.likeness import bare
from synthbench.data.records import RecordKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synthbench.data.dataset import SyntheticDataset

SEPARATOR = "\x1f"
DECIMALS = 4
"""Gold scores are compared after rounding to this many places; file formats differ in further ones."""


def item_keys(items: "SyntheticDataset") -> "NDArray[np.uint64]":
    """Return the sorted 64-bit hashes of the distinct items.

    An item is its texts with their gold score, grades or label. Case, punctuation, white space, ids, subsets
    and the order of a scored pair's sentences do not count. An item of a retrieval set is a query with its
    relevant passages and their grades.
    """
    import numpy as np

    found = {fingerprint(SEPARATOR.join(parts)) for parts in _parts(items)}
    return np.sort(np.fromiter(found, np.uint64, len(found)))


def _parts(items: "SyntheticDataset") -> Iterator[Iterable[str]]:
    """Yield each item's normalised texts with its gold score, grades or label."""
    match items.kind:
        case RecordKind.SCORED_PAIR:
            for first, second, score in items.rows_of("sentence1", "sentence2", "score"):
                yield (*sorted((bare(first), bare(second))), _gold(score))
        case RecordKind.RANKING:
            for record in items:
                yield (
                    *map(bare, record.queries),
                    *_graded(zip(record.candidates, record.grades, strict=True)),
                )
        case RecordKind.RETRIEVAL:
            for text, relevant in relevant_passages(items).values():
                yield (bare(text), *_graded(relevant))
        case _:
            for record in items:
                yield (*map(bare, record.texts()), record.label)


def _graded(texts: Iterable[Graded]) -> list[str]:
    """Return texts with their grades, in an order that does not depend on the file."""
    return sorted(f"{bare(text)}{SEPARATOR}{_gold(grade)}" for text, grade in texts)


def _gold(value: Any) -> str:  # noqa: ANN401 - a number of a table
    return f"{value:.{DECIMALS}f}"
