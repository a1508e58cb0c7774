"""An exported data set trains with the code printed on its card."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
from hub_cache import tiny_bert

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset
from synthbench.data.records import (
    Pair,
    Ranking,
    Record,
    RecordKind,
    RetrievalText,
    ScoredPair,
    Sentence,
    Triplet,
)
from synthbench.data.training_columns import TrainingColumns
from synthbench.exporting.cards import Statements
from synthbench.exporting.dataset import configurations, tables_of, write_tables
from synthbench.exporting.training_code import USUAL_BASE, training_code

WORDS = ("fish", "ship", "star", "moon", "tree", "leaf", "rain", "bird", "song", "wind")
ADDRESS = Statements().address
SPLITS = ("train", "train", "train", "dev")


def texts(number: int) -> tuple[str, str, str, str]:
    return tuple(f"{WORDS[(number + step) % 10]} {number} {step}" for step in range(4))  # type: ignore[return-value]


def records(kind: RecordKind, number: int) -> Record:
    one, two, three, four = texts(number)
    made: dict[RecordKind, Record] = {
        RecordKind.SCORED_PAIR: ScoredPair(sentence1=one, sentence2=two, score=number / 12),
        RecordKind.PAIR: Pair(anchor=one, positive=two),
        RecordKind.TRIPLET: Triplet(
            anchor=one,
            positive=two,
            negative=three,
            further_negatives=(four, one.upper())[: 1 + number % 2],
            scores=(1.0, 0.5, 0.25, 0.1)[: 3 + number % 2],
        ),
        RecordKind.SENTENCE: Sentence(sentence=one),
        RecordKind.RANKING: Ranking(
            query=one,
            candidates=(two, three, four)[: 2 + number % 2],
            grades=(1.0, 0.5, 0.0)[: 2 + number % 2],
            further_queries=(four,) if number % 2 else (),
        ),
    }
    return replace(made[kind], split=SPLITS[number % 4], method="echo", label="class", seed=number)


def dataset(kind: RecordKind) -> SyntheticDataset:
    return SyntheticDataset.create(kind, [records(kind, number) for number in range(12)])


def exported(data: SyntheticDataset, folder: Path) -> Path:
    """Write what `export dataset` writes for `load_dataset`: the files, and the card's head."""
    folder.mkdir()
    tables = tables_of(data)
    write_tables(tables, folder)
    head = json.dumps({"configs": configurations(tables["default"])})
    (folder / "README.md").write_text(f"---\n{head}\n---\n", encoding="utf-8")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which the names that a card prints are folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path


TRAINED: Sequence[RecordKind] = (
    RecordKind.SCORED_PAIR,
    RecordKind.PAIR,
    RecordKind.TRIPLET,
    RecordKind.SENTENCE,
    RecordKind.RANKING,
)


@pytest.mark.parametrize("kind", TRAINED)
def test_the_printed_code_trains_on_records_of_every_kind(kind: RecordKind, here: Path) -> None:
    (here / USUAL_BASE).parent.mkdir()
    tiny_bert(here / USUAL_BASE)
    exported(dataset(kind), here / ADDRESS)
    found: dict[str, object] = {}
    exec(training_code(kind, USUAL_BASE, ADDRESS, ["train", "dev"]), found)
    trainer = found["trainer"]
    assert trainer.state.global_step > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", TRAINED)
def test_the_provenance_table_has_all_other_columns_in_the_same_row_order(
    kind: RecordKind, here: Path
) -> None:
    data = dataset(kind)
    folder = str(exported(data, here / "out"))
    for split in ("train", "dev"):
        chosen = datasets.load_dataset(folder, split=split)
        beside = datasets.load_dataset(folder, "provenance", split=split)
        wanted = [record for record in data if record.split == split]
        assert beside["id"][:] == [record.id for record in wanted]
        assert chosen[chosen.column_names[0]][:] == [record.texts()[0] for record in wanted]
        assert {"method", "seed", "label"} <= set(beside.column_names)
        missing = {*data.table.column_names} - {*chosen.column_names, *beside.column_names}
        assert missing == {"split"} | ({"grades"} if kind is RecordKind.RANKING else set())


def test_additional_negatives_are_columns_if_all_records_have_them() -> None:
    varied = TrainingColumns.of(dataset(RecordKind.TRIPLET))
    assert varied.names == ("anchor", "positive", "negative", "negative2")
    alike = dataset(RecordKind.TRIPLET)
    alike = alike.with_records([each for each in alike if len(each.further_negatives) == 2])
    columns = TrainingColumns.of(alike)
    assert columns.names == ("anchor", "positive", "negative", "negative2", "negative3", "scores")
    chosen = columns.select(alike.table).to_pylist()
    assert [row["negative3"] for row in chosen] == [each.further_negatives[1] for each in alike]


def test_what_not_all_triplets_have_is_left_out_by_name() -> None:
    given = dataset(RecordKind.TRIPLET)
    assert TrainingColumns.of(given).left_out == ("further negatives", "a teacher's scores")
    alike = [each for each in given if isinstance(each, Triplet) and len(each.further_negatives) == 2]
    assert TrainingColumns.of(given.with_records(alike)).left_out == ()
    unscored = [replace(each, scores=()) for each in alike]
    assert TrainingColumns.of(given.with_records(unscored)).left_out == ()
    partly = given.with_records([*alike[1:], *unscored[:1]])
    assert TrainingColumns.of(partly).left_out == ("a teacher's scores",)


def test_a_retrieval_set_is_no_training_data() -> None:
    queries = [
        RetrievalText(id="q", split="test", text="a", judged=("p",), grades=(1.0,)),
        RetrievalText(id="p", split="test", text="b"),
    ]
    data = SyntheticDataset.create(RecordKind.RETRIEVAL, queries)
    assert training_code(data.kind, "base", "address", ["test"]) == ""
    assert "judged" in tables_of(data)["default"]["test"].column_names


def test_without_a_split_train_the_code_names_another_split() -> None:
    assert 'data["dev"]' in training_code(RecordKind.PAIR, "base", "address", ["dev"])


def test_a_converted_data_set_has_no_list_columns(tmp_path: Path) -> None:
    export_dataset(dataset(RecordKind.TRIPLET), tmp_path / "out", ExportFormat.HUGGINGFACE)
    found = datasets.load_from_disk(tmp_path / "out")["train"]
    assert found.column_names == ["anchor", "positive", "negative", "negative2"]
    assert all(isinstance(value, str) for value in found[0].values())
