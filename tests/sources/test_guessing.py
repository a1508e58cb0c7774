import json
from pathlib import Path
from typing import Any

import pytest
from wording import refused

from synthbench.sources.description import Roots
from synthbench.sources.guessing import guess
from synthbench.sources.models import FileSource

TEXTS = ["How do I reset it?", "Where is my order now?", "Can I pay by card?", "It does not start."]


def _table(path: Path, header: list[str] | None, rows: list[list[str]]) -> Path:
    lines = [*([header] if header else []), *rows]
    mark = "\t" if path.suffix == ".tsv" else ","
    path.write_text("".join(f"{mark.join(cells)}\n" for cells in lines))
    return path


def _pairs(scores: list[str]) -> list[list[str]]:
    return [[TEXTS[row % 4], TEXTS[(row + 1) % 4], score] for row, score in enumerate(scores)]


def _read(settings: Any) -> list[Any]:
    source = FileSource.model_validate(json.loads(json.dumps(settings)), strict=False)
    return source.read(Roots()).records


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv"])
@pytest.mark.parametrize(
    ("header", "score"),
    [
        (["q1", "q2", "is_duplicate"], "is_duplicate"),
        (["Sentence A", "Sentence B", "Quality"], "Quality"),
        (["premise", "hypothesis", "y"], "y"),
    ],
)
def test_columns_of_gold_pairs_are_found_under_other_names(
    tmp_path: Path, name: str, header: list[str], score: str
) -> None:
    found = guess(_table(tmp_path / name, header, _pairs(["1", "0", "0", "1"])), "gold")
    assert found.settings["columns"] == {"sentence1": header[0], "sentence2": header[1], "score": score}
    assert found.is_binary
    assert [record.score for record in _read(found.settings)] == [1, 0, 0, 1]


def test_ids_and_further_columns_are_neither_texts_nor_scores(tmp_path: Path) -> None:
    header = ["id", "qid1", "category", "question1", "question2", "relatedness", "verdict"]
    rows = [
        [str(row), str(row % 3), "shop", *pair, "NEUTRAL"]
        for row, pair in enumerate(_pairs(["1.5", "3.5", "5", "2"]))
    ]
    found = guess(_table(tmp_path / "pairs.tsv", header, rows), "gold")
    assert found.settings["columns"] == {
        "sentence1": "question1",
        "sentence2": "question2",
        "score": "relatedness",
    }
    assert found.settings["score_range"] == [1, 5]
    assert not found.is_binary


def test_a_file_without_header_has_numbered_columns(tmp_path: Path) -> None:
    found = guess(_table(tmp_path / "pairs.tsv", None, _pairs(["0", "2.5", "5", "4"])), "gold")
    assert found.settings["columns"] == {"sentence1": 0, "sentence2": 1, "score": 2}
    assert len(_read(found.settings)) == 4


@pytest.mark.parametrize(
    ("scores", "range_found"),
    [
        (["0", "0.25", "1"], [0, 1]),
        (["1", "2.5", "5"], [1, 5]),
        (["0", "2.5", "4.8"], [0, 5]),
        (["-0.4", "0.2", "0.9"], [-1, 1]),
        (["3", "40", "97"], [0, 100]),
    ],
)
def test_the_score_range_is_the_narrowest_usual_one(
    tmp_path: Path, scores: list[str], range_found: list[float]
) -> None:
    found = guess(_table(tmp_path / "pairs.csv", ["a", "b", "score"], _pairs(scores)), "gold")
    assert found.settings["score_range"] == range_found


def test_two_classes_in_words_become_one_and_zero(tmp_path: Path) -> None:
    found = guess(
        _table(tmp_path / "pairs.csv", ["a", "b", "label"], _pairs(["yes", "no", "no"] * 2)), "gold"
    )
    assert found.settings["scores"] == {"yes": 1, "no": 0}
    assert [record.score for record in _read(found.settings)] == [1, 0, 0] * 2


def test_json_lines_have_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [dict(zip(("left", "right", "same"), pair, strict=True)) for pair in _pairs(["true", "false"] * 2)]
    path.write_text("".join(json.dumps(row | {"same": row["same"] == "true"}) + "\n" for row in rows))
    found = guess(path, "gold")
    assert found.is_binary
    assert [record.score for record in _read(found.settings)] == [1, 0, 1, 0]


@pytest.mark.parametrize("header", [["text"], ["id", "message"], ["ticket_id", "description", "state"]])
def test_the_column_of_sentences_is_found(tmp_path: Path, header: list[str]) -> None:
    rows = [[str(row), text, "open"][-len(header) :][: len(header)] for row, text in enumerate(TEXTS)]
    if len(header) == 2:
        rows = [[str(row), text] for row, text in enumerate(TEXTS)]
    if len(header) == 1:
        rows = [[text] for text in TEXTS]
    found = guess(_table(tmp_path / "tickets.csv", header, rows), "sentences")
    assert [record.sentence for record in _read(found.settings)] == TEXTS


def test_blank_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    found = guess(
        _table(tmp_path / "tickets.csv", ["text", "state"], [["A b.", "x"], ["\u200b", "x"]]), "sentences"
    )
    assert len(_read(found.settings)) == 1
    assert any("1 rows" in finding for finding in found.findings)


def test_what_the_user_names_is_kept(tmp_path: Path) -> None:
    header = ["one", "two", "three", "score"]
    rows = [[*TEXTS[:3], score] for score in ("0", "1", "1")]
    columns = {"sentence1": "one", "sentence2": "three"}
    found = guess(_table(tmp_path / "pairs.csv", header, rows), "gold", {"columns": columns})
    assert found.settings["columns"] == columns


def test_a_column_that_cant_be_guessed_is_refused_with_the_candidates(tmp_path: Path) -> None:
    header = ["one", "two", "three", "score"]
    rows = [[TEXTS[row], TEXTS[row - 1], TEXTS[row - 2], score] for row, score in enumerate(["0", "1", "1"])]
    with refused("pairs.csv", "'one', 'two', 'three'", "sentence1"):
        guess(_table(tmp_path / "pairs.csv", header, rows), "gold")
    two_scores = [[*pair, "3"] for pair in _pairs(["1", "5", "2"])]
    two_scores[0][3] = "4"
    with refused("pairs.csv", "'ann', 'bob'", "score"):
        guess(_table(tmp_path / "pairs.csv", ["a", "b", "ann", "bob"], two_scores), "gold")


def test_gold_of_one_class_and_of_unknown_classes_is_refused(tmp_path: Path) -> None:
    with refused("pairs.csv", "all 3 pairs"):
        guess(_table(tmp_path / "pairs.csv", ["a", "b", "score"], _pairs(["1", "1", "1"])), "gold")
    with refused("pairs.csv", "HS, NS, SS", "scores: {"):
        guess(_table(tmp_path / "pairs.csv", ["a", "b", "label"], _pairs(["HS", "NS", "SS"] * 2)), "gold")


def test_another_separator_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a;b;score\nA b.;C d.;1\n")
    with refused("pairs.csv:1", "semicolons"):
        guess(path, "gold")
