import json
from pathlib import Path
from typing import Any

import pytest
from wording import refused

from synthbench.sources.description import Roots
from synthbench.sources.guessing import guess
from synthbench.sources.models import FileSource

TEXTS = ["How do I reset it?", "Where is my order now?", "Can I pay by card?", "It does not start."]
NUM_PAIRS = 150
COMMAS = b'{"a": "A b.", "b": "C d.", "c": "4,5"}\n{"a": "E f.", "b": "G h.", "c": "3"}\n'


def _table(path: Path, header: list[str] | None, rows: list[list[str]]) -> Path:
    lines = [*([header] if header else []), *rows]
    mark = "\t" if path.suffix == ".tsv" else ","
    path.write_text("".join(f"{mark.join(cells)}\n" for cells in lines), encoding="utf-8")
    return path


def _pairs(scores: list[str], number: int = NUM_PAIRS) -> list[list[str]]:
    return [
        [f"{row} {TEXTS[row % 4]}", f"{TEXTS[(row + 1) % 4]} {row}", scores[row % len(scores)]]
        for row in range(number)
    ]


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
    assert [record.score for record in _read(found.settings)][:4] == [1, 0, 0, 1]


def test_ids_and_further_columns_are_neither_texts_nor_scores(tmp_path: Path) -> None:
    header = ["", "qid1", "category", "question1", "question2", "answer", "relatedness", "verdict"]
    rows = [
        [str(row), str(row % 3), "shop", first, second, "an answer", score, "NEUTRAL"]
        for row, (first, second, score) in enumerate(_pairs(["1.5", "3.5", "5", "2"], 90))
    ]
    found = guess(_table(tmp_path / "pairs.tsv", [header[0] or "row", *header[1:]], rows), "gold")
    assert found.settings["columns"] == {
        "sentence1": "question1",
        "sentence2": "question2",
        "score": "relatedness",
    }
    assert found.settings["score_range"] == [1, 5]
    assert not found.is_binary


def test_an_index_without_a_name_leaves_the_header_a_header(tmp_path: Path) -> None:
    rows = [[str(row), *pair] for row, pair in enumerate(_pairs(["0", "1"]))]
    found = guess(_table(tmp_path / "pairs.csv", ["", "Left text", "Right text", "dup"], rows), "gold")
    assert found.settings["columns"] == {"sentence1": "Left text", "sentence2": "Right text", "score": "dup"}
    assert len(_read(found.settings)) == NUM_PAIRS


def test_a_file_without_header_has_numbered_columns(tmp_path: Path) -> None:
    found = guess(_table(tmp_path / "pairs.tsv", None, _pairs(["0", "2.5", "5", "4"])), "gold")
    assert found.settings["columns"] == {"sentence1": 0, "sentence2": 1, "score": 2}
    assert len(_read(found.settings)) == NUM_PAIRS


@pytest.mark.parametrize(
    ("scores", "range_found"),
    [
        (["0", "0.25", "1"], [0, 1]),
        (["1", "2.5", "5"], [1, 5]),
        (["0", "2.5", "4.8"], [0, 5]),
        (["-0.4", "0.2", "0.9"], [-1, 1]),
        (["3", "40", "97"], [0, 100]),
        (["1", "2"], [1, 2]),
    ],
)
def test_the_score_range_is_the_narrowest_usual_one(
    tmp_path: Path, scores: list[str], range_found: list[float]
) -> None:
    found = guess(_table(tmp_path / "pairs.csv", ["a", "b", "score"], _pairs(scores)), "gold")
    assert found.settings["score_range"] == range_found


def test_two_classes_in_words_become_one_and_zero(tmp_path: Path) -> None:
    path = _table(tmp_path / "pairs.csv", ["a", "b", "label"], _pairs(["yes", "no", "no"]))
    found = guess(path, "gold")
    assert found.settings["scores"] == {"yes": 1, "no": 0}
    assert [record.score for record in _read(found.settings)][:3] == [1, 0, 0]


def test_json_lines_have_named_columns_and_may_have_true_and_false(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"left": first, "right": second, "same": same == "yes"}
        for first, second, same in _pairs(["yes", "no"])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = guess(path, "gold")
    assert found.is_binary
    assert [record.score for record in _read(found.settings)][:2] == [1, 0]


def test_parquet_files_are_read_alike(tmp_path: Path) -> None:
    import pandas as pd

    rows = [[first, second, float(score)] for first, second, score in _pairs(["0.5", "3", "4"])]
    pd.DataFrame(rows, columns=["text_a", "text_b", "rating"]).to_parquet(tmp_path / "pairs.parquet")
    found = guess(tmp_path / "pairs.parquet", "gold")
    assert found.settings["score_range"] == [0, 4]
    assert len(_read(found.settings)) == NUM_PAIRS


@pytest.mark.parametrize(
    ("header", "row"),
    [(["text"], [""]), (["id", "message"], ["7", ""]), (["id", "description", "state"], ["7", "", "open"])],
)
def test_the_column_of_sentences_is_found(tmp_path: Path, header: list[str], row: list[str]) -> None:
    rows = [[cell or text for cell in row] for text in TEXTS]
    found = guess(_table(tmp_path / "tickets.csv", header, rows), "sentences")
    assert [record.sentence for record in _read(found.settings)] == TEXTS


def test_a_latin_name_above_chinese_texts_is_a_header(tmp_path: Path) -> None:
    texts = ["今天天气很好", "他昨天买了一本书"]
    found = guess(_table(tmp_path / "tickets.csv", ["ticket"], [[text] for text in texts]), "sentences")
    assert [record.sentence for record in _read(found.settings)] == texts


def test_one_column_without_header_loses_no_sentence(tmp_path: Path) -> None:
    texts = ["reset password; no mail", "order lost", "card refused"]
    found = guess(_table(tmp_path / "tickets.csv", None, [[text] for text in texts]), "sentences")
    assert [record.sentence for record in _read(found.settings)] == texts


@pytest.mark.parametrize("name", ["tickets.csv", "tickets.txt"])
def test_blank_and_invisible_texts_are_left_out_and_repeated_ones_counted(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        ("text,state\n" * (path.suffix == ".csv"))
        + "".join(
            f"{text}{',x' * (path.suffix == '.csv')}\n" for text in ("A b.", "\u200b", "", "C d.", "A b.")
        ),
        encoding="utf-8",
    )
    found = guess(path, "sentences")
    assert len(_read(found.settings)) == 3
    assert any(finding.startswith("2 rows") for finding in found.findings)
    assert any(finding.startswith("1 repeat an earlier one") for finding in found.findings)


def test_pairs_with_a_blank_text_or_score_are_left_out(tmp_path: Path) -> None:
    rows = _pairs(["0", "1"])
    rows[0][0], rows[1][2] = " ", ""
    found = guess(_table(tmp_path / "pairs.csv", ["a", "b", "score"], rows), "gold")
    assert len(_read(found.settings)) == NUM_PAIRS - 2
    assert sum("left out" in finding for finding in found.findings) == 2


def test_what_the_user_names_is_kept(tmp_path: Path) -> None:
    rows = [[*pair[:2], "some third text", pair[2]] for pair in _pairs(["0", "1", "3"])]
    columns = {"sentence1": "one", "sentence2": "three"}
    given = {"columns": columns, "score_range": [0, 3]}
    found = guess(_table(tmp_path / "pairs.csv", ["one", "two", "three", "score"], rows), "gold", given)
    assert found.settings["columns"] == columns | {"score": "score"}
    assert found.settings["score_range"] == [0, 3]
    classes = {"scores": {"A": 1, "B": 0.5, "C": 0}}
    path = _table(tmp_path / "graded.csv", ["one", "two", "label"], _pairs(["A", "B", "C"]))
    assert guess(path, "gold", classes).settings["scores"] == classes["scores"]


def test_a_corpus_has_passages(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1", "text": "A passage."}\n', encoding="utf-8")
    assert guess(tmp_path, "passages").settings == {"corpus": str(tmp_path), "take": "passages"}


def test_few_pairs_are_said_to_show_large_differences_only(tmp_path: Path) -> None:
    header = ["a", "b", "score"]
    few, many = (
        guess(_table(tmp_path / "pairs.csv", header, _pairs(["0", "2", "5"], number)), "gold")
        for number in (120, 2000)
    )
    assert "above 16.7 points" in few.findings[-1]
    assert "1,334 pairs would show 5" in few.findings[-1]
    assert "above 4.1 points" in many.findings[-1]
    assert "would" not in many.findings[-1]
    tested = guess(_table(tmp_path / "pairs.csv", header, _pairs(["0", "2", "5"], 400)), "test")
    assert "above 5.0 points" in tested.findings[-1]


@pytest.mark.parametrize(
    ("role", "given", "points"),
    [
        ("test", {}, "10.0"),
        ("test", {"where": {"llm": "x"}}, "14.1"),
        ("test", {"where": {"llm": ["x", "y"], "number": 1}}, "20.0"),
        ("test", {"columns": {"subset": "llm"}, "subsets": ["x"]}, "14.1"),
        ("test", {"sample": {"size": 64}}, "12.5"),
        ("gold", {"sample": {"size": 64}}, "18.3"),
    ],
)
def test_only_pairs_that_the_source_reads_show_differences(
    tmp_path: Path, role: str, given: dict[str, Any], points: str
) -> None:
    """100 of 120 pairs have a score: 50 of LLM x, 50 of LLM y; a quarter of them has the number 1."""
    rows = [
        [*pair[:2], "" if row >= 100 else pair[2], "xy"[row % 2], str(row % 4 // 3)]
        for row, pair in enumerate(_pairs(["0", "2", "5"], 120))
    ]
    header = ["a", "b", "score", "llm", "number"]
    found = guess(_table(tmp_path / "pairs.csv", header, rows), role, given)
    assert f"above {points} points" in found.findings[-1]


def test_pairs_of_classes_without_a_score_show_no_difference(tmp_path: Path) -> None:
    path = _table(tmp_path / "pairs.csv", ["a", "b", "label"], _pairs(["yes", "no", "?"], 300))
    found = guess(path, "test", {"scores": {"yes": 1, "no": 0}})
    assert "above 7.1 points" in found.findings[-1]


def test_gold_with_too_few_scored_or_chosen_pairs_is_refused(tmp_path: Path) -> None:
    header = ["a", "b", "score", "llm"]
    rows = [[*pair, "x" if row < 10 else "y"] for row, pair in enumerate(_pairs(["0", "1", "2"], 200))]
    path = _table(tmp_path / "pairs.csv", header, rows)
    with refused("pairs.csv", "10 pairs are too few"):
        guess(path, "gold", {"where": {"llm": "x"}})
    unscored = [[*row[:2], row[2] if number < 20 else "", row[3]] for number, row in enumerate(rows)]
    with refused("pairs.csv", "20 pairs are too few"):
        guess(_table(path, header, unscored), "gold")


def test_gold_with_a_test_set_of_its_own_may_be_small(tmp_path: Path) -> None:
    path = _table(tmp_path / "pairs.csv", ["a", "b", "score"], _pairs(["0", "2", "5"], 12))
    assert len(guess(path, "gold", others=("test",)).findings) == 1


def test_the_test_part_of_gold_is_larger_with_a_dev_set_of_its_own(tmp_path: Path) -> None:
    path = _table(tmp_path / "pairs.csv", ["a", "b", "score"], _pairs(["0", "2", "5"], 800))
    assert "the 240 in the test part" in guess(path, "gold").findings[-1]
    assert "the 300 in the test part" in guess(path, "gold", others=("dev",)).findings[-1]
    part = {"part": {"take": "train", "shares": {"train": 0.5, "test": 0.5}}}
    assert len(guess(path, "gold", part).findings) == 1


def test_columns_of_which_one_is_named_are_refused_and_so_are_columns_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [{"left": first, "right": second, "n": 5} for first, second, _ in _pairs(["1"])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with refused("pairs.jsonl", "sentence1 and sentence2"):
        guess(path, "gold", {"columns": {"sentence1": "right"}})
    with refused("pairs.jsonl", "'n' holds no texts"):
        guess(path, "sentences", {"columns": {"sentence": "n"}})


def test_of_two_classes_the_rarer_one_decides_what_can_be_told(tmp_path: Path) -> None:
    rows = _pairs(["1", *["0"] * 9], 2000)
    found = guess(_table(tmp_path / "pairs.csv", ["a", "b", "score"], rows), "gold")
    assert "above 9.1 points" in found.findings[-1]


@pytest.mark.parametrize(
    ("texts", "language"),
    [(TEXTS, "en"), (["Mein Konto ist gesperrt.", "Wo bleibt meine Bestellung?"], "de"), (["VPN"], None)],
)
def test_a_language_is_said_if_it_is_sure(tmp_path: Path, texts: list[str], language: str | None) -> None:
    path = tmp_path / "tickets.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    assert guess(path, "sentences").language == language


def test_a_column_that_cant_be_guessed_is_refused_with_the_candidates(tmp_path: Path) -> None:
    three = [[*pair[:2], pair[0], pair[2]] for pair in _pairs(["0", "1"])]
    with refused("pairs.csv", "'one', 'two', 'three'", "sentence1"):
        guess(_table(tmp_path / "pairs.csv", ["one", "two", "three", "score"], three), "gold")
    with refused("pairs.csv", "'one', 'two', 'three'", "sentence"):
        guess(_table(tmp_path / "pairs.csv", ["one", "two", "three", "score"], three), "sentences")
    scored = [[*pair, "2"] for pair in _pairs(["1", "5", "2"])]
    with refused("pairs.csv", "'ann', 'bob'", "score"):
        guess(_table(tmp_path / "pairs.csv", ["a", "b", "ann", "bob"], scored), "gold")
    with refused("pairs.csv", "'a', 'b'", "score"):
        guess(_table(tmp_path / "pairs.csv", ["a", "b"], [row[:2] for row in scored]), "gold")
    with refused("pairs.csv", "'c'", "'a', 'b', 'label'"):
        columns = {"columns": {"score": "c"}}
        guess(_table(tmp_path / "pairs.csv", ["a", "b", "label"], _pairs(["1", "0"])), "gold", columns)


def test_of_several_candidates_one_with_a_usual_name_is_taken_and_the_others_are_said(tmp_path: Path) -> None:
    scored = [
        [*pair, confidence]
        for pair, confidence in zip(_pairs(["1", "5"]), ["0.5", "0.7", "1"] * 50, strict=True)
    ]
    found = guess(_table(tmp_path / "pairs.csv", ["a", "b", "rating", "confidence"], scored), "gold")
    assert "score in 'rating', not in 'confidence'," in found.findings[0]
    two = ["a", "b", "rating", "similarity"]
    with refused("pairs.csv", "'rating', 'similarity'", "score"):
        guess(_table(tmp_path / "pairs.csv", two, scored), "gold")
    given = {"columns": {"score": "similarity"}}
    named = guess(_table(tmp_path / "pairs.csv", two, scored), "gold", given)
    assert "score in 'similarity', graded" in named.findings[0]
    path = _table(tmp_path / "tickets.csv", ["title", "body"], [pair[:2] for pair in scored])
    assert "in 'body', not in 'title'" in guess(path, "sentences").findings[0]


def test_gold_of_one_class_of_unknown_classes_or_of_too_few_pairs_is_refused(tmp_path: Path) -> None:
    header = ["a", "b", "label"]
    for only, score in (("1", 1), ("duplicate", 1), ("no", 0)):
        with refused("pairs.csv", "all 150 pairs", f"score {score}"):
            guess(_table(tmp_path / "pairs.csv", header, _pairs([only])), "gold")
    with refused("pairs.csv", "HS, NS, SS", "scores: {"):
        guess(_table(tmp_path / "pairs.csv", header, _pairs(["HS", "NS", "SS"])), "gold")
    with refused("pairs.csv", "30 pairs are too few", "84 pairs", "1,334"):
        guess(_table(tmp_path / "pairs.csv", header, _pairs(["0", "1", "2"], 30)), "gold")
    with refused("pairs.csv", "20 pairs are too few", "25 pairs", "400"):
        guess(_table(tmp_path / "pairs.csv", header, _pairs(["0", "1", "2"], 20)), "test")


@pytest.mark.parametrize(
    ("name", "content", "role", "facts"),
    [
        ("pairs.csv", b"a;b;score\nA b.;C d.;1\n", "gold", ("pairs.csv:1", "semicolons")),
        ("pairs.csv", b"a\tb\tscore\nA b.\tC d.\t1\n", "gold", ("pairs.csv:1", ".tsv")),
        ("pairs.csv", b"a,a,score\nA b.,C d.,1\n", "gold", ("pairs.csv:1", "'a'")),
        ("pairs.csv", b'a,b,score\n"A b.,C d.,1\n', "gold", ("pairs.csv:2", "never closed")),
        ("pairs.csv", b"a,b,score\nA b.,1\nC d.,2\n", "gold", ("pairs.csv:2", "1 more")),
        ("pairs.csv", b"", "gold", ("pairs.csv", "no rows")),
        ("pairs.csv", b"a,b,score\n", "gold", ("pairs.csv", "no rows")),
        ("pairs.jsonl", b'["A b."]\n{"a": "b"}\n', "gold", ("pairs.jsonl:1",)),
        ("pairs.txt", b"A b.\n", "gold", ("pairs.txt", ".tsv")),
        ("pairs.json", b"[]", "gold", ("pairs.json", ".jsonl")),
        ("pairs.jsonl", COMMAS, "gold", ("pairs.jsonl", "'c'", "4.5")),
        ("pairs.xlsx", b"PK", "gold", ("pairs.xlsx", ".csv")),
        ("texts.txt", b"\n \n", "sentences", ("texts.txt", "no texts")),
        ("texts.txt", b"Caf\xe9 au lait\n", "sentences", ("texts.txt:1", "UTF-8")),
        ("texts.csv", b"id,size\n1,2\n2,4\n", "sentences", ("texts.csv", "'id', 'size'")),
        ("texts.parquet", b"PAR1", "sentences", ("texts.parquet",)),
    ],
)
def test_a_file_that_cant_be_read_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, role: str, facts: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with refused(*facts) as caught:
        guess(path, role)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("texts.txt", "texts.csv", "texts.parquet"):
        with refused(name, "no such file"):
            guess(tmp_path / name, "sentences")
