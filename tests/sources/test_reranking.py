"""Reranking sets from files: queries with lists of positives and negatives, in the order they had."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource, TaskSource

ROW: Mapping[str, Any] = {"id": "7", "query": "q", "positive": ["a", "b"], "negative": ["c"]}


def read(folder: Path, *rows: Mapping[str, Any]) -> SyntheticDataset:
    lines = (json.dumps(row) + "\n" for row in rows)
    (folder / "own.jsonl").write_text("".join(lines), encoding="utf-8")
    source = FileSource(file="own.jsonl", format="reranking", split="test")
    assert source.record_kind == RecordKind.RANKING
    return source.load(Roots(base=folder))


def test_positives_come_first_if_the_file_has_no_order(tmp_path: Path) -> None:
    wanted = Ranking(id="7", query="q", candidates=("a", "b", "c"), grades=(1.0, 1.0, 0.0), split="test")
    assert list(read(tmp_path, ROW)) == [wanted]


def test_the_original_order_of_candidates_is_restored(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {**ROW, "order": [1, 0, 1]})
    assert (found.candidates, found.grades) == (("a", "c", "b"), (1.0, 0.0, 1.0))


def test_a_ranking_without_an_id_is_identified_by_file_and_line(tmp_path: Path) -> None:
    nameless = {name: value for name, value in ROW.items() if name != "id"}
    assert read(tmp_path, ROW, nameless).column("id") == ["7", "own.jsonl/0002"]


def test_several_queries_form_one_item(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {**ROW, "query": ["q", "r", "q"]})
    assert found.queries == ("q", "r")


def test_queries_without_positives_stay_and_those_without_candidates_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, {**ROW, "positive": []}, {**ROW, "id": "8", "positive": [], "negative": []})
    assert found.column("grades") == [[0.0]]
    assert found.manifest.dropped == {"no candidates": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": " "}, "query is empty"),
        ({"query": []}, "query is empty"),
        ({"positive": "a"}, "positive is not a list of texts: 'a'"),
        ({"negative": ["c", ""]}, "negative 2 is empty"),
        ({"order": [1, 0]}, "order has not a 1 for each positive and a 0 for each negative"),
        ({"order": ["a", 1, 0]}, "order has not a 1 for each positive and a 0 for each negative"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, ROW, {**ROW, "id": "8", **change})
    assert raised.value.messages == (f"{tmp_path}/own.jsonl:2: {message}",)


def test_missing_fields_and_repeated_ids_are_named_together(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, ROW, {"query": "q", "positive": ["a"]}, ROW)
    found = [message.removeprefix(f"{tmp_path}/own.jsonl:") for message in raised.value.messages]
    assert found == ["2: no field 'negative'", "3: duplicate id '7', first in line 1"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"file": "own.tsv"}, "own.tsv: a file in reranking format is a .jsonl file"),
        ({"kind": RecordKind.PAIR}, "a file in reranking format holds ranking records"),
        ({"columns": {"query": "q"}}, "columns: reranking format knows its own; leave it out"),
    ],
)
def test_keys_that_the_format_defines_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FileSource.model_validate({"file": "own.jsonl", "format": "reranking", **keys})


def test_further_queries_are_read_from_their_own_column(tmp_path: Path) -> None:
    row = {"query": "q", "candidates": ["a"], "grades": [1], "history": ["r", "s"]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    columns = {"further_queries": "history"}
    source = FileSource(file="own.jsonl", kind=RecordKind.RANKING, columns=columns)
    assert next(iter(source.load(Roots(base=tmp_path)))).queries == ("q", "r", "s")


def test_a_task_is_read_from_the_folder_and_its_size_checked(tmp_path: Path) -> None:
    (tmp_path / "reranking").mkdir()
    file = tmp_path / "reranking" / "SciDocsRR.jsonl"
    file.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    roots = Roots(data=tmp_path)
    assert len(TaskSource(task="SciDocsRR", expected_size=1).load(roots)) == 1
    with refused("SciDocsRR.jsonl", "SciDocsRR", "test"):
        TaskSource(task="SciDocsRR").load(roots)


REAL = {
    "semeval-cqa-a-2016-dev": (244, 211, 0),
    "wikiqa-dev": (296, 126, 0),
    "trecqa-dev": (81, 78, 1),
}


@pytest.mark.skipif("SYNTHBENCH_DATA" not in os.environ, reason="needs the real test sets in SYNTHBENCH_DATA")
@pytest.mark.parametrize("name", REAL)
def test_the_real_sets_have_the_published_sizes(name: str) -> None:
    source = FileSource(file=f"data:reranking/{name}.jsonl", format="reranking", split="test")
    data = source.load(Roots(data=Path(os.environ["SYNTHBENCH_DATA"])))
    answerable = sum(any(grades) for grades in data.column("grades"))
    assert (len(data), answerable, data.manifest.dropped.get("no candidates", 0)) == REAL[name]
