"""cvangysel/pytrec_eval #49: a query without relevant documents spoils the scores of later ones.

Each query is measured by itself: one of which no document is relevant gets 0 and changes no other one's
score.
"""

from pathlib import Path

import pytest

from synthbench.api import SyntheticDataset
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots
from synthbench_retrieval.measures import measures

CORPUS = '{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two"}\n{"_id": "3", "text": "three"}\n'
QUERIES = '{"_id": "a", "text": "first"}\n{"_id": "b", "text": "second"}\n{"_id": "c", "text": "third"}\n'
RANKED = ("passage/1", "passage/2", "passage/3")


def corpus(folder: Path, qrels: str) -> SyntheticDataset:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(CORPUS, encoding="utf-8")
    (folder / "queries.jsonl").write_text(QUERIES, encoding="utf-8")
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}", encoding="utf-8")
    return CorpusSource(corpus=folder.name).load(Roots(base=folder.parent, data=folder.parent))


def scores(data: SyntheticDataset) -> dict[str, float]:
    return {one.id: measures(RANKED, one)["ndcg_at_10"] for one in data if getattr(one, "is_query", False)}


def test_a_query_without_a_relevant_document_does_not_change_other_queries(tmp_path: Path) -> None:
    others = "a\t2\t1\nc\t2\t1\nc\t3\t1\n"
    alone = scores(corpus(tmp_path / "alone", others))
    found = scores(corpus(tmp_path / "beside", others.replace("c\t2", "b\t1\t0\nc\t2")))
    assert found == {**alone, "query/b": 0.0}
    assert alone["query/a"] == pytest.approx(0.6309, abs=1e-4)
    assert 0.6 < alone["query/c"] < 0.7
