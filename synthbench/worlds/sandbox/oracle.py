"""The sandbox as a judge: it parses sentences into events and computes their exact similarity.

Bands of true similarity, with their lower limits:

- same, from 0.9: paraphrases (1.0) and some pairs that differ in one detail, never in action or object;
- similar, from 0.5: hard negatives, with one or two decisive slots or the polarity changed (0.58 to 0.87);
- a little, from 0.25: most other events of the same domain (median 0.47, nine of ten from 0.28 to 0.77);
- different: other domains (19 of 20 below 0.17, 99 of 100 below 0.25).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from synthbench.base.runtime import Progress
from synthbench.worlds.contract import OracleVerdict
from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.parsing import parse

BAND_EDGES = (0.25, 0.5, 0.9)
BANDS = ("different", "a little", "similar", "same")
OUTSIDE = "outside the grammar"
INSIDE = "in the grammar"
STEP = 200


def labels_for(num_texts: int) -> tuple[str, ...]:
    """Return the possible labels of a verdict on `num_texts` texts (1 or 2), in the order of tables."""
    return (*(BANDS if num_texts == 2 else (INSIDE,)), OUTSIDE)


def bands() -> Mapping[str, tuple[float, float]]:
    """Return band -> its range of similarities, (from, to)."""
    return dict(zip(BANDS, pairwise((0.0, *BAND_EDGES, 1.0)), strict=True))


def band(value: float) -> str:
    """Return the band of a similarity in [0, 1]."""
    return BANDS[bisect_right(BAND_EDGES, value)]


def judge(texts: Sequence[tuple[str, ...]], progress: Progress) -> list[OracleVerdict]:
    """Return a verdict on each sentence, or on each pair; surrounding white space is ignored."""
    parsed = lru_cache(maxsize=100_000)(parse)
    verdicts = []
    with progress.task("asking the oracle", len(texts)) as task:
        for number, each in enumerate(texts, start=1):
            verdicts.append(_verdict([parsed(text.strip()) for text in each]))
            if number % STEP == 0:
                task.advance(STEP)
        task.advance(len(texts) % STEP)
    return verdicts


def _verdict(events: Sequence[Event | None]) -> OracleVerdict:
    known = [event for event in events if event is not None]
    if len(known) < len(events):
        outside = tuple(position for position, event in enumerate(events) if event is None)
        return OracleVerdict(OUTSIDE, None, outside)
    if len(known) == 1:
        return OracleVerdict(INSIDE, None)
    value = similarity(*known)
    return OracleVerdict(band(value), value)
