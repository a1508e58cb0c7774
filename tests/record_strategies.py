"""Records as hypothesis strategies: any text that readers take, which is all of UTF-8 but U+0000."""

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from synthbench.data.records import Pair, Ranking, Record, RecordKind, ScoredPair, Sentence, Triplet
from synthbench.tables.characters import is_invisible

# The first example pays for imports, which is no sign of anything slow.
PROPERTY = settings(max_examples=60)

AWKWARD = st.sampled_from(
    [
        'say "hi", now',
        "two\nlines",
        "two\r\nlines",
        "a\rb",
        "a\u2028b",
        "a\x85b",
        "👩‍🔬 α",
        "'",
        ",",
        "\ufeffx",
        "x\x01",
    ]
)
ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | AWKWARD
SENTENCES = ANY_TEXT.filter(lambda text: not is_invisible(text))
SCORES = st.floats(0.0, 1.0)
SHARED = {
    "split": st.sampled_from(["train", "dev", "test", ""]),
    "subset": ANY_TEXT,
    "label": ANY_TEXT,
    "source_id": ANY_TEXT,
    "method": ANY_TEXT,
    "generator": ANY_TEXT,
    "instruction": ANY_TEXT,
    "seed": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
}
RECORDS: dict[RecordKind, st.SearchStrategy[Record]] = {
    RecordKind.SCORED_PAIR: st.builds(
        ScoredPair, sentence1=SENTENCES, sentence2=SENTENCES, score=SCORES, **SHARED
    ),
    RecordKind.PAIR: st.builds(Pair, anchor=SENTENCES, positive=SENTENCES, **SHARED),
    RecordKind.TRIPLET: st.builds(
        lambda scored, is_scored, **values: Triplet(
            negative=scored[0][0],
            further_negatives=tuple(text for text, _ in scored[1:]),
            scores=(7.5, *(score for _, score in scored)) if is_scored else (),
            **values,
        ),
        scored=st.lists(st.tuples(SENTENCES, st.floats(-20.0, 20.0)), min_size=1, max_size=3),
        is_scored=st.booleans(),
        anchor=SENTENCES,
        positive=SENTENCES,
        **SHARED,
    ),
    RecordKind.RANKING: st.builds(
        lambda graded, **values: Ranking(
            candidates=tuple(text for text, _ in graded), grades=tuple(grade for _, grade in graded), **values
        ),
        graded=st.lists(st.tuples(SENTENCES, SCORES), min_size=1, max_size=4),
        query=SENTENCES,
        further_queries=st.lists(SENTENCES, max_size=2),
        **SHARED,
    ),
    RecordKind.SENTENCE: st.builds(Sentence, sentence=SENTENCES, **SHARED),
}


def record_lists(min_size: int = 1) -> st.SearchStrategy[tuple[RecordKind, Sequence[Record]]]:
    """A kind and some records of it, without ids of their own."""
    return st.sampled_from(sorted(RECORDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(RECORDS[kind], min_size=min_size, max_size=6))
    )
