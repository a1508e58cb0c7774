"""Excerpts of a data set do not depend on the order of its records."""

import random
from collections.abc import Sequence
from pathlib import Path

from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, Pair, Record, RecordKind, Sentence
from synthbench.data.streaming import (
    LONGEST_ANCHOR,
    NUM_ANCHORS,
    NUM_RECORDS,
    failure_reasons,
    records_where,
    some_anchors,
    some_records,
)

PAIRS = [Pair(id=str(number), anchor=f"a {number // 2}", positive=f"b {number}") for number in range(11_000)]


def stored(
    folder: Path, kind: RecordKind, records: Sequence[Record], failures: Sequence[Record] = ()
) -> Path:
    folder.mkdir()
    SyntheticDataset.create(kind, records, failures=failures).write(folder)
    return folder


def test_excerpts_do_not_depend_on_the_order_of_records(tmp_path: Path) -> None:
    shuffled = random.Random(0).sample(PAIRS, len(PAIRS))
    ordered, other = (
        stored(tmp_path / name, RecordKind.PAIR, records) for name, records in (("a", PAIRS), ("b", shuffled))
    )
    assert len(some_records(ordered)) == NUM_RECORDS
    assert {record.id for record in some_records(ordered)} == {record.id for record in some_records(other)}
    assert some_anchors(ordered) == some_anchors(other)
    assert len({*some_anchors(ordered)}) == len(some_anchors(ordered)) == NUM_ANCHORS


def test_a_subset_shows_the_anchors_of_the_full_sets_excerpt_that_it_contains(tmp_path: Path) -> None:
    whole = some_anchors(stored(tmp_path / "whole", RecordKind.PAIR, PAIRS))
    half = stored(tmp_path / "half", RecordKind.PAIR, PAIRS[: len(PAIRS) // 2])
    held = {pair.anchor for pair in PAIRS[: len(PAIRS) // 2]}
    assert {text for text in whole if text in held} <= {*some_anchors(half)}


def test_long_sentences_and_other_kinds_are_no_anchors(tmp_path: Path) -> None:
    long = [Pair(anchor="x" * (LONGEST_ANCHOR + 1), positive="y"), Pair(anchor="short", positive="y")]
    assert some_anchors(stored(tmp_path / "long", RecordKind.PAIR, long)) == ["short"]
    sentences = stored(tmp_path / "sentences", RecordKind.SENTENCE, [Sentence(sentence="one")])
    assert some_anchors(sentences) == []
    assert [record.texts() for record in some_records(sentences)] == [("one",)]


def test_records_with_a_value_are_found_in_order(tmp_path: Path) -> None:
    folder = stored(tmp_path / "pairs", RecordKind.PAIR, PAIRS)
    found = records_where(folder, "anchor", ["a 5400", "a 3", "nowhere"])
    assert [record.id for record in found] == ["6", "7", "10800", "10801"]


def test_failures_are_counted_by_reason(tmp_path: Path) -> None:
    failures = [Failure(id=str(number), reason=("empty", "refusal")[number % 3 == 0]) for number in range(4)]
    folder = stored(tmp_path / "failed", RecordKind.PAIR, [], failures)
    assert failure_reasons(folder) == {"empty": 2, "refusal": 2}
    assert some_records(folder) == []


def test_a_damaged_data_set_is_reported_in_one_line(tmp_path: Path) -> None:
    folder = stored(tmp_path / "pairs", RecordKind.PAIR, PAIRS[:3])
    (folder / "records.parquet").write_bytes(b"PAR1")
    with refused("damaged"):
        some_records(folder)
