"""`as:` in a source: its records are converted when they are read."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.data.conversions import convert
from synthbench.data.records import RecordKind, Sentence
from synthbench.sources.description import Roots
from synthbench.sources.models import SOURCE_TYPES, Source
from synthbench.stages.data import ReadSource


def parse(**description: Any) -> Source:
    (key,) = SOURCE_TYPES.keys() & description.keys()
    return SOURCE_TYPES[key].model_validate_json(json.dumps(description))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    """A file of three pairs, the first in the second's sentences too."""
    rows = "a\tb\t1.0\nb\tc\t0.5\nd\te\t0.0\n"
    (tmp_path / "gold.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}")
    return Roots(base=tmp_path, data=tmp_path)


GOLD = {"file": "gold.tsv", "kind": "scored_pair", "split": "dev"}


def test_each_distinct_sentence_occurs_once_with_its_source_id(roots: Roots) -> None:
    source = parse(**GOLD, **{"as": "sentence"})
    data = source.load(roots)
    assert source.record_kind == data.kind == RecordKind.SENTENCE
    assert data.column("sentence") == ["a", "b", "c", "d", "e"]
    assert list(data)[2] == Sentence(
        id="gold.tsv/0003/sentence2", sentence="c", split="dev", source_id="gold.tsv/0003"
    )
    assert data.manifest.dropped == {"to sentence: repeated sentence": 1}
    assert data.manifest.config["as"] == "sentence"


def test_with_repeats_each_sentence_is_kept_as_often_as_it_occurs(roots: Roots) -> None:
    data = parse(**GOLD, **{"as": "sentence"}, repeats=True).load(roots)
    assert data.column("sentence") == ["a", "b", "b", "c", "d", "e"]
    assert len(set(data.column("id"))) == 6
    assert not data.manifest.dropped
    assert ReadSource(parse(**GOLD, **{"as": "sentence"}, repeats=True), roots).config()["repeats"]


def test_sources_convert_like_the_data_command(roots: Roots) -> None:
    for kind in (RecordKind.SENTENCE, RecordKind.PAIR):
        converted = convert(parse(**GOLD).load(roots), kind)
        assert list(parse(**GOLD, **{"as": str(kind)}).load(roots)) == list(converted)


def test_a_sample_is_drawn_from_the_converted_records(roots: Roots) -> None:
    source = parse(**GOLD, **{"as": "sentence"}, sample={"size": 4})
    data = source.load(roots)
    assert len(data) == 4, "more than there are pairs"
    assert data.manifest.notes[-1] == "4 of 5 records, drawn with seed 0"
    with refused("gold.tsv", "6", "5"):
        parse(**GOLD, **{"as": "sentence"}, sample={"size": 6}).load(roots)


def test_sandbox_data_may_be_converted_and_then_sampled(roots: Roots) -> None:
    pairs = {"sandbox": "pairs", "split": "train", "size": 20}
    data = parse(**pairs, **{"as": "sentence"}, sample={"size": 30}).load(roots)
    assert (data.kind, len(data)) == (RecordKind.SENTENCE, 30)


def test_an_unconverted_source_keeps_its_identity(roots: Roots) -> None:
    config = ReadSource(parse(**GOLD), roots).config()
    assert set(config) == {"sample", "file", "kind", "columns", "score_range", "split"}
    converted = ReadSource(parse(**GOLD, **{"as": "sentence"}), roots).config()
    assert converted == {**config, "as": "sentence"}


def test_impossible_conversions_are_refused_before_reading() -> None:
    for description, expected in (
        (
            {"file": "own.txt", "as": "pair"},
            "as: sentence records can't become pair: a sentence has no partner",
        ),
        ({"file": "own.csv", "kind": "pair", "as": "triplet"}, "a pair has no negative"),
        ({"task": "STSb", "as": "ranking"}, "Input should be 'scored_pair', 'pair', 'triplet' or 'sentence'"),
        ({"task": "STSb", "converted_to": "sentence"}, "Extra inputs are not permitted"),
        ({"task": "STSb", "as": "pair", "repeats": True}, "repeats needs records that"),
    ):
        with pytest.raises(ValidationError, match=expected):
            parse(**description)


def test_a_source_without_convertible_records_is_named(roots: Roots) -> None:
    (roots.base / "low.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t0.5\n")
    with refused("low.tsv", "pair", "scored_pair"):
        parse(file="low.tsv", kind="scored_pair", **{"as": "pair"}).load(roots)


RELEASED = [
    {"text_a": "a", "text_b": "b", "label": "1"},
    {"text_a": "c", "text_b": None, "label": None},
    {"text_a": "b", "text_b": " ", "label": "0"},
    {"text_a": "c", "text_b": "d", "label": "0.5"},
]


@pytest.fixture
def released(roots: Roots) -> Roots:
    """A file in DINO's format, in the data folder."""
    lines = "".join(f"{json.dumps(row)}\n" for row in RELEASED)
    (roots.base / "inner").mkdir()
    (roots.base / "inner" / "dino.jsonl").write_text(lines)
    return Roots(base=roots.base / "elsewhere", data=roots.base)


DINO = {"file": "data:inner/dino.jsonl", "format": "dino"}


def test_a_dino_file_gives_scored_pairs(released: Roots) -> None:
    source = parse(**DINO, split="dev")
    data = source.load(released)
    assert source.record_kind == data.kind == RecordKind.SCORED_PAIR
    assert [(*one.texts(), one.score, one.label, one.split) for one in data] == [
        ("a", "b", 1.0, "1", "dev"),
        ("c", "d", 0.5, "0.5", "dev"),
    ]
    assert data.manifest.dropped == {"blank text": 1, "no text_b": 1}
    assert list(data.manifest.revisions) == ["data:inner/dino.jsonl"]


def test_a_dino_file_gives_its_sentences(released: Roots) -> None:
    alone, each = (parse(**DINO, **how).load(released) for how in ({"kind": "sentence"}, {"as": "sentence"}))
    assert alone.column("sentence") == ["c"]
    assert alone.manifest.dropped == {"blank text": 1, "has a text_b": 2}
    assert each.column("sentence") == ["a", "b", "c", "d"]
    assert each.manifest.dropped == {"blank text": 1, "to sentence: repeated sentence": 1}
    assert (alone.kind, each.kind) == (RecordKind.SENTENCE, RecordKind.SENTENCE)


def test_faults_of_a_dino_file_have_file_and_line(released: Roots) -> None:
    file = (released.data or Path()) / "inner" / "dino.jsonl"
    row = '{"text_a": "a", "text_b": "b", "label": "%s"}\n'
    file.write_text(row % "1" + row % "yes")
    with refused(f"{file}:2", "pair", "'yes'"):
        parse(**DINO).load(released)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"file": "x.csv", "format": "dino"}, r"x\.csv: a file in DINO's format is a \.jsonl file"),
        ({**DINO, "kind": "triplet"}, "DINO's format holds scored_pair or sentence records"),
        ({**DINO, "columns": {"sentence1": "a"}}, "columns: DINO's format knows its own; leave it out"),
        ({**DINO, "score_range": [0, 5]}, "score_range: DINO's format knows its own"),
        ({**DINO, "format": "nli"}, "unknown importer 'nli'"),
    ],
)
def test_keys_that_conflict_with_the_format_are_refused(description: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse(**description)


def test_a_file_in_the_data_folder_needs_a_data_folder(released: Roots) -> None:
    source = parse(**DINO)
    assert source.needs_data_folder(released)
    with refused("--data", "SYNTHBENCH_DATA"):
        source.fingerprint(Roots())
    with refused("dino.jsonl"):
        source.fingerprint(Roots(data=released.base))
