"""Exports: their content, unchanged re-import, and no accidental overwriting."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import datasets
import pytest
from huggingface_hub import DatasetCard
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import PROPERTY, record_lists
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset, open_dataset, replacing, write_folder
from synthbench.data.importing import import_file
from synthbench.data.records import Failure, Record, RecordKind, ScoredPair, Sentence

PAIRS = SyntheticDataset.create(
    RecordKind.SCORED_PAIR,
    [
        ScoredPair(id="1", sentence1='say "hi"', sentence2="a, b", score=0.1, seed=7),
        ScoredPair(id="2", sentence1="two\nlines", sentence2="ä\u2028b", score=1.0, split="dev"),
    ],
    failures=[Failure(reason="refused")],
    method="dino",
    version=2,
    config={"lambda": 100},
    revisions={"gpt2-xl": "15ea56d"},
    dropped={"a|b": 3},
    notes=["made\nby hand"],
    cost_usd=1.5,
    measured={"recall\nof the search": 0.98765},
)


@PROPERTY
@given(record_lists(), st.sampled_from([ExportFormat.JSONL, ExportFormat.CSV]))
def test_exports_are_imported_unchanged(
    drawn: tuple[RecordKind, Sequence[Record]], export_format: ExportFormat
) -> None:
    exported = SyntheticDataset.create(*drawn)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"data.{export_format}"
        export_dataset(exported, file, export_format)
        imported = import_file(file)
    assert list(imported) == list(exported)
    assert imported.manifest.content_hash == exported.manifest.content_hash


def test_jsonl_has_one_object_a_line_with_all_columns(tmp_path: Path) -> None:
    export_dataset(PAIRS, tmp_path / "out.jsonl", ExportFormat.JSONL)
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    first = json.loads(lines[0])
    assert list(first)[:5] == ["sentence1", "sentence2", "score", "id", "split"]
    assert (first["sentence1"], first["score"], first["seed"]) == ('say "hi"', 0.1, 7)
    assert "ä\u2028b" in lines[1]


def test_csv_follows_rfc_4180(tmp_path: Path) -> None:
    export_dataset(PAIRS, tmp_path / "out.csv", ExportFormat.CSV)
    content = (tmp_path / "out.csv").read_bytes().decode("utf-8")
    assert content.startswith("sentence1,sentence2,score,id,split,")
    assert '\r\n"say ""hi""","a, b",0.1,1,train,' in content
    assert content.endswith("\r\n")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["sentence1"] for row in rows] == PAIRS.column("sentence1")


def test_the_hugging_face_export_has_the_columns_of_the_loss_by_split(tmp_path: Path) -> None:
    export_dataset(PAIRS, tmp_path / "out", ExportFormat.HUGGINGFACE)
    loaded = datasets.load_from_disk(tmp_path / "out")
    assert {split: part.column_names for split, part in loaded.items()} == {
        "dev": ["sentence1", "sentence2", "score"],
        "train": ["sentence1", "sentence2", "score"],
    }
    assert loaded["train"].to_list() == [{"sentence1": 'say "hi"', "sentence2": "a, b", "score": 0.1}]


def test_provenance_is_exported_on_request(tmp_path: Path) -> None:
    export_dataset(PAIRS, tmp_path / "out", ExportFormat.HUGGINGFACE, provenance=True)
    columns = datasets.load_from_disk(tmp_path / "out")["train"].column_names
    assert columns[:4] == ["sentence1", "sentence2", "score", "id"]
    assert set(columns) == set(PAIRS.table.column_names) - {"split"}


def test_the_dataset_card_holds_the_manifest(tmp_path: Path) -> None:
    export_dataset(PAIRS, tmp_path / "out", ExportFormat.HUGGINGFACE)
    card = DatasetCard.load(tmp_path / "out" / "README.md")
    assert card.data.tags == ["synthetic", "sentence-transformers", "synthbench"]
    assert card.data.size_categories == ["n<1K"]
    for line in (
        "# Synthetic scored_pair data by dino",
        "For sentence-transformers' CosineSimilarityLoss; columns: `sentence1`, `sentence2`, `score`.",
        "| dev | 1 |",
        "- Method: `dino (version 2)`",
        "- Revision of gpt2-xl: `15ea56d`",
        "- Cost: `1.50 US dollars`",
        f"- Content hash: `{PAIRS.manifest.content_hash}`",
        "| a\\|b | 3 |",
        "| failures | 1 |",
        ' "lambda": 100',
        "- recall of the search: 0.9877",
        "- made by hand",
    ):
        assert line in card.text.splitlines()


@pytest.mark.parametrize("split", ["a/b", "../a", "", "a b"])
def test_a_split_that_is_no_valid_folder_name_is_refused_in_one_line(tmp_path: Path, split: str) -> None:
    odd = PAIRS.with_records([ScoredPair(sentence1="a", sentence2="b", score=0.5, split=split)])
    with refused("split", f"'{split}'"):
        export_dataset(odd, tmp_path / "out", ExportFormat.HUGGINGFACE)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_target_is_refused_unless_forced(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("mine")
    with refused("--force"):
        export_dataset(PAIRS, file, ExportFormat.CSV)
    assert file.read_text() == "mine"
    export_dataset(PAIRS, file, ExportFormat.CSV, force=True)
    assert len(import_file(file)) == 2


def test_a_data_set_folder_is_replaced_if_forced_but_no_other_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(PAIRS, target)
    export_dataset(PAIRS, target, ExportFormat.HUGGINGFACE, force=True)
    assert not (target / "manifest.json").exists()
    write_folder(PAIRS, target, force=True)
    assert len(open_dataset(target)) == 2
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    for force in (False, True):
        with refused("photos"):
            write_folder(PAIRS, tmp_path / "photos", force=force)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "photos"]


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target, force=True) as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with refused("out.txt"):
        write_half()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_target_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with refused("nowhere"):
        write_folder(PAIRS, tmp_path / "nowhere" / "out")


def test_a_data_set_is_opened_from_a_folder_an_artifact_or_a_file(tmp_path: Path) -> None:
    write_folder(PAIRS, tmp_path / "plain")
    (tmp_path / "artifact").mkdir()
    write_folder(PAIRS, tmp_path / "artifact" / "dataset")
    export_dataset(PAIRS, tmp_path / "data.jsonl", ExportFormat.JSONL)
    for name in ("plain", "artifact", "data.jsonl"):
        assert list(open_dataset(tmp_path / name)) == list(PAIRS)


def test_a_path_that_is_no_data_set_is_refused_in_one_line(tmp_path: Path) -> None:
    with refused("folder"):
        open_dataset(tmp_path / "nothing")
    with refused("manifest"):
        open_dataset(tmp_path)


def test_exports_preserve_the_order_of_records(tmp_path: Path) -> None:
    many = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=f"s{n}") for n in range(30)])
    export_dataset(many, tmp_path / "out", ExportFormat.HUGGINGFACE)
    assert datasets.load_from_disk(tmp_path / "out")["train"]["sentence"][:] == [f"s{n}" for n in range(30)]
