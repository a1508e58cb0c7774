"""Small data sets in the layouts of mteb's tasks, of generated sentences."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ANIMALS = ("cat", "dog", "horse", "sheep", "goose", "mouse")
DOINGS = ("sleeps", "eats", "runs", "waits", "sings", "hides")
PLACES = ("in the barn", "by the river", "on the hill", "under a tree", "at the gate", "in the snow")
TYPES = {
    "STS12": "STS",
    "TwitterSemEval2015": "PairClassification",
    "Banking77Classification": "Classification",
    "TwentyNewsgroupsClustering": "Clustering",
    "NFCorpus": "Retrieval",
    "AskUbuntuDupQuestions": "Reranking",
}
"""One task of each kind, with the kind."""


def sentence(drawn: random.Random) -> str:
    return f"the {drawn.choice(ANIMALS)} {drawn.choice(DOINGS)} {drawn.choice(PLACES)}"


def overlap(one: str, other: str) -> int:
    return len({*one.split()} & {*other.split()})


def write_table(file: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), file)


def write_sts(folder: Path, rows: Sequence[tuple[str, str, float]]) -> None:
    first, second, scores = zip(*rows, strict=True)
    write_table(folder / "test.parquet", {"sentence1": first, "sentence2": second, "score": scores})


def write_tasks(root: Path, names: Collection[str] = tuple(TYPES), seed: int = 0) -> Path:
    """Write a folder for each of these tasks; return the root."""
    for name in names:
        WRITERS[TYPES[name]](root / name, random.Random(f"{name} {seed}"))
    return root


def write_similarity(folder: Path, drawn: random.Random) -> None:
    pairs = [(sentence(drawn), sentence(drawn)) for _ in range(40)]
    write_sts(folder, [(one, other, float(min(5, overlap(one, other)))) for one, other in pairs])


def write_pairs(folder: Path, drawn: random.Random) -> None:
    first, second = ([sentence(drawn) for _ in range(40)] for _ in range(2))
    labels = [int(overlap(one, other) > 2) for one, other in zip(first, second, strict=True)]
    write_table(folder / "test.parquet", {"sent1": first, "sent2": second, "labels": labels})


def write_classes(folder: Path, drawn: random.Random) -> None:
    for split, number in (("train", 90), ("test", 45)):
        texts = [sentence(drawn) for _ in range(number)]
        labels = [ANIMALS.index(text.split()[1]) % 3 for text in texts]
        write_table(folder / f"{split}.parquet", {"text": texts, "label": labels})


def write_clusters(folder: Path, drawn: random.Random) -> None:
    texts = [sentence(drawn) for _ in range(60)]
    labels = [ANIMALS.index(text.split()[1]) % 3 for text in texts]
    write_table(folder / "test.parquet", {"sentences": [texts], "labels": [labels]})


def write_retrieval(folder: Path, drawn: random.Random, *, with_candidates: bool = False) -> None:
    documents = {f"d{number}": sentence(drawn) for number in range(30)}
    queries = {f"q{number}": sentence(drawn) for number in range(8)}
    tables = {
        "corpus": {"_id": [*documents], "title": [""] * len(documents), "text": [*documents.values()]},
        "queries": {"_id": [*queries], "text": [*queries.values()]},
    }
    relevant = [
        (query, document, 1)
        for query, asked in queries.items()
        for document in sorted(documents, key=lambda name: -overlap(asked, documents[name]))[:3]
    ]
    tables["default"] = dict(
        zip(("query-id", "corpus-id", "score"), map(list, zip(*relevant, strict=True)), strict=True)
    )
    if with_candidates:
        candidates = [drawn.sample([*documents], 20) for _ in queries]
        tables["top_ranked"] = {"query-id": [*queries], "corpus-ids": candidates}
    head = ["---", "configs:"]
    for name, columns in tables.items():
        write_table(folder / f"{name}.parquet", columns)
        head += [f"- config_name: {name}", "  data_files:", "  - split: test", f"    path: {name}.parquet"]
    (folder / "README.md").write_text("\n".join([*head, "---", ""]), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Path, random.Random], None]] = {
    "STS": write_similarity,
    "PairClassification": write_pairs,
    "Classification": write_classes,
    "Clustering": write_clusters,
    "Retrieval": write_retrieval,
    "Reranking": partial(write_retrieval, with_candidates=True),
}
