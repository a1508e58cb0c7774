"""The data set: valid and invalid records, and unchanged after writing and reading."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from record_strategies import PROPERTY, record_lists
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.manifest import Manifest, read_manifest
from synthbench.data.records import Failure, Pair, Record, RecordKind, ScoredPair, Sentence


def pair(score: float = 0.5, **shared: str) -> ScoredPair:
    return ScoredPair(sentence1="a man", sentence2="a woman", score=score, **shared)


def sentences(*texts: str) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])


def messages_of(kind: RecordKind, *records: Record) -> tuple[str, ...]:
    with pytest.raises(UserError) as raised:
        SyntheticDataset.create(kind, records)
    return raised.value.messages


@PROPERTY
@given(record_lists(min_size=0))
def test_iterating_gives_the_records_back(drawn: tuple[RecordKind, list[Record]]) -> None:
    kind, records = drawn
    dataset = SyntheticDataset.create(kind, records)
    assert [record.texts() for record in dataset] == [record.texts() for record in records]
    again = SyntheticDataset.create(kind, dataset)
    assert list(again) == list(dataset)
    assert again.manifest == dataset.manifest


@PROPERTY
@given(record_lists())
def test_rows_of_sentences_equal_those_of_the_records(drawn: tuple[RecordKind, list[Record]]) -> None:
    data = SyntheticDataset.create(*drawn)
    texts = [record.texts() for record in drawn[1]]
    assert list(data.text_rows()) == texts


@PROPERTY
@given(record_lists())
def test_every_sentence_of_a_record_has_its_own_column_name(drawn: tuple[RecordKind, list[Record]]) -> None:
    for record in drawn[1]:
        named = dict(zip(record.text_names(), record.texts(), strict=True))
        assert tuple(named.values()) == record.texts()


def test_equal_records_get_distinct_stable_ids() -> None:
    ids = sentences("x", "x", "y", "x").column("id")
    assert len(set(ids)) == 4
    assert [ids[1], ids[3]] == [f"{ids[0]}-1", f"{ids[0]}-2"]
    assert ids == sentences("x", "x", "y", "x").column("id")


def test_texts_are_distinct_in_order_of_appearance() -> None:
    records = [Pair(anchor="b", positive="a"), Pair(anchor="b", positive="c")]
    assert SyntheticDataset.create(RecordKind.PAIR, records).texts == ("b", "a", "c")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (pair(float("nan"), id="r"), "record r: its score is NaN"),
        (pair(1.01, id="r"), "record r: its score is outside [0, 1]: 1.01"),
        (pair(float("inf"), id="r"), "record r: its score is outside [0, 1]: inf"),
        (ScoredPair(id="r", sentence1=" \n", sentence2="b", score=1.0), "record r: has an empty sentence"),
        (
            ScoredPair(id="r", sentence1="a", sentence2="\u200b\u3164", score=1.0),
            "record r: has an empty sentence",
        ),
        (Sentence(id="r", sentence="x"), "record r: is a sentence, the data set holds scored_pair"),
        (
            ScoredPair(id="r", sentence1="\ud83d", sentence2="b", score=1.0),
            "record r: holds a lone surrogate, which is no character",
        ),
    ],
)
def test_a_bad_record_is_named(record: Record, message: str) -> None:
    assert messages_of(RecordKind.SCORED_PAIR, record) == (message,)


def test_each_fault_is_named_once_at_its_first_record() -> None:
    bad = [pair(2.0, id="a"), pair(3.0, id="b"), pair(id="c"), pair(id="c"), pair(float("nan"), id="d")]
    worded(messages_of(RecordKind.SCORED_PAIR, *bad), "score", "[0", "1]", "2.0", "record", "NaN")


def test_the_hash_depends_on_the_contents_but_1_equals_1_0() -> None:
    assert sentences("x").manifest.content_hash != sentences("y").manifest.content_hash
    assert sentences("x", "y").manifest.content_hash != sentences("y", "x").manifest.content_hash
    whole = SyntheticDataset.create(RecordKind.SCORED_PAIR, [pair(1)])
    assert whole.manifest == SyntheticDataset.create(RecordKind.SCORED_PAIR, [pair(1.0)]).manifest


def test_with_records_preserves_failures_and_the_manifest() -> None:
    failure = Failure(id="f", reason="refused", attempts=3, raw_text="I can't do that")
    whole = SyntheticDataset.create(
        RecordKind.SENTENCE,
        [Sentence(sentence="x"), Sentence(sentence="y")],
        failures=[failure],
        method="m",
        dropped={"too long": 2},
    )
    part = whole.with_records(list(whole)[:1], notes=["halved"])
    assert len(part) == part.manifest.num_records == 1
    assert list(part.failures()) == [failure]
    assert (part.manifest.method, part.manifest.dropped, part.manifest.notes) == (
        "m",
        {"too long": 2},
        ["halved"],
    )


def test_a_written_data_set_is_read_unchanged(tmp_path: Path) -> None:
    # A folder named key=value would be taken for a partition by some Parquet readers.
    folder = tmp_path / "seed=3"
    folder.mkdir()
    written = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [pair(0.25, id="a", subset="MSRpar")], failures=[Failure(reason="empty")]
    )
    written.write(folder)
    read = SyntheticDataset.read(folder)
    assert (list(read), list(read.failures())) == (list(written), list(written.failures()))
    assert read.manifest == read_manifest(folder) == written.manifest


def test_a_folder_without_a_data_set_is_refused(tmp_path: Path) -> None:
    with refused("manifest"):
        SyntheticDataset.read(tmp_path)


def write_manifest(folder: Path, text: str) -> None:
    sentences("x").write(folder)
    (folder / "manifest.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged, not JSON"),
        ("[]", "schema version None, this synthbench reads 1"),
        ('{"schema_version": 2, "kind": "sentence"}', "schema version 2, this synthbench reads 1"),
        ('{"schema_version": 1, "kind": "haiku"}', "not a data set's manifest: kind"),
        (
            '{"schema_version": 1, "kind": "sentence", "num_records": 5}',
            "holds 1 records, manifest.json says 5",
        ),
        (
            '{"schema_version": 1, "kind": "pair", "num_records": 1}',
            "its columns are not those of pair records",
        ),
    ],
)
def test_a_bad_manifest_gives_one_line(tmp_path: Path, text: str, message: str) -> None:
    write_manifest(tmp_path, text)
    with pytest.raises(UserError) as raised:
        SyntheticDataset.read(tmp_path)
    assert message in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["records.parquet", "failures.parquet"])
def test_a_damaged_or_missing_table_gives_one_line(tmp_path: Path, name: str) -> None:
    sentences("x").write(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with refused(str(name)) as raised:
        SyntheticDataset.read(tmp_path)
    assert len(str(raised.value).splitlines()) == 1
    (tmp_path / name).unlink()
    with refused(str(name)):
        SyntheticDataset.read(tmp_path)


def test_the_files_are_ordinary_parquet_and_json(tmp_path: Path) -> None:
    sentences("x").write(tmp_path)
    assert pq.read_table(tmp_path / "records.parquet").column("sentence").to_pylist() == ["x"]
    assert Manifest(**json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))).num_records == 1
