"""Odd files: ambiguous ones are refused in one line or counted; clear ones are read, compressed or not."""

import gzip
import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset, open_dataset
from synthbench.data.importing import import_file
from synthbench.data.records import RecordKind
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

PAIR = {"kind": RecordKind.SCORED_PAIR}
ONE = {"kind": RecordKind.SENTENCE}
LABEL = {**ONE, "columns": {"label": "label"}}
HEAD = "sentence1\tsentence2\tscore\n"
ROW = "a\tb\t1\n"
NUMBERED = {**PAIR, "columns": {"sentence1": 0, "sentence2": 1, "score": 2}}
Odd = tuple[str, "str | bytes", Mapping[str, Any], str]


def rows(*objects: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


REFUSED: dict[str, Odd] = {
    "an underscore in a number": (
        "a.tsv",
        HEAD + "a\tb\t1_0\n",
        {**PAIR, "score_range": (0, 10)},
        ":2: score '1_0'",
    ),
    "full-width digits": ("a.tsv", HEAD + "a\tb\t１\n", PAIR, ":2: score '１' is not a number"),
    "Arabic digits": ("a.tsv", HEAD + "a\tb\t٠\n", PAIR, ":2: score '٠' is not a number"),
    "a plus": ("a.tsv", HEAD + "a\tb\t+1\n", PAIR, ":2: score '+1' is not a number"),
    "infinity": ("a.tsv", HEAD + "a\tb\tinf\n", PAIR, ":2: score 'inf' is not a number"),
    "not a number": ("a.tsv", HEAD + "a\tb\tnan\n", PAIR, ":2: score is NaN"),
    "infinity in JSON": (
        "a.jsonl",
        '{"sentence1":"a","sentence2":"b","score":Infinity}\n',
        PAIR,
        ":1: score inf",
    ),
    "truth as a score": (
        "a.jsonl",
        rows({"sentence1": "a", "sentence2": "b", "score": True}),
        PAIR,
        ":1: score True",
    ),
    "a decimal comma": (
        "a.tsv",
        HEAD + ROW + "a\tb\t0,5\n",
        PAIR,
        ":3: score '0,5' is not a number; write 0.5",
    ),
    "U+200B alone": ("a.tsv", HEAD + "\u200b\tb\t1\n", PAIR, ":2: sentence1 is empty but for U+200B"),
    "a mark of order alone": (
        "a.jsonl",
        rows({"sentence": "\ufeff"}),
        ONE,
        ":1: sentence is empty but for U+FEFF",
    ),
    "a soft hyphen alone": ("a.txt", "one\n\u00ad\n", {}, ":2: sentence is empty but for U+00AD"),
    "a Hangul filler alone": ("a.txt", "\u3164\n", {}, ":1: sentence is empty but for U+3164"),
    "a doubled key": (
        "a.jsonl",
        '{"sentence":"a","sentence":"b"}\n',
        ONE,
        ":1: the key 'sentence' is there twice",
    ),
    "a doubled column": ("a.tsv", "sentence\tsentence\na\tb\n", ONE, ":1: 2 columns are named 'sentence'"),
    "a doubled column of a CSV": ("a.csv", "sentence,x,sentence\na,b,c\n", ONE, ":1: 2 columns are named"),
    "a doubled id": (
        "a.tsv",
        "id\tsentence\n1\ta\n1\tb\n",
        {**ONE, "columns": {"id": "id"}},
        ":3: duplicate id '1'",
    ),
    "a number and a text as id": (
        "a.jsonl",
        rows({"id": 1, "sentence": "a"}, {"id": "2", "sentence": "b"}),
        {**ONE, "columns": {"id": "id"}},
        ":2: id is a text, '2', in line 1 a whole number",
    ),
    "labels of mixed kinds": (
        "a.jsonl",
        rows({"label": "1", "sentence": "a"}, {"label": 1, "sentence": "b"}),
        LABEL,
        ":2: label is a whole number, 1, in line 1 a text",
    ),
    "labels 1 and 1.0": (
        "a.jsonl",
        rows({"label": 1, "sentence": "a"}, {"label": 1.5, "sentence": "b"}),
        LABEL,
        ":2: label is a number, 1.5",
    ),
    "true and 1": (
        "a.jsonl",
        rows({"label": True, "sentence": "a"}, {"label": 1, "sentence": "b"}),
        LABEL,
        ":2: label is a whole number, 1, in line 1 a true or false",
    ),
    "a list as a label": (
        "a.jsonl",
        rows({"label": ["x"], "sentence": "a"}),
        LABEL,
        ":1: label is ['x'], neither",
    ),
    "a header as data": (
        "a.tsv",
        "sentence1\tsentence2\tscore\na\tb\t1\n",
        NUMBERED,
        ":1: 'sentence1' is a column's",
    ),
    "a header of a CSV as data": (
        "a.csv",
        "Sentence,x\na,b\n",
        {**ONE, "columns": {"sentence": 0}},
        ":1: 'Sentence'",
    ),
    "data as header": ("a.tsv", "a\tb\t1\n", PAIR, ":1: no column 'sentence1'"),
    "carriage returns alone": (
        "a.tsv",
        HEAD.replace("\n", "\r") + "a\tb\t1\r",
        PAIR,
        ":1: its lines end in carriage",
    ),
    "carriage returns alone in a text": ("a.txt", "one\rtwo\r", {}, ":1: its lines end in carriage returns"),
    "two files joined": ("a.tsv", HEAD + ROW + "\ufeff" + ROW, PAIR, ":3: begins with a byte order mark"),
    "UTF-16": ("a.tsv", (HEAD + ROW).encode("utf-16"), PAIR, ":1: is UTF-16, not UTF-8"),
    "UTF-16 without a mark of order": ("a.tsv", (HEAD + ROW).encode("utf-16-le"), PAIR, ":1: is UTF-16"),
    "U+0000 in a text": ("a.tsv", HEAD + "a\0b\tb\t1\n", PAIR, ":2: sentence1 holds the character U+0000"),
    "U+0000 of JSON": ("a.jsonl", rows({"sentence": "a\0"}), ONE, ":1: sentence holds the character U+0000"),
    "an id that is a list": (
        "a.jsonl",
        rows({"id": [1], "query": "a", "positive": ["b"], "negative": ["c"]}),
        {"format": "reranking"},
        ":1: id is [1], neither a text nor a number",
    ),
    "Latin-1": ("a.tsv", (HEAD + "caf\xe9\tb\t1\n").encode("latin-1"), PAIR, ":2: not UTF-8"),
    "a quotation mark that never ends": (
        "a.csv",
        'sentence\n"a\n' + "b\n" * 9,
        ONE,
        ":2: not CSV: a quotation mark",
    ),
    "half a character": ("a.jsonl", '{"sentence": "\\ud83d"}\n', ONE, ":1: sentence holds a lone surrogate"),
    "a list of JSON": ("a.jsonl", '["a"]\n', ONE, ":1: not a JSON object"),
    "brackets without end": ("a.jsonl", "[" * 100_000 + "\n", ONE, ":1: not JSON that can be read"),
    "a short row": ("a.tsv", HEAD + ROW + "a\tb\n", PAIR, ":3: 2 columns, 3 in line 1"),
    "named .gz and is none": ("a.tsv.gz", HEAD + ROW, PAIR, "a.tsv.gz: its name ends in .gz, but it is not"),
    "is gzip and not named so": (
        "a.tsv",
        packed(HEAD + ROW),
        PAIR,
        "a.tsv: is compressed by gzip; let its name end",
    ),
    "gzip that is cut off": ("a.tsv.gz", packed(HEAD + ROW * 99)[:-9], PAIR, "a.tsv.gz: is cut off"),
    "gzip with other bytes": ("a.tsv.gz", packed(HEAD + ROW)[:-8] + b"\0" * 8, PAIR, "a.tsv.gz: is damaged"),
    "gzip with a tail": ("a.tsv.gz", packed(HEAD + ROW) + b"tail", PAIR, "a.tsv.gz: is damaged"),
    "gzip of nothing": ("a.tsv.gz", packed(""), PAIR, "a.tsv.gz: holds no scored_pair records"),
    "a gzip of UTF-16": ("a.txt.gz", gzip.compress("ab".encode("utf-16")), {}, "a.txt.gz:1: not UTF-8"),
    "a pair of one half": ("a.jsonl.gz", packed(rows({"sentence1": "a"})), PAIR, ":1: no field 'sentence2'"),
    "an outside score": ("a.tsv", HEAD + "a\tb\t1.5\n", PAIR, ":2: score 1.5 is outside 0 to 1"),
}


def load(folder: Path, name: str, content: str | bytes, settings: Mapping[str, Any]) -> SyntheticDataset:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return FileSource(file=name, **settings).load(Roots(base=folder))


@pytest.mark.parametrize("odd", REFUSED)
def test_an_odd_file_is_refused_in_one_line_with_file_and_line(tmp_path: Path, odd: str) -> None:
    name, content, settings, message = REFUSED[odd]
    with pytest.raises(UserError) as caught:
        load(tmp_path, name, content, settings)
    told = caught.value.messages[0]
    assert message in told
    assert told.startswith(f"{tmp_path}/{name}")
    assert "\n" not in told


READ: dict[str, Odd] = {
    "TSV": ("a.tsv.gz", packed(HEAD + ROW), PAIR, ""),
    "CSV": ("a.csv.gz", packed("sentence1,sentence2,score\na,b,1\n"), PAIR, ""),
    "JSON lines": ("a.jsonl.gz", packed(rows({"sentence1": "a", "sentence2": "b", "score": 1})), PAIR, ""),
    "members of gzip": ("a.tsv.gz", packed(HEAD) + packed(ROW), PAIR, ""),
    "a byte order mark": ("a.tsv", "\ufeff" + HEAD + ROW, PAIR, ""),
    "a byte order mark in gzip": ("a.tsv.gz", packed("\ufeff" + HEAD + ROW), PAIR, ""),
    "a blank last line": ("a.tsv", HEAD + ROW + "\n", PAIR, ""),
    "blank lines of JSON": (
        "a.jsonl",
        "\n" + rows({"sentence1": "a", "sentence2": "b", "score": 1}) + "\n",
        PAIR,
        "",
    ),
    "ends of lines of Windows": ("a.tsv", (HEAD + ROW).replace("\n", "\r\n"), PAIR, ""),
    "a column twice that nobody reads": ("a.tsv", "x\tx\t" + HEAD + "\t\t" + ROW, PAIR, ""),
    "a doubled key within": (
        "a.jsonl",
        '{"sentence1":"a","sentence2":"b","score":1,"meta":{"x":1,"x":2}}\n',
        PAIR,
        "",
    ),
    "a number with blanks": ("a.csv", "sentence1,sentence2,score\na,b, 1.0 \n", PAIR, ""),
}


@pytest.mark.parametrize("odd", READ)
def test_plain_files_are_read(tmp_path: Path, odd: str) -> None:
    name, content, settings, _ = READ[odd]
    (record,) = load(tmp_path, name, content, settings)
    assert (record.texts(), record.score) == (("a", "b"), 1.0)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_cells_of_more_than_131072_characters_are_read(tmp_path: Path, name: str) -> None:
    text = f"sentence\n{'x' * 200_000}\n"
    for read in (import_file, lambda file: FileSource(file=file.name, **ONE).load(Roots(base=tmp_path))):
        (tmp_path / name).write_bytes(packed(text) if name.endswith(".gz") else text.encode())
        (record,) = read(tmp_path / name)
        assert len(record.sentence) == 200_000


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.tables.opening.MOST_BYTES_OF_ANY", 100_000)
    with pytest.raises(UserError, match="more than 200 times its size"):
        load(tmp_path, "a.txt.gz", gzip.compress(b"\n" * 3_000_000), {})


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.tsv.gz"])
def test_the_data_commands_read_compressed_files_too(tmp_path: Path, name: str) -> None:
    text = rows({"sentence": "a"}) if "jsonl" in name else "sentence\na\n"
    (tmp_path / name).write_bytes(packed(text))
    data = open_dataset(tmp_path / name)
    assert data.column("sentence") == ["a"]
    with pytest.raises(UserError, match=r"leave out \.gz"):
        export_dataset(data, tmp_path / "out.csv.gz", ExportFormat.CSV)


def parquet(folder: Path, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), folder / "a.parquet")
    return folder


def test_decimals_large_strings_and_dictionaries_of_parquet_are_read(tmp_path: Path) -> None:
    import pyarrow as pa

    texts = {
        "sentence1": pa.array(["a"], pa.large_string()),
        "sentence2": pa.array(["b"]).dictionary_encode(),
    }
    parquet(tmp_path, **texts, score=pa.array([Decimal("4.50")], pa.decimal128(5, 2)))
    source = FileSource(file="a.parquet", **PAIR, score_range=(0.0, 5.0))
    assert source.load(Roots(base=tmp_path)).column("score") == [0.9]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([date(2026, 1, 1)], "sentence is datetime.date(2026, 1, 1), not text"),
        ([["a", "b"]], "sentence is ['a', 'b'], not text"),
        ([b"a"], "sentence is b'a', not text"),
        ([{"x": 1}], "sentence is {'x': 1}, not text"),
        ([None], "sentence is empty"),
    ],
)
def test_unsupported_parquet_types_are_refused_with_their_row(
    tmp_path: Path, column: list[Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        FileSource(file="a.parquet", **ONE).load(Roots(base=parquet(tmp_path, sentence=column)))
    assert caught.value.messages[0].startswith(f"{tmp_path}/a.parquet:1: {message}")


def test_a_duplicate_parquet_column_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([["a"], ["b"]], names=["sentence", "sentence"]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="2 columns are named 'sentence'"):
        FileSource(file="a.parquet", **ONE).load(Roots(base=tmp_path))


def test_a_mostly_unused_score_range_is_noted(tmp_path: Path) -> None:
    text = HEAD + "a\tb\t0.1\na\tc\t0.9\n"
    data = load(tmp_path, "a.tsv", text, {**PAIR, "score_range": (0.0, 5.0)})
    assert data.manifest.notes == ["scores use 0.1 to 0.9, 16% of the score range 0 to 5"]
    assert load(tmp_path, "b.tsv", text, PAIR).manifest.notes == []


@pytest.mark.parametrize(
    ("text", "settings", "note"),
    [
        ("a\tb\t1\na\tb\t0\na\tb\t1\nb\ta\t0\n", PAIR, "1 pairs are there before, with another score"),
        ("a\tb\t1\na\tb\t1\n", PAIR, None),
        (
            "q\td\t1\nq\te\t1\nq\td\t0\nr\td\t0\nr\td\t0\n",
            {"kind": RecordKind.RANKING, "columns": {"query": 0, "candidate": 1, "grade": 2}},
            "1 queries have a candidate with two grades",
        ),
    ],
)
def test_a_pair_with_two_scores_is_noted(
    tmp_path: Path, text: str, settings: Mapping[str, Any], note: str | None
) -> None:
    data = load(tmp_path, "a.tsv", HEAD * (settings is PAIR) + text, settings)
    assert data.manifest.notes == ([note] if note else [])


def test_a_candidate_with_two_grades_is_noted(tmp_path: Path) -> None:
    row = {"query": "a", "positive": ["b"], "negative": ["b", "c"]}
    data = load(tmp_path, "a.jsonl", rows(row), {"format": "reranking"})
    assert data.manifest.notes == ["1 queries have a candidate with two grades"]


def test_dino_rows_with_invisible_text_are_dropped_and_counted(tmp_path: Path) -> None:
    text = rows(*({"text_a": "a", "text_b": b, "label": "1"} for b in ("b", "\u200b", " ")))
    data = load(tmp_path, "a.jsonl", text, {"format": "dino"})
    assert (len(data), list(data.manifest.dropped.values())) == (1, [2])


def test_a_carriage_return_in_a_text_is_noted(tmp_path: Path) -> None:
    data = load(tmp_path, "a.tsv", HEAD + "a\rb\tc\t1\n", PAIR)
    assert data.manifest.notes == ["1 records hold a carriage return in a text"]


def corpus(folder: Path, qrels: str, passage: str = '{"_id": "p", "text": "x"}') -> SyntheticDataset:
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text(passage + "\n", encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "y"}\n', encoding="utf-8")
    (folder / "qrels/test.tsv").write_text(qrels, encoding="utf-8")
    return CorpusSource(corpus=str(folder)).load(Roots(base=folder))


@pytest.mark.parametrize(
    "qrels",
    ["query-id\tcorpus-id\tscore\nq\tp\t1.0\n\n", "q\tp\t1.0\n", "q\tp\t1\r\n \n", "q\tp\t1\nq\tp\t1.0\n"],
)
def test_judgements_with_decimals_blank_lines_or_repetitions_are_read(tmp_path: Path, qrels: str) -> None:
    data = corpus(tmp_path, qrels)
    assert list(data)[-1].grades == (1.0,)
    again = {"judgement that was given before": 1} if qrels.count("p\t") > 1 else {}
    assert data.manifest.dropped == again


def test_judgements_below_0_are_counted(tmp_path: Path) -> None:
    data = corpus(tmp_path, "q\tp\t-2\nq\tr\t1\nq\tp\t0\n")
    assert list(data)[-1].grades == (0.0, 1.0)
    assert "1 judgements are below 0, and count as 0" in data.manifest.notes
    assert data.manifest.dropped == {"judgement that was given before": 1}


@pytest.mark.parametrize(
    ("qrels", "passage", "message"),
    [
        (
            "q\tp\t1\nq\tp\t2\n",
            "",
            "test.tsv:2: judges query 'q' and passage 'p' 2, line 1 1; which one holds?",
        ),
        ("q\tp\t0.5\n", "", "test.tsv:1: needs query, passage and a whole number"),
        ("q\tp\t1_0\n", "", "test.tsv:1: needs query, passage and a whole number"),
        ("q\tp\tyes\nq\tp\t1\n", "", "test.tsv:1: needs query, passage and a whole number"),
        ("q 0 p 1\n", "", "test.tsv:1: needs query, passage and a whole number"),
        (
            "q\tp\t1\n",
            '{"_id": "p", "_id": "r", "text": "x"}',
            "corpus.jsonl:1: the key '_id' is there twice",
        ),
        (
            "q\tp\t1\n",
            '{"_id": null, "text": "x"}',
            "corpus.jsonl:1: _id is neither a text nor a whole number",
        ),
        (
            "q\tp\t1\n",
            '{"_id": 1.0, "text": "x"}',
            "corpus.jsonl:1: _id is neither a text nor a whole number",
        ),
        ("q\tp\t1\n", '{"_id": "p", "text": ["x"]}', "corpus.jsonl:1: text is ['x'], not text"),
    ],
)
def test_odd_corpora_are_refused_by_file_and_line(
    tmp_path: Path, qrels: str, passage: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        corpus(tmp_path, qrels, *([passage] if passage else []))
    assert message in caught.value.messages[0]


def test_the_tests_cover_enough_odd_files() -> None:
    assert len(REFUSED) + len(READ) >= 50
