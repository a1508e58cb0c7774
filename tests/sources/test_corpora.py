"""Corpora in BEIR's layout: as a retrieval task, as passages, as queries, from a folder and from the hub."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hub_cache import HubCache
from pydantic import ValidationError
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, RetrievalText, Sentence
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots

CORPUS = [
    {"_id": "1", "title": "Tides", "text": "The moon moves the sea."},
    {"_id": "2", "title": "", "text": "Rain falls.", "metadata": {"url": "x"}},
    {"_id": "3", "title": "", "text": " "},
]
QUERIES = [{"_id": "1", "text": "What moves the sea?"}, {"_id": "9", "text": "Nobody judged this."}]
QRELS = "query-id\tcorpus-id\tscore\n1\t1\t2\n1\t2\t-1\n1\t77\t1\n"


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def layout(folder: Path, **changes: str) -> Roots:
    """Write the three files; `changes` are their contents, without the endings of their names."""
    contents = {"corpus": lines(CORPUS), "queries": lines(QUERIES), "qrels": QRELS, **changes}
    (folder / "toy/qrels").mkdir(parents=True, exist_ok=True)
    for name, file in {
        "corpus": "corpus.jsonl",
        "queries": "queries.jsonl",
        "qrels": "qrels/test.tsv",
    }.items():
        (folder / "toy" / file).write_text(contents[name], encoding="utf-8")
    return Roots(base=folder, data=folder)


def loaded(roots: Roots, **fields: Any) -> SyntheticDataset:
    return CorpusSource.model_validate({"corpus": "toy", **fields}).load(roots)


def test_a_task_consists_of_all_passages_and_the_judged_queries(tmp_path: Path) -> None:
    data = loaded(layout(tmp_path))
    assert list(data) == [
        RetrievalText(id="passage/1", split="test", text="Tides The moon moves the sea."),
        RetrievalText(id="passage/2", split="test", text="Rain falls."),
        RetrievalText(
            id="query/1",
            split="test",
            text="What moves the sea?",
            judged=("passage/1", "passage/2", "passage/77"),
            grades=(2.0, 0.0, 1.0),
        ),
    ]
    assert data.manifest.dropped == {"passage without text": 1, "query without judgements": 1}
    assert data.manifest.notes == [
        "1 judgements are below 0, and count as 0",
        "1 judged passages are not in the corpus: no model finds them",
    ]
    assert set(data.manifest.revisions) == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}


def test_a_task_survives_writing_and_reading(tmp_path: Path) -> None:
    data = loaded(layout(tmp_path))
    (tmp_path / "out").mkdir()
    data.write(tmp_path / "out")
    assert list(SyntheticDataset.read(tmp_path / "out")) == list(data)
    assert data.texts == ("Tides The moon moves the sea.", "Rain falls.", "What moves the sea?")


def test_passages_are_training_sentences_and_need_no_judgements(tmp_path: Path) -> None:
    roots = layout(tmp_path)
    (tmp_path / "toy/queries.jsonl").unlink()
    data = loaded(roots, corpus="data:toy", take="passages", sample={"size": 1})
    assert (data.kind, len(data)) == (RecordKind.SENTENCE, 1)
    (one,) = data
    assert isinstance(one, Sentence)
    assert (one.id.split("/")[0], one.split) == ("passage", "train")
    assert list(data.manifest.revisions) == ["corpus.jsonl"]


def test_queries_can_be_training_sentences_too(tmp_path: Path) -> None:
    assert loaded(layout(tmp_path), take="queries").column("sentence") == ["What moves the sea?"]


def test_compressed_files_are_read_too(tmp_path: Path) -> None:
    roots = layout(tmp_path)
    plain = list(loaded(roots))
    for file in ("corpus.jsonl", "qrels/test.tsv"):
        path = tmp_path / "toy" / file
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert list(loaded(roots)) == plain


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"corpus": '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n'}, (":2", "'1'", "line 1")),
        ({"corpus": '{"_id": "1"}\n'}, ("corpus.jsonl:1", "`_id`", "`text`")),
        ({"corpus": "{\n"}, ("corpus.jsonl:1", "not JSON")),
        ({"qrels": "1\t1\n"}, ("test.tsv:1", "whole number")),
        ({"qrels": "query-id\tcorpus-id\tscore\n5\t1\t1\n"}, ("queries.jsonl", "'5'", "qrels/test.tsv")),
    ],
)
def test_faults_are_named_by_file_and_line(
    tmp_path: Path, changes: dict[str, str], facts: tuple[str, ...]
) -> None:
    with refused(*facts):
        loaded(layout(tmp_path, **changes))


def test_missing_files_are_named_with_the_expected_layout(tmp_path: Path) -> None:
    roots = layout(tmp_path)
    with refused("qrels/dev.tsv", "BEIR"):
        loaded(roots, split="dev")
    with refused("data:toy", "--data"):
        loaded(Roots(base=tmp_path), corpus="data:toy")


def test_a_task_can_not_be_sampled() -> None:
    with pytest.raises(ValidationError, match="a retrieval task is whole; `take: passages` can be sampled"):
        CorpusSource.model_validate({"corpus": "toy", "sample": {"size": 1}})
    with pytest.raises(ValidationError, match="only a data set on the hub"):
        CorpusSource.model_validate({"corpus": "toy", "revision": "0" * 40})


def test_a_corpus_and_its_separate_judgements_are_read_from_the_hub(
    hub_cache: HubCache, tmp_path: Path
) -> None:
    hub_cache.add_dataset("BeIR/toy", "a" * 40, {"corpus.jsonl.gz": CORPUS, "queries.jsonl.gz": QUERIES})
    judged = [{"query-id": "1", "corpus-id": "1", "score": "2"}]
    hub_cache.add_dataset("BeIR/toy-qrels", "b" * 40, {"test.tsv": judged})
    source = CorpusSource(corpus="hub:BeIR/toy", revision="a" * 40, judgements="BeIR/toy-qrels")
    data = source.load(Roots())
    assert [one.id for one in data] == ["passage/1", "passage/2", "query/1"]
    assert data.manifest.revisions == {"BeIR/toy": "a" * 40, "BeIR/toy-qrels": "b" * 40}
    assert source.is_on_hub(Roots())
    with refused("BeIR/toy", "qrels/test.tsv or qrels/test.tsv.gz"):
        CorpusSource(corpus="hub:BeIR/toy").load(Roots())
