"""Rankings: a query and its graded candidates, through everything that data sets can do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from applying import apply_steps
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.contamination import drop_pairs_in
from synthbench.data.conversions import convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset
from synthbench.data.importing import import_file
from synthbench.data.inspect import describe
from synthbench.data.records import Ranking, Record, RecordKind, ScoredPair
from synthbench.plugins.contracts import Step
from synthbench.preparing.drops import DropDuplicates, DropIdentical, Length
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

MOUNT = Ranking(
    id="m",
    query="mount a disk",
    candidates=("attach a drive", "mount an animal"),
    grades=(1, 0),
    split="test",
)
COLUMNS = ("query", "candidates", "grades")


def made(*rankings: Ranking) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.RANKING, rankings)


def ranking(*candidates: str, **values: Any) -> Ranking:
    grades = (1.0, *[0.0] * (len(candidates) - 1))
    return Ranking(**{"query": "q", "candidates": candidates, "grades": grades, **values})


def test_a_ranking_does_not_depend_on_the_type_of_its_lists() -> None:
    assert MOUNT.texts() == ("mount a disk", "attach a drive", "mount an animal")
    assert MOUNT.grades == (1.0, 0.0)
    given: dict[str, Any] = {"candidates": list(MOUNT.candidates), "grades": [True, 0.0]}
    assert Ranking(id="m", query=MOUNT.query, split="test", **given) == MOUNT


def test_a_ranking_survives_writing_and_reading(tmp_path: Path) -> None:
    data = made(MOUNT)
    data.write(tmp_path)
    assert SyntheticDataset.read(tmp_path) == data
    assert list(SyntheticDataset.read(tmp_path)) == [MOUNT]
    assert data.texts == MOUNT.texts()


def test_a_query_without_a_relevant_candidate_stays_in_the_data() -> None:
    assert len(made(ranking("a", "b", grades=(0, 0)))) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"grades": (1.0,)}, "record r: has not one grade for each candidate: 2 candidates, 1 grades"),
        ({"grades": (1.0, 5.0)}, "record r: its grade is outside [0, 1]: 5.0"),
        ({"grades": (1.0, float("nan"))}, "record r: its grade is NaN"),
        ({"candidates": (), "grades": ()}, "record r: has no candidates"),
        ({"candidates": ("a", " ")}, "record r: has an empty sentence"),
        ({"query": ""}, "record r: has an empty sentence"),
    ],
)
def test_a_bad_ranking_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        made(ranking("a", "b", id="r", **values))
    assert raised.value.messages == (message,)


def test_a_ranking_converts_to_a_scored_pair_per_candidate() -> None:
    found = convert(made(MOUNT), RecordKind.SCORED_PAIR)
    assert [(*record.texts(), record.score, record.source_id, record.split) for record in found] == [
        ("mount a disk", "attach a drive", 1.0, "m", "test"),
        ("mount a disk", "mount an animal", 0.0, "m", "test"),
    ]
    assert found.column("id") == ["m/candidate1", "m/candidate2"]


def test_a_ranking_converts_to_distinct_sentences() -> None:
    found = convert(made(MOUNT, ranking("mount a disk", "x")), RecordKind.SENTENCE)
    assert found.column("sentence") == [*MOUNT.texts(), "q", "x"]
    assert found.manifest.dropped == {"to sentence: repeated sentence": 1}


def test_rankings_convert_to_no_whole_corpus() -> None:
    with refused("ranking", "retrieval", "scored_pair, triplet, pair, sentence"):
        convert(made(MOUNT), RecordKind.RETRIEVAL)


def test_a_ranking_is_dropped_if_gold_holds_its_query_with_a_candidate() -> None:
    gold = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [ScoredPair(sentence1="attach a drive", sentence2="mount a disk", score=1.0)]
    )
    assert list(drop_pairs_in(made(MOUNT, ranking("a")), [gold])) == list(made(ranking("a")))


@pytest.mark.parametrize(
    ("step", "kept"),
    [
        (DropIdentical(), ["one", "again", "long"]),
        (DropDuplicates(), ["one", "same", "long"]),
        (Length(max_words=2), ["one", "again", "same"]),
    ],
)
def test_prepare_steps_check_all_sentences_of_a_ranking(step: Step, kept: list[str]) -> None:
    data = made(
        ranking("a", "b", id="one"),
        ranking("a", "b", id="again"),
        ranking("a", "a", id="same"),
        ranking("a", "b c d", id="long"),
    )
    assert apply_steps(data, [step]).column("id") == kept


def test_a_ranking_is_described_by_query_and_candidates() -> None:
    found = describe(made(ranking("a b", "c"), ranking("c", "a b", id="x"), ranking("Q.", "c")))
    assert (found.num_records, found.num_sentences) == (3, 4)
    assert found.words["candidates"].mean == pytest.approx(8 / 6)
    assert found.scores == {"0": 3, "1": 3}
    assert (found.num_identical, found.num_nearly_identical) == (0, 1)
    assert (found.num_duplicates, found.num_unordered_duplicates) == (0, 1)


def test_a_further_query_and_a_candidate_that_swap_make_another_ranking() -> None:
    both = made(ranking("a", further_queries=("b",)), ranking("b", further_queries=("a",), id="x"))
    assert describe(both).num_unordered_duplicates == 0


def test_tables_hold_lists_as_json(tmp_path: Path) -> None:
    export_dataset(made(MOUNT), tmp_path / "out.csv", ExportFormat.CSV)
    header, row = (tmp_path / "out.csv").read_text().splitlines()
    assert header.startswith("query,candidates,grades,id")
    assert row.startswith('mount a disk,"[""attach a drive"", ""mount an animal""]","[1.0, 0.0]",m')
    (tmp_path / "own.tsv").write_text('query\tcandidates\tgrades\nq\t["a", "b"]\t[0, 1]\n')
    assert [record.grades for record in import_file(tmp_path / "own.tsv")] == [(0.0, 1.0)]


def test_hugging_face_gets_query_candidates_and_grades(tmp_path: Path) -> None:
    import datasets

    export_dataset(made(MOUNT), tmp_path / "out", ExportFormat.HUGGINGFACE)
    found = datasets.load_from_disk(tmp_path / "out")["test"]
    assert found.column_names == list(COLUMNS)
    assert found[0] == {
        "query": MOUNT.query,
        "candidates": list(MOUNT.candidates),
        "grades": list(MOUNT.grades),
    }


BAD_CELLS = [
    ('["a", "b"]', "[1]", "2 candidates, but 1 grades"),
    ('["a", ""]', "[1, 0]", "candidate 2 is empty"),
    ("a, b", "[1, 0]", """candidates is not a list like ["text", "text"]: 'a, b'"""),
    ('["a", "b"]', "1", "grades is not a list like [1, 0]: '1'"),
    ("[]", "[1]", "candidates is empty"),
]


@pytest.mark.parametrize(
    ("candidates", "grades", "message"),
    [
        *BAD_CELLS,
        ('["a", 7]', "[1, 0]", "candidate 2 is 7, not text"),
        ('["a", "b"]', '[1, "x"]', "grade (candidate 2) 'x' is not a number"),
        (
            '["a", "b"]',
            "[1, 3]",
            "grade (candidate 2) 3 is outside 0 to 1; others are read with "
            "--score-range LOW,HIGH, or score_range in an experiment",
        ),
    ],
)
def test_a_bad_line_is_named_on_import(tmp_path: Path, candidates: str, grades: str, message: str) -> None:
    (tmp_path / "own.tsv").write_text(f"query\tcandidates\tgrades\nq\t{candidates}\t{grades}\n")
    with pytest.raises(UserError) as raised:
        import_file(tmp_path / "own.tsv")
    assert [text.replace(f"{tmp_path}/", "") for text in raised.value.messages] == [f"own.tsv:2: {message}"]


@pytest.mark.parametrize(
    ("candidates", "grades", "message"),
    [*BAD_CELLS, ('["a", "b"]', "[3, 4]", "grade (candidate 2) 4 is outside 0 to 3")],
)
def test_a_bad_line_is_named_in_a_source(tmp_path: Path, candidates: str, grades: str, message: str) -> None:
    (tmp_path / "own.tsv").write_text(f"query\tcandidates\tgrades\nq\t{candidates}\t{grades}\n")
    source = FileSource(file="own.tsv", kind=RecordKind.RANKING, score_range=(0, 3))
    with pytest.raises(UserError) as raised:
        source.load(Roots(base=tmp_path))
    assert [text.replace(f"{tmp_path}/", "") for text in raised.value.messages] == [f"own.tsv:2: {message}"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_rankings_are_read_from_the_users_files(tmp_path: Path, suffix: str) -> None:
    row = {"title": "q", "docs": ["a, b", "c"], "relevance": [3, 0], "id": "7"}
    file = tmp_path / f"own.{suffix}"
    if suffix == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([row]), file)
    elif suffix == "jsonl":
        file.write_text(json.dumps(row) + "\n")
    else:
        file.write_text('title,docs,relevance,id\nq,"[""a, b"", ""c""]","[3, 0]",7\n')
    columns = {"query": "title", "candidates": "docs", "grades": "relevance", "id": "id"}
    source = FileSource(file=file.name, kind=RecordKind.RANKING, columns=columns, score_range=(0, 3))
    found: list[Record] = list(source.load(Roots(base=tmp_path)))
    assert found == [Ranking(id="7", query="q", candidates=("a, b", "c"), grades=(1.0, 0.0))]


HISTORY = Ranking(
    id="h",
    query="read first",
    further_queries=("read second", "read third"),
    candidates=("clicked", "passed over"),
    grades=(1, 0),
    split="test",
)


def test_further_queries_survive_a_folder(tmp_path: Path) -> None:
    data = made(HISTORY, MOUNT)
    data.write(tmp_path)
    assert list(SyntheticDataset.read(tmp_path)) == [HISTORY, MOUNT]
    assert HISTORY.queries == ("read first", "read second", "read third")
    assert data.texts == (*HISTORY.texts(), *MOUNT.texts())


def test_rankings_without_further_queries_keep_their_hashes() -> None:
    assert "further_queries" not in made(MOUNT).table.column_names
    nameless = ranking("a", "b")
    assert nameless.content_id() == "38d3cdaead6a9ecc68ef"
    assert (
        made(MOUNT).manifest.content_hash
        == "7ab5995f6476e09a4d0cbd8be05eec77b0fc024b142e7c07c68b95d7009d01dd"
    )
    assert replace(nameless, further_queries=("r",)).content_id() != nameless.content_id()


def test_a_blank_further_query_is_named() -> None:
    with refused("sentence"):
        made(replace(HISTORY, further_queries=("read", " ")))


def test_further_queries_count_in_the_overlap_with_gold() -> None:
    def gold(first: str, second: str) -> SyntheticDataset:
        pair = ScoredPair(sentence1=first, sentence2=second, score=1.0)
        return SyntheticDataset.create(RecordKind.SCORED_PAIR, [pair])

    assert len(drop_pairs_in(made(HISTORY), [gold("clicked", "read third")])) == 0
    assert len(drop_pairs_in(made(HISTORY), [gold("read first", "read third")])) == 1


def test_conversions_keep_further_queries_or_report_their_loss() -> None:
    pairs = convert(made(HISTORY), RecordKind.SCORED_PAIR)
    assert pairs.column("id") == ["h/candidate1", "h/candidate2"]
    assert pairs.manifest.notes[-1].endswith("one item of a test, and 2 further queries")
    assert convert(made(HISTORY), RecordKind.SENTENCE).column("sentence") == list(HISTORY.texts())


@pytest.mark.parametrize("ending", [ExportFormat.JSONL, ExportFormat.CSV])
def test_further_queries_are_exported_and_imported(tmp_path: Path, ending: ExportFormat) -> None:
    file = tmp_path / f"out.{ending}"
    export_dataset(made(HISTORY, MOUNT), file, ending)
    assert list(import_file(file)) == [HISTORY, MOUNT]


def test_hugging_face_exports_have_further_queries_if_any(tmp_path: Path) -> None:
    import datasets

    export_dataset(made(HISTORY), tmp_path / "out", ExportFormat.HUGGINGFACE)
    found = datasets.load_from_disk(tmp_path / "out")["test"]
    assert found.column_names == [*COLUMNS, "further_queries"]


def test_further_queries_are_described_like_other_sentences() -> None:
    found = describe(made(HISTORY))
    assert found.num_sentences == 5
    assert found.words["further_queries"].mean == 2
