"""The step that drops records that also occur in other data."""

from collections.abc import Sequence

import pytest
from applying import apply_steps, step_of

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair, Sentence, Triplet
from synthbench.preparing.drops import DropOverlap

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen"


def pairs(*texts: tuple[str, str]) -> SyntheticDataset:
    records = [ScoredPair(sentence1=first, sentence2=second, score=0.5) for first, second in texts]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


@pytest.mark.parametrize(
    ("by", "kept"),
    [
        ("exact", [1, 2, 3, 5]),
        ("normalised", [2, 3, 5]),
        ("13-gram", [2, 5]),
        ("near-duplicate", [2, 3]),
        ("pair", [0, 2, 3, 4, 5]),
    ],
)
def test_records_with_a_common_sentence_or_pair_are_dropped(by: str, kept: Sequence[int]) -> None:
    training = pairs(
        ("A dog.", "new"),
        ("THE CAT", "a dog"),
        ("new", "old"),
        (f"so {LONG} and on it went for quite a while", "new"),
        ("the cat!", "the cat"),
        (LONG.replace("seven", "sevem"), "new"),
    )
    test = pairs(("A dog.", "the cat"), (LONG, "far"))
    step = step_of({"step": "drop-overlap", "sources": ("test",), "by": by})
    found = apply_steps(training, [step], {"test": test})
    assert found.column("id") == [training.column("id")[place] for place in kept]
    assert found.manifest.dropped == {"drop-overlap": 6 - len(kept)}


def test_overlap_covers_all_sentences_of_a_record_and_sources_of_any_kind() -> None:
    triplets = [Triplet(anchor="a", positive="b", negative=last) for last in ("c", "x")]
    training = SyntheticDataset.create(RecordKind.TRIPLET, triplets)
    test = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence="C.")])
    found = apply_steps(training, [DropOverlap(sources=("test", "absent"))], {"test": test})
    assert [record.negative for record in found] == ["x"]
