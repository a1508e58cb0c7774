"""The personas that step 1 chooses from: those nearest to each passage, or drawn ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from synthbench.api import Encoder, drawn, greatest, of_passages, of_queries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AT_ONCE, CELLS = 256, 32_000_000
"""Passages compared at once: at most AT_ONCE, and at most CELLS cosines; in all shards the same ones."""
DECIMALS = 6
"""Further decimals are noise in single precision, and would order equal cosines at random."""


def nearest_personas(
    passages: Sequence[str], personas: Sequence[str], number: int, encoder: Encoder
) -> Iterator[tuple[str, ...]]:
    """Yield each passage's personas by the cosine, nearest first; ties go to the earlier persona.

    There are `number`, fewer if there are fewer personas. The passage is the query of the search.
    """
    import numpy as np

    number = min(number, len(personas))
    of_personas = _directions(of_passages(encoder).encode(personas))
    at_once = max(1, min(AT_ONCE, CELLS // len(personas)))
    for start in range(0, len(passages), at_once):
        vectors = _directions(of_queries(encoder).encode(passages[start : start + at_once]))
        indices, _ = greatest(np.round(vectors @ of_personas.T, DECIMALS), number)
        for row in indices.tolist():
            yield tuple(personas[index] for index in row)


def drawn_personas(
    ids: Sequence[str], personas: Sequence[str], number: int, seed: int
) -> Iterator[tuple[str, ...]]:
    """Yield `number` random personas for each passage, which depend on the seed and the passage's id."""
    return (drawn(personas, number, seed, identity, "personas") for identity in ids)


def _directions(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the vectors scaled to length 1; a zero vector stays zero, with cosine 0 to all."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, 1, norms), np.float32)
