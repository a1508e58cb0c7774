"""The personas nearest to each passage, from which step 1 chooses."""

from collections.abc import Iterator, Sequence

from synthbench.api import Encoder, directions, greatest, of_passages, of_queries

AT_ONCE, CELLS = 256, 32_000_000
"""Maximum passages and cosines of a batch; batches are the same with and without shards."""
DECIMALS = 6
"""Further decimals are noise in single precision, and would order equal cosines at random."""


def nearest_personas(
    passages: Sequence[str], personas: Sequence[str], number: int, encoder: Encoder
) -> Iterator[tuple[str, ...]]:
    """Yield the `number` personas nearest to each passage by cosine, nearest first; ties: the earlier one.

    There are fewer if `personas` has fewer. The search uses the model's prompts, with passages as queries.
    """
    import numpy as np

    number = min(number, len(personas))
    of_personas = directions(of_passages(encoder).encode(personas))
    at_once = max(1, min(AT_ONCE, CELLS // len(personas)))
    for start in range(0, len(passages), at_once):
        vectors = directions(of_queries(encoder).encode(passages[start : start + at_once]))
        indices, _ = greatest(np.round(vectors @ of_personas.T, DECIMALS), number)
        for row in indices.tolist():
            yield tuple(personas[index] for index in row)
