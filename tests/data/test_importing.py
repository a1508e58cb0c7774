"""Importing JSONL, CSV and TSV: every bad line is named, at once, and in one line each."""

import hashlib
import json
from pathlib import Path

import pytest
from wording import worded

from synthbench.base.errors import UserError
from synthbench.data.importing import import_file
from synthbench.data.records import Pair, RecordKind, ScoredPair, Sentence, Triplet

GOOD = '{"sentence1": "a", "sentence2": "b", "score": 0.5}'


def write(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def faults(file: Path, kind: RecordKind | None = None) -> list[str]:
    """The messages without the folder."""
    with pytest.raises(UserError) as raised:
        import_file(file, kind)
    assert all("\n" not in message for message in raised.value.messages)
    return [message.replace(f"{file.parent}/", "") for message in raised.value.messages]


@pytest.mark.parametrize(
    ("columns", "record"),
    [
        (
            {"sentence1": "a", "sentence2": "b", "score": 1},
            ScoredPair(sentence1="a", sentence2="b", score=1.0),
        ),
        ({"anchor": "a", "positive": "b"}, Pair(anchor="a", positive="b")),
        (
            {"anchor": "a", "positive": "b", "negative": "c"},
            Triplet(anchor="a", positive="b", negative="c"),
        ),
        ({"sentence": "a", "subset": "news"}, Sentence(sentence="a", subset="news")),
    ],
)
def test_the_columns_decide_the_kind(
    tmp_path: Path, columns: dict[str, str | float], record: ScoredPair | Pair | Triplet | Sentence
) -> None:
    jsonl = write(tmp_path, "data.jsonl", json.dumps(columns))
    csv = write(tmp_path, "data.csv", ",".join(columns) + "\r\n" + ",".join(map(str, columns.values())))
    for file in (jsonl, csv):
        dataset = import_file(file)
        assert [one.texts() for one in dataset] == [record.texts()]
        assert (dataset.kind, dataset.column("split"), dataset.column("seed")) == (
            record.kind,
            ["train"],
            [None],
        )
        assert dataset.column("id") == [record.content_id()]


def test_the_manifest_names_the_imported_file(tmp_path: Path) -> None:
    file = write(tmp_path, "data.jsonl", GOOD)
    manifest = import_file(file).manifest
    assert manifest.notes == ["imported from data.jsonl"]
    assert manifest.revisions == {"data.jsonl": hashlib.sha256(GOOD.encode()).hexdigest()}


def test_byte_order_marks_blank_lines_and_nulls_are_no_faults(tmp_path: Path) -> None:
    rows = '\ufeff{"sentence": "a", "seed": null, "subset": null}\n\n{"sentence": "b", "seed": 3}'
    assert import_file(write(tmp_path, "data.jsonl", rows)).column("seed") == [None, 3]
    rows = '\ufeffsentence,seed\r\n"a",\r\n\r\nb,3\r\n'
    assert import_file(write(tmp_path, "data.csv", rows)).column("seed") == [None, 3]


def test_every_bad_line_of_a_jsonl_file_is_named(tmp_path: Path) -> None:
    lines = [
        GOOD,
        '{"sentence1": "a", "sentence2": ',
        '["a", "b", 0.5]',
        '{"sentence1": "a", "sentence2": "b"}',
        '{"sentence1": "a", "sentence2": "b", "score": 0.5, "generater": "x"}',
        '{"sentence1": "a", "sentence2": "b", "score": 1.5}',
        '{"sentence1": "a", "sentence2": " ", "score": NaN}',
        '{"sentence1": "a", "sentence2": "\\ud83d", "score": "high"}',
        '{"sentence1": 7, "sentence2": "b", "score": true, "seed": 1.5}',
    ]
    worded(
        faults(write(tmp_path, "data.jsonl", "\n".join(lines))),
        "data.jsonl:2",
        "JSON",
        "data.jsonl:3",
        "JSON object",
        "data.jsonl:4",
        "'score'",
        "scored_pair",
        "data.jsonl:5",
        "'generater'",
        "'generator'",
        "data.jsonl:6",
        "score",
        "1.5",
        "0 to 1",
        "--score-range",
        "LOW",
        "HIGH",
        "score_range",
        "data.jsonl:7",
        "sentence2",
        "NaN",
        "data.jsonl:8",
        "'high'",
        "data.jsonl:9",
        "seed",
    )


def test_every_bad_line_of_a_csv_file_is_named_by_where_it_begins(tmp_path: Path) -> None:
    rows = [
        b"id,sentence1,sentence2,score",
        b'1,"a\nb",c,0.5',
        b"1,a,b,0.5",
        b"2,a,b",
        b"3,a,,0.5",
        b"4,a,b,",
        b"5,caf\xe9,b,0.5",
        b"6,a,b,nan",
        b'7,a,"b,0.5',
    ]
    worded(
        faults(write(tmp_path, "data.csv", b"\r\n".join(rows))),
        "data.csv:4",
        "'1'",
        "data.csv:5",
        "data.csv:6",
        "sentence2",
        "data.csv:7",
        "score",
        "''",
        "data.csv:8",
        "UTF-8",
        "data.csv:9",
        "NaN",
        "data.csv:10",
        "CSV",
    )


def test_ten_faults_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    messages = faults(write(tmp_path, "data.jsonl", "\n".join([GOOD] + ["{"] * 1000)))
    assert len(messages) == 11
    assert messages[-1] == "... and 990 more"


def test_bytes_that_are_not_utf_8_are_named_by_line(tmp_path: Path) -> None:
    file = write(tmp_path, "data.jsonl", GOOD.encode() + b'\n{"sentence1": "caf\xe9"}\n')
    assert faults(file) == [
        "data.jsonl:2: not UTF-8 (byte 0xE9 at position 19 of the line); convert the file to UTF-8"
    ]


def test_wrong_columns_of_a_csv_file_are_named_once(tmp_path: Path) -> None:
    file = write(tmp_path, "data.csv", "sentnce1,sentence2,score\r\n" + "a,b,0.5\r\n" * 50)
    worded(faults(file, RecordKind.SCORED_PAIR), "data.csv:1", "'sentence1'", "scored_pair", "'sentnce1'")


KINDS = (
    "(triplet: anchor, positive, negative; pair: anchor, positive; "
    "scored_pair: sentence1, sentence2, score; ranking: query, candidates, grades; sentence: sentence)"
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "data.jsonl",
            '{"sentnce": "a"}',
            f"columns sentnce make no record {KINDS}; did you mean 'sentence'?",
        ),
        ("data.jsonl", '{"sentence1": "a"}', f"columns sentence1 make no record {KINDS}"),
        ("data.jsonl", "{}", f"columns (none) make no record {KINDS}"),
        ("data.csv", "text,score\na,1\n", f"columns text, score make no record {KINDS}"),
        (
            "data.csv",
            "a,b\nc,d\n",
            f"columns a, b make no record {KINDS}; is the line with the columns' names missing?",
        ),
    ],
)
def test_unknown_columns_list_the_columns_of_each_kind(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    names = "; other names are given by --column FIELD=NAME, or `columns:` in an experiment"
    assert faults(write(tmp_path, name, content)) == [f"{name}:1: {message}{names}"]


def test_a_table_in_a_text_file_names_the_right_format(tmp_path: Path) -> None:
    file = write(tmp_path, "SICK_train.txt", "pair_ID\tsentence_A\n1\ta\n")
    worded(faults(file), "SICK_train.txt", "SICK", "--kind", "sentence")


@pytest.mark.parametrize(
    ("name", "separator", "message"),
    [
        ("data.csv", "\t", "the columns are separated by tabs; name the file .tsv"),
        ("data.tsv", ",", "the columns are separated by commas; name the file .csv"),
        ("data.csv", ";", "the columns are separated by semicolons; use commas (.csv) or tabs (.tsv)"),
    ],
)
def test_a_separator_that_contradicts_the_file_ending_is_named(
    tmp_path: Path, name: str, separator: str, message: str
) -> None:
    rows = separator.join(("sentence1", "sentence2")) + "\n" + separator.join("ab") + "\n"
    for kind in (None, RecordKind.SCORED_PAIR):
        assert faults(write(tmp_path, name, rows), kind) == [f"{name}:1: {message}"]


def test_a_comma_in_quotation_marks_separates_no_columns_of_a_csv(tmp_path: Path) -> None:
    (fault,) = faults(write(tmp_path, "data.csv", '"Hello, world"\n"Good, bye"\n'))
    assert "separated" not in fault and "make no record" in fault


def test_a_tsv_has_no_quoting(tmp_path: Path) -> None:
    rows = 'sentence1\tsentence2\tscore\r\n"a\tb, "c" d\t0.5\r\n\r\ne\tf\t1\n'
    dataset = import_file(write(tmp_path, "data.tsv", rows))
    assert [record.texts() for record in dataset] == [('"a', 'b, "c" d'), ("e", "f")]
    worded(faults(write(tmp_path, "data.tsv", rows + "a\n")), "data.tsv:5", "1", "3")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.jsonl", "", "data.jsonl: holds no records"),
        ("data.csv", "sentence\r\n", "data.csv: holds no records"),
        ("data.txt", "a", "data.txt: the name must end in .jsonl, .csv or .tsv"),
        ("data.csv", "sentence,sentence\r\na,b\r\n", "data.csv:1: two columns have the same name"),
        ("data.jsonl", "[" * 100_000, "data.jsonl:1: not JSON that can be read: maximum"),
        ("data.jsonl", '{"sentence": "a", "seed": 9223372036854775808}', "data.jsonl:1: seed is not a whole"),
        ("data.jsonl", GOOD.replace("0.5", "1" + "0" * 400), "data.jsonl:1: score 1000"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (found,) = faults(write(tmp_path, name, content))
    assert found.startswith(message)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert faults(tmp_path / "data.jsonl") == ["data.jsonl: no such file"]
    (tmp_path / "folder.csv").mkdir()
    worded(faults(tmp_path / "folder.csv"), "folder.csv")
