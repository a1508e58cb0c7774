"""Records read from files of the user's own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.reading import score_of
from synthbench.data.records import RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.files import num_rows
from synthbench.sources.models import FileSource

SKIP = "`skip_blank: true` leaves out rows with a blank text"
KINDS = {"kind": RecordKind.SCORED_PAIR}


def load(folder: Path, name: str, content: str | bytes, **settings: Any) -> SyntheticDataset:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return FileSource(file=name, **settings).load(Roots(base=folder))


def faults(folder: Path, name: str, content: str | bytes, **settings: Any) -> list[str]:
    with pytest.raises(UserError) as caught:
        load(folder, name, content, **settings)
    return [message.replace(f"{folder}/", "") for message in caught.value.messages]


def test_a_text_file_has_one_sentence_per_line(tmp_path: Path) -> None:
    dataset = load(tmp_path, "own.txt", "One.\nTwo, \u2028three.\n")
    assert dataset.kind == RecordKind.SENTENCE
    assert dataset.column("sentence") == ["One.", "Two, \u2028three."]
    assert dataset.column("id") == ["own.txt/0001", "own.txt/0002"]


def test_tsv_columns_are_found_by_the_names_in_the_first_line(tmp_path: Path) -> None:
    text = 'score\tsentence1\tsentence2\n5\t"a\tb\n0\tc\td"\n'
    dataset = load(tmp_path, "own.tsv", text, **KINDS, score_range=(0.0, 5.0))
    assert dataset.column("sentence1") == ['"a', "c"]
    assert dataset.column("score") == [1.0, 0.0]
    assert dataset.column("id") == ["own.tsv/0002", "own.tsv/0003"]


def test_numbered_columns_mean_that_there_is_no_header(tmp_path: Path) -> None:
    columns = {"sentence1": 1, "sentence2": 2, "score": 0}
    dataset = load(tmp_path, "own.tsv", "1\ta\tb\n0\tc\td\n", **KINDS, columns=columns)
    assert dataset.column("sentence1") == ["a", "c"]


def test_csv_follows_the_quoting_of_spreadsheets(tmp_path: Path) -> None:
    text = 'anchor,positive\n"a, ""b""","two\nlines"\nc,d\n'
    dataset = load(tmp_path, "own.csv", text, kind=RecordKind.PAIR)
    assert dataset.column("anchor") == ['a, "b"', "c"]
    assert dataset.column("positive") == ["two\nlines", "d"]
    assert dataset.column("id") == ["own.csv/0002", "own.csv/0004"]


def test_json_lines_may_have_other_field_names_and_omit_optional_fields(tmp_path: Path) -> None:
    row = {"text_a": "a", "text_b": "b", "label": "0.5", "key": 7, "topic": "news"}
    columns = {"sentence1": "text_a", "sentence2": "text_b", "score": "label", "id": "key", "subset": "topic"}
    dataset = load(tmp_path, "own.jsonl", json.dumps(row) + "\n", **KINDS, columns=columns, split="dev")
    (record,) = dataset
    assert (record.id, record.subset, record.split, record.score) == ("7", "news", "dev", 0.5)


def test_triplets_are_read_from_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"anchor": ["a"], "positive": ["b"], "negative": ["c"]}), tmp_path / "own.parquet"
    )
    dataset = FileSource(file="own.parquet", kind=RecordKind.TRIPLET).load(Roots(base=tmp_path))
    assert [record.texts() for record in dataset] == [("a", "b", "c")]


def test_a_row_with_a_blank_score_is_left_out_and_counted(tmp_path: Path) -> None:
    text = "sentence1\tsentence2\tscore\na\tb\t\nc\td\t1\n"
    dataset = load(tmp_path, "own.tsv", text, **KINDS)
    assert dataset.column("sentence1") == ["c"]
    assert dataset.manifest.dropped == {"no gold score": 1}


def test_the_fingerprint_depends_on_the_content(tmp_path: Path) -> None:
    first = load(tmp_path, "own.txt", "One.\n").manifest.revisions
    second = load(tmp_path, "own.txt", "Two.\n").manifest.revisions
    assert first.keys() == second.keys() == {"own.txt"}
    assert first != second


BROKEN: Mapping[str, tuple[str, str | bytes, list[str]]] = {
    "missing column": (
        "own.tsv",
        "sentence_1\tsentence2\tscore\na\tb\t1\n",
        ["own.tsv:1: no column 'sentence1' for sentence1; did you mean 'sentence_1'?"],
    ),
    "several missing columns": (
        "own.csv",
        "x,y\na,b\n",
        [
            "own.csv:1: no column 'sentence1' for sentence1; known: x, y",
            "own.csv:1: no column 'sentence2' for sentence2; known: x, y",
            "own.csv:1: no column 'score' for score; known: x, y",
        ],
    ),
    "wrong number of columns": (
        "own.tsv",
        "sentence1\tsentence2\tscore\na\tb\t1\nc\td\n",
        ["own.tsv:3: 2 columns, 3 in line 1"],
    ),
    "all faults of a file": (
        "own.tsv",
        "sentence1\tsentence2\tscore\na\t\t1\na\tb\t1.5\na\tb\tnan\na\tb\thigh\n",
        [
            f"own.tsv:2: sentence2 is empty; {SKIP}",
            "own.tsv:3: score 1.5 is outside 0 to 1",
            "own.tsv:4: score is NaN; a number from 0 to 1 is needed",
            "own.tsv:5: score 'high' is not a number",
        ],
    ),
    "not JSON": (
        "own.jsonl",
        '{"sentence1": "a"\n[1]\n',
        [
            "own.jsonl:1: not JSON: Expecting ',' delimiter at column 18",
            "own.jsonl:2: not a JSON object with named fields",
        ],
    ),
    "missing JSON field": (
        "own.jsonl",
        '{"sentence1": "a", "sentnce2": "b", "score": 1}\n',
        ["own.jsonl:1: no field 'sentence2'; did you mean 'sentnce2'?"],
    ),
    "wrong JSON types": (
        "own.jsonl",
        '{"sentence1": 3, "sentence2": "b", "score": 1}\n{"sentence1": "a", "sentence2": "b", "score": []}\n',
        ["own.jsonl:1: sentence1 is 3, not text", "own.jsonl:2: score [] is not a number"],
    ),
    "not UTF-8": (
        "own.csv",
        b"sentence1,sentence2,score\n\xff,b,1\n",
        ["own.csv:2: not UTF-8 (byte 0xFF at position 1 of the line); convert the file to UTF-8"],
    ),
    "not CSV": (
        "own.csv",
        'sentence1,sentence2,score\na,b,1\n"a"b,c,1\n',
        ["own.csv:3: not CSV: ',' expected after '\"'; the rest of the file was not read"],
    ),
    "empty": ("own.tsv", "", ["own.tsv: holds no scored_pair records"]),
    "not Parquet": ("own.parquet", "PAR", []),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_fault_is_reported_in_one_line_with_file_and_line(tmp_path: Path, name: str) -> None:
    file, content, expected = BROKEN[name]
    found = faults(tmp_path, file, content, **KINDS)
    if expected:
        assert found == expected
    else:
        assert found[0].startswith("own.parquet: not a readable Parquet file")
        assert "\n" not in found[0]


def test_a_column_number_beyond_the_last_column_is_reported(tmp_path: Path) -> None:
    columns = {"sentence1": 0, "sentence2": 1, "score": 2}
    worded(faults(tmp_path, "own.tsv", "a\tb\n", **KINDS, columns=columns), "own.tsv:1", "2", "0", "score")


def test_an_empty_line_of_text_is_an_empty_sentence(tmp_path: Path) -> None:
    assert faults(tmp_path, "own.txt", "One.\n\nTwo.\n") == [f"own.txt:2: sentence is empty; {SKIP}"]


def test_a_missing_file_is_named_with_the_searched_path(tmp_path: Path) -> None:
    with refused(f"{tmp_path}/data/own.txt"):
        FileSource(file="data/own.txt").fingerprint(Roots(base=tmp_path))
    (tmp_path / "own.txt").mkdir()
    with refused("folder"):
        FileSource(file="own.txt").fingerprint(Roots(base=tmp_path))


@given(low=st.integers(-10, 10), width=st.integers(1, 20), share=st.floats(0, 1))
def test_scores_are_mapped_linearly_and_stay_in_range(low: int, width: int, share: float) -> None:
    score_range = (float(low), float(low + width))
    value = min(low + share * width, score_range[1])
    scaled = score_of(value, score_range)
    assert 0.0 <= scaled <= 1.0
    assert scaled == pytest.approx(share, abs=1e-9)
    assert score_of(str(value), score_range) == scaled


def test_a_duplicate_id_is_reported_with_both_lines(tmp_path: Path) -> None:
    text = "id\tsentence1\tsentence2\tscore\nx\ta\tb\t0\ny\ta\tb\t0\nx\tc\td\t1\n"
    columns = {"id": "id"}
    worded(faults(tmp_path, "own.tsv", text, **KINDS, columns=columns), "own.tsv:4", "'x'", "2")


def test_an_unpaired_surrogate_is_reported_with_its_line(tmp_path: Path) -> None:
    text = '{"sentence": "whole"}\n{"sentence": "half \\ud800"}\n'
    worded(faults(tmp_path, "own.jsonl", text, kind=RecordKind.SENTENCE), "own.jsonl:2", "sentence")


NLI = "score\tsentence1\tsentence2\nentailment\ta\tb\nneutral\ta\tc\n-\ta\td\ncontradiction\ta\te\n"


def test_a_table_converts_classes_to_scores_and_preserves_the_labels(tmp_path: Path) -> None:
    dataset = load(tmp_path, "nli.tsv", NLI, **KINDS, scores={"entailment": 1.0, "contradiction": 0.0})
    assert dataset.column("score") == [1.0, 0.0]
    assert dataset.column("label") == ["entailment", "contradiction"]
    assert dataset.manifest.dropped == {"of class neutral": 1, "of class -": 1}


def test_a_class_without_rows_is_an_error(tmp_path: Path) -> None:
    scores = {"entailement": 1.0, "contradiction": 0.0}
    worded(
        faults(tmp_path, "nli.tsv", NLI, **KINDS, scores=scores),
        "nli.tsv",
        "scores.entailement",
        "'entailment'",
    )


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"score_range": (0.0, 5.0)}, "score_range, of numbers, exclude each other"),
        ({"columns": {"label": "class"}}, "with `scores` the class is the label"),
        ({"kind": RecordKind.PAIR}, "pair records have no score"),
        ({"scores": {"yes": 2.0}}, "less than or equal to 1"),
    ],
)
def test_scores_of_classes_need_a_record_kind_with_scores(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        FileSource(file="nli.tsv", **{**KINDS, "scores": {"yes": 1.0}, **settings})


LLMS = """{"llm": "a", "way": 1, "sentence": "One."}
{"llm": "b", "way": 1, "sentence": ""}
{"llm": "a", "way": 2, "sentence": "Three."}
{"llm": "c", "way": null, "sentence": "Four."}
"""
SENTENCES = {"kind": RecordKind.SENTENCE}


def test_where_selects_rows_by_a_columns_value_and_counts_the_other_rows(tmp_path: Path) -> None:
    """The line of another model may be faulty: it is not read."""
    dataset = load(tmp_path, "own.jsonl", LLMS, **SENTENCES, where={"llm": ("a", "c")})
    assert dataset.column("sentence") == ["One.", "Three.", "Four."]
    assert dataset.column("id") == ["own.jsonl/0001", "own.jsonl/0003", "own.jsonl/0004"]
    assert dataset.manifest.dropped == {"llm is not a or c": 1}
    both = load(tmp_path, "own.jsonl", LLMS, **SENTENCES, where={"llm": "a", "way": 2})
    assert both.column("sentence") == ["Three."]
    assert both.manifest.dropped == {"llm is not a": 2, "way is not 2": 1}


@pytest.mark.parametrize("name", ["own.tsv", "own.csv", "own.parquet"])
def test_where_reads_further_columns_of_tables(tmp_path: Path, name: str) -> None:
    rows = [{"llm": "a", "sentence": "One."}, {"llm": "b", "sentence": "Two."}]
    if name.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    else:
        between = "\t" if name.endswith(".tsv") else ","
        lines = [between.join(row) for row in (rows[0].keys(), *(row.values() for row in rows))]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    source = FileSource(file=name, **SENTENCES, where={"llm": "b"})
    assert source.load(Roots(base=tmp_path)).column("sentence") == ["Two."]
    assert source.expected_records(Roots(base=tmp_path)) is None


def test_rows_of_candidates_are_selected_by_a_columns_value(tmp_path: Path) -> None:
    rows = "query,candidate,grade,by\nq,a,1,x\nq,b,0,y\nq,c,0,x\n"
    columns = {"query": "query", "candidate": "candidate", "grade": "grade"}
    source = {"kind": RecordKind.RANKING, "columns": columns, "where": {"by": "x"}}
    dataset = load(tmp_path, "own.csv", rows, **source)
    assert [list(one) for one in dataset.column("candidates")] == [["a", "c"]]


def test_faults_of_where_name_the_column_and_the_value(tmp_path: Path) -> None:
    misspelt = faults(tmp_path, "own.jsonl", LLMS, **SENTENCES, where={"llm": ("a", "aa"), "way": 3})
    worded(misspelt, "own.jsonl", "where.llm", "'aa'", "'a'", "where.way", "'3'")
    absent = faults(tmp_path, "own.jsonl", LLMS, **SENTENCES, where={"model": "a"})
    worded(absent, "own.jsonl:1", "'model'")
    column = faults(tmp_path, "own.csv", "llm,sentence\na,One.\n", **SENTENCES, where={"lm": "a"})
    worded(column, "own.csv:1", "'lm'", "where.lm", "'llm'")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"file": "own.tsv", "columns": {"sentence": 0}}, "where: needs a header"),
        ({"file": "own.txt"}, "a .txt file has no columns"),
        ({"file": "own.jsonl", "format": "dino", "kind": None}, "where: DINO's format knows its own"),
        ({"file": "own.jsonl", "where": {}}, "at least 1 item"),
    ],
)
def test_where_needs_named_columns(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        FileSource(**{**SENTENCES, "where": {"llm": "a"}, **settings})


WIKIQA = (
    "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    "Q0\tWhat holds tissue?\tD0\tTissue\tD0-0\tA tissue is made of cells.\t0\n"
    "Q0\tWhat holds tissue?\tD0\tTissue\tD0-1\tJunctions hold it.\t1\n"
    "Q2\tWhat holds tissue?\tD1\tCells\tD1-0\tCells are small.\t0\n"
)
WIKIQA_COLUMNS = {"id": "QuestionID", "query": "Question", "candidate": "Sentence", "grade": "Label"}


def test_rows_of_candidates_become_rankings_by_their_id(tmp_path: Path) -> None:
    dataset = load(tmp_path, "WikiQA-dev.tsv", WIKIQA, kind=RecordKind.RANKING, columns=WIKIQA_COLUMNS)
    assert [(r.id, r.query, len(r.candidates), list(r.grades)) for r in dataset] == [
        ("Q0", "What holds tissue?", 2, [0.0, 1.0]),
        ("Q2", "What holds tissue?", 1, [0.0]),
    ]


def test_rows_of_candidates_without_an_id_belong_to_their_query(tmp_path: Path) -> None:
    text = 'qtext,label,atext\n"Who, then?",0,He.\nWhere?,1,There.\n"Who, then?",1,She.\n'
    columns = {"query": "qtext", "candidate": "atext", "grade": "label"}
    dataset = load(tmp_path, "trecqa.csv", text, kind=RecordKind.RANKING, columns=columns)
    assert [(r.id, r.query, list(r.candidates), list(r.grades)) for r in dataset] == [
        ("trecqa.csv/0002", "Who, then?", ["He.", "She."], [0.0, 1.0]),
        ("trecqa.csv/0003", "Where?", ["There."], [1.0]),
    ]


def test_faults_of_candidates_are_named_by_line(tmp_path: Path) -> None:
    text = WIKIQA + "Q2\tAnother?\t\t\t\tCells.\t1\nQ3\tWhy?\t\t\t\t \t1\nQ3\tWhy?\t\t\t\tSo.\tyes\n"
    found = faults(tmp_path, "own.tsv", text, kind=RecordKind.RANKING, columns=WIKIQA_COLUMNS)
    assert found == [
        "own.tsv:5: id 'Q2' stands for the query 'What holds tissue?' already",
        "own.tsv:6: candidate is empty",
        "own.tsv:7: grade 'yes' is not a number",
    ]


def test_a_null_id_of_a_candidate_is_refused_not_read_as_a_word(tmp_path: Path) -> None:
    text = '{"id": null, "query": "q", "candidate": "a", "grade": 1}\n'
    columns = {name: name for name in ("id", "query", "candidate", "grade")}
    found = faults(tmp_path, "own.jsonl", text, kind=RecordKind.RANKING, columns=columns)
    assert found == ["own.jsonl:1: id is null; leave the column out, or write a text in each row"]


TABLES = "the name of a table ends in .tsv, and standard sets such as SICK are read by `task:`"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\ta\tb\t4.5\tNEUTRAL\n"


def test_a_table_is_refused_as_a_text_file_of_sentences(tmp_path: Path) -> None:
    worded(faults(tmp_path, "SICK_train.txt", SICK), "SICK_train.txt", "sentence", str(TABLES))
    assert len(load(tmp_path, "own.txt", "one\twith a tab\nand one without\n")) == 2
    with refused("scored_pair", kind=ValueError) as caught:
        FileSource(file="SICK_train.txt", **KINDS)
    assert TABLES in str(caught.value)


@pytest.mark.parametrize("text", [SICK, 'genre\tscore\tsentence1\tsentence2\nnews\t5\t"a" b\tc\n'])
def test_tabs_in_a_csv_file_are_reported(tmp_path: Path, text: str) -> None:
    hint = f"own.csv: tabs are between its columns: {TABLES}"
    assert faults(tmp_path, "own.csv", text, **KINDS)[-1] == hint
    assert (
        faults(tmp_path, "own.csv", text, **KINDS, columns={"score": 3, "sentence1": 1, "sentence2": 2})[-1]
        == hint
    )
    quoted = '1\t"Yes", he said\tb\n'
    assert faults(tmp_path, "own.csv", quoted, **KINDS)[-1] == hint


def test_rankings_with_candidate_rows_get_a_hint_on_columns(tmp_path: Path) -> None:
    found = faults(tmp_path, "WikiQA-dev.tsv", WIKIQA, kind=RecordKind.RANKING)
    hint = "if a row is one candidate, give columns: {query: ..., candidate: ..., grade: ...}"
    assert found[-1] == f"WikiQA-dev.tsv: {hint}"


@pytest.mark.parametrize(("content", "number"), [("", 0), ("a\tb\n", 0), ("a\tb\nc\td\n", 1)])
def test_a_file_with_a_header_has_no_less_than_0_rows(tmp_path: Path, content: str, number: int) -> None:
    (tmp_path / "own.tsv").write_text(content, encoding="utf-8")
    assert num_rows(tmp_path / "own.tsv", has_header=True) == number


def test_a_class_whose_rows_are_all_blank_is_not_compared_with_other_reasons(tmp_path: Path) -> None:
    text = "score\tsentence1\tsentence2\nyes\ta\tb\nno\t \tc\n"
    settings = {**KINDS, "scores": {"yes": 1.0, "no": 0.0}, "skip_blank": True}
    (fault,) = faults(tmp_path, "own.tsv", text, **settings)
    worded(fault, "own.tsv", "scores.no")
    assert "blank text" not in fault


def test_a_row_may_have_no_scores_of_a_teacher(tmp_path: Path) -> None:
    row = {"anchor": "a", "positive": "b", "negative": "c"}
    text = "".join(json.dumps({**row, "scores": scores}) + "\n" for scores in ([2.0, 1.0], []))
    settings = {"kind": RecordKind.TRIPLET, "columns": {"scores": "scores"}}
    assert load(tmp_path, "own.jsonl", text, **settings).column("scores") == [[2.0, 1.0], []]
