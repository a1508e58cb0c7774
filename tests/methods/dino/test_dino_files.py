"""DINO's released data files: reading, refusals, and unchanged re-export."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import ANY_TEXT, PROPERTY, SENTENCES
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.importing import import_file
from synthbench.data.records import Pair, RecordKind, ScoredPair, Sentence
from synthbench.plugins.importers import ImportOptions
from synthbench.sources.description import Roots
from synthbench.sources.formats import format_hint, import_in_format
from synthbench.sources.models import FileSource
from synthbench_dino.files import DINOFile

PAIR = {"text_a": "A man. ", "text_b": "a man", "label": "0.5"}
SINGLE = {"text_a": "A man.", "text_b": None, "label": None}
LABELS = st.sampled_from(["0", "0.5", "1", "0.0", "1.0", "1e-1"])


def written(folder: Path, *rows: Any) -> Path:
    file = folder / "released.jsonl"
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def import_dino(
    file: Path, kind: RecordKind | None = None, scores: Mapping[str, float] | None = None
) -> SyntheticDataset:
    return import_in_format(file, "dino", kind, scores)


def exported(data: SyntheticDataset, folder: Path) -> list[dict[str, Any]]:
    DINOFile().write(data, folder / "out.jsonl")
    return [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").split("\n")[:-1]]


def test_a_row_becomes_a_scored_pair_with_its_label(tmp_path: Path) -> None:
    data = import_dino(written(tmp_path, PAIR))
    assert list(data) == [
        ScoredPair(id="released.jsonl/0001", sentence1="A man. ", sentence2="a man", score=0.5, label="0.5")
    ]
    assert list(data.manifest.revisions) == ["released.jsonl"]
    assert data.manifest.notes == ["imported from released.jsonl, in DINO's format"]


def test_rows_without_text_b_are_sentences(tmp_path: Path) -> None:
    data = import_dino(written(tmp_path, SINGLE, {**SINGLE, "text_a": "News.", "label": "good"}))
    assert data.kind == RecordKind.SENTENCE
    assert [(one.sentence, one.label) for one in data] == [("A man.", ""), ("News.", "good")]


def test_a_mixed_file_gives_one_kind_and_counts_the_other_rows(tmp_path: Path) -> None:
    file = written(tmp_path, SINGLE, PAIR, SINGLE)
    pairs, sentences = import_dino(file), import_dino(file, RecordKind.SENTENCE)
    assert (len(pairs), pairs.manifest.dropped) == (1, {"no text_b": 2})
    assert (len(sentences), sentences.manifest.dropped) == (2, {"has a text_b": 1})


def test_blank_generated_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    data = import_dino(written(tmp_path, PAIR, {**PAIR, "text_b": " "}, {**PAIR, "text_a": ""}))
    assert (len(data), data.manifest.dropped) == (1, {"blank text": 2})


def test_labels_of_smoothed_scores_are_numbers(tmp_path: Path) -> None:
    """DINO's own clean-up writes numbers as labels, since it multiplies them."""
    smoothed = import_dino(
        written(tmp_path, {**PAIR, "label": 0.9}, {**PAIR, "label": 0}, {**PAIR, "label": 1e-1})
    )
    assert [(pair.label, pair.score) for pair in smoothed] == [("0.9", 0.9), ("0", 0.0), ("0.1", 0.1)]


def test_every_faulty_line_is_named(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        PAIR,
        "{",
        {"text_b": "b", "label": "1"},
        {**PAIR, "label": "entailment"},
        {**PAIR, "label": True},
        {**PAIR, "label": None},
        {**PAIR, "label": "1.5"},
        {**PAIR, "text_b": 3},
        {**PAIR, "txt": ""},
    )
    with pytest.raises(UserError) as raised:
        DINOFile().read(file, None, ImportOptions())
    worded(
        [message.removeprefix(f"{file}:") for message in raised.value.messages],
        "JSON",
        "'text_a'",
        "pair",
        "'entailment'",
        "text",
        "True",
        "''",
        "'1.5'",
        "text_b",
        "'txt'",
        "'text_b'",
    )


NLI = [{**PAIR, "label": label} for label in ("entailment", "neutral", "neutral", "contradiction")]


def test_nli_output_is_refused_in_one_line_with_advice(tmp_path: Path) -> None:
    file = written(tmp_path, *NLI)
    with pytest.raises(UserError) as raised:
        import_dino(file)
    worded(
        list(raised.value.messages),
        str(file),
        "'neutral'",
        "'entailment'",
        "'contradiction'",
        "score",
        "SCORE",
        "--score",
        "CLASS=SCORE",
    )


def test_classes_with_scores_become_scored_pairs_and_other_classes_are_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, *NLI, {**PAIR, "text_b": "", "label": "entailment"})
    data = import_dino(file, scores={"entailment": 1, "contradiction": 0})
    assert [(pair.label, pair.score) for pair in data] == [("entailment", 1.0), ("contradiction", 0.0)]
    assert data.manifest.dropped == {"of class neutral": 2, "blank text": 1}
    with refused("scores.entailmnt", "'entailment'"):
        import_dino(file, scores={"entailmnt": 1, "neutral": 0.5})
    source = FileSource(file=str(file), format="dino", scores={"entailment": 1, "neutral": 0.5})
    assert [pair.score for pair in source.load(Roots())] == [1.0, 0.5, 0.5]


def test_a_missing_label_is_no_class_of_the_name_none(tmp_path: Path) -> None:
    named, missing = {**PAIR, "label": "None"}, {**PAIR, "label": None}
    data = import_dino(written(tmp_path, named, missing), scores={"None": 1})
    assert (len(data), data.manifest.dropped) == (1, {"of class ": 1})
    with refused("scores.None"):
        import_dino(written(tmp_path, missing, {**PAIR, "label": "yes"}), scores={"None": 1, "yes": 1})


def test_a_file_without_the_requested_kind_is_refused(tmp_path: Path) -> None:
    with refused("text_b", "sentence"):
        import_dino(written(tmp_path, SINGLE), RecordKind.SCORED_PAIR)
    with refused("text_b"):
        import_dino(written(tmp_path, PAIR), RecordKind.SENTENCE)
    with refused("scored_pair", "sentence", "triplet"):
        import_dino(written(tmp_path, PAIR), RecordKind.TRIPLET)
    with refused("records"):
        import_dino(written(tmp_path))
    (tmp_path / "other.csv").write_text("text_a,text_b,label\n", encoding="utf-8")
    with refused("other.csv", "DINO"):
        import_dino(tmp_path / "other.csv")
    with refused("such"):
        import_dino(tmp_path / "missing.jsonl")


def test_the_ordinary_import_recognises_dinos_format(tmp_path: Path) -> None:
    with refused("DINO"):
        import_file(written(tmp_path, PAIR), hint=format_hint)


def test_the_released_labels_are_not_smoothed(tmp_path: Path) -> None:
    records = [
        ScoredPair(sentence1="a", sentence2="b", score=0.9, label="1"),
        ScoredPair(sentence1="a", sentence2="c", score=0.0, label="random"),
        ScoredPair(sentence1="a", sentence2="d", score=0.25),
    ]
    rows = exported(SyntheticDataset.create(RecordKind.SCORED_PAIR, records), tmp_path)
    assert [row["label"] for row in rows] == ["1", "0", "0.25"]


def test_only_scored_pairs_and_sentences_are_exported_in_dinos_format(tmp_path: Path) -> None:
    data = SyntheticDataset.create(RecordKind.PAIR, [Pair(anchor="a", positive="p")])
    with refused("scored_pair", "sentence", "pair"):
        DINOFile().write(data, tmp_path / "out.jsonl")


@PROPERTY
@given(st.lists(st.tuples(SENTENCES, SENTENCES, LABELS), min_size=1, max_size=6))
def test_scored_pairs_survive_export_and_import(rows: Sequence[tuple[str, str, str]]) -> None:
    released = [{"text_a": first, "text_b": second, "label": label} for first, second, label in rows]
    with TemporaryDirectory() as folder:
        assert exported(import_dino(written(Path(folder), *released)), Path(folder)) == released


@PROPERTY
@given(st.lists(st.tuples(SENTENCES, ANY_TEXT), min_size=1, max_size=6))
def test_sentences_survive_export_and_import(rows: Sequence[tuple[str, str]]) -> None:
    released = [{"text_a": text, "text_b": None, "label": label or None} for text, label in rows]
    with TemporaryDirectory() as folder:
        data = import_dino(written(Path(folder), *released))
        assert [type(record) for record in data] == [Sentence] * len(rows)
        assert exported(data, Path(folder)) == released


def test_real_output_of_gpt2_xl_survives_import_and_export_to_the_byte(
    real_data: Path, tmp_path: Path
) -> None:
    file = real_data / "synthetic" / "dino-gpt2xl" / "sts-decay-0-dataset.jsonl"
    data = import_dino(file)
    assert len(data) == 21_718
    DINOFile().write(data, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == file.read_bytes()
