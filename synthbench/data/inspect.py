"""Summary of a data set: sizes, lengths, scores, repetition, diversity, provenance."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.dataset import OF_FEW_VALUES, SyntheticDataset, text_columns
from synthbench.data.likeness import normalised
from synthbench.data.records import RecordKind
from synthbench.tables.characters import is_invisible
from synthbench.words import spaced

MAX_LABELS = 11


class WordCounts(BaseModel):
    """Lengths of one column's sentences, in words; in scripts without spaces, as the splitter finds them."""

    model_config = ConfigDict(frozen=True)

    minimum: int
    median: float
    mean: float
    maximum: int


class Description(BaseModel):
    """A data set's key figures; counts are of records unless the field says otherwise."""

    model_config = ConfigDict(frozen=True)

    kind: RecordKind
    num_records: int
    splits: dict[str, int]
    subsets: dict[str, int]
    labels: dict[str, int]
    methods: dict[str, int]
    generators: dict[str, int]
    instructions: dict[str, int]
    num_failures: int
    failures: dict[str, int] = Field(description="reason -> number of failures")
    dropped: dict[str, int] = Field(description="reason -> number of dropped records")
    words: dict[str, WordCounts] = Field(description="column -> lengths of the column's sentences in words")
    scores: dict[str, int] = Field(
        description="score (rankings: grade; triplets: a teacher's score) -> number of such scores; "
        "scores are rounded to tenths if many are distinct"
    )
    num_identical: int = Field(description="records with two equal sentences")
    num_nearly_identical: int = Field(
        description="records with two sentences equal but for case, outer white space or full stops"
    )
    num_duplicates: int = Field(
        description="records with the sentences of an earlier record in the same order"
    )
    num_unordered_duplicates: int = Field(
        description="like num_duplicates, but a pair's sentences, candidates or negatives may be reordered"
    )
    num_sentences: int = Field(description="distinct sentences")
    num_invisible: int = Field(description="distinct sentences without a visible character")
    used_range: tuple[float, float] | None = Field(
        description="lowest and highest score of scored pairs; None without any"
    )
    distinct_1: float = Field(
        description="share of distinct words among all words of the distinct sentences, lower-cased"
    )
    distinct_2: float = Field(description="like distinct_1, for pairs of neighbouring words")
    revisions: dict[str, str]
    tokens: dict[str, int]
    cost_usd: float
    notes: list[str]
    measured: dict[str, float]
    content_hash: str

    @property
    def share_identical(self) -> float:
        """Share of records with two equal sentences, in [0, 1]."""
        return self.num_identical / max(self.num_records, 1)


def describe(dataset: SyntheticDataset, words: str = "pairs") -> Description:
    """Return the data set's key figures.

    distinct-n is the share of distinct n-grams among all (Li et al. 2016, section 5.2). `words` names the
    splitter of scripts without spaces.
    """
    table, manifest = dataset.table, dataset.manifest
    names = text_columns(dataset.kind, table.column_names)
    sentences = distinct_sentences(dataset.kind, table)
    distinct_1, distinct_2 = _distinct_n_grams(sentences, words)
    counts: dict[str, Any] = {f"{name}s": _counts(table, name) for name in OF_FEW_VALUES}
    return Description(
        kind=dataset.kind,
        num_records=len(dataset),
        **counts,
        num_failures=manifest.num_failures,
        failures=_counts(dataset.failure_table, "reason"),
        words={name: _word_counts(column, words) for name in names if len(column := _texts(table, name))},
        scores=_scores(table),
        **_repetition(dataset),
        num_sentences=len(sentences),
        num_invisible=sum(map(is_invisible, sentences.to_pylist())),
        used_range=_used_range(table),
        distinct_1=distinct_1,
        distinct_2=distinct_2,
        measured=manifest.measured,
        **manifest.model_dump(
            include={"dropped", "revisions", "tokens", "cost_usd", "notes", "content_hash"}
        ),
    )


def shared_sentences(first: SyntheticDataset, second: SyntheticDataset) -> int:
    """Return the number of distinct sentences that both data sets contain."""
    known, others = (distinct_sentences(data.kind, data.table) for data in (first, second))
    return int(pc.sum(pc.is_in(known, others)).as_py() or 0)


def distinct_sentences(kind: RecordKind, table: pa.Table) -> pa.Array:
    """Return the distinct sentences of a table, column after column, in order of first appearance."""
    names = text_columns(kind, table.column_names)
    return pc.unique(pa.concat_arrays([_texts(table, name) for name in names]))


def _counts(table: pa.Table, column: str) -> dict[str, int]:
    """Count a column's values other than "", most frequent first."""
    counted = pc.value_counts(table.column(column)).to_pylist()
    found = [(each["values"], each["counts"]) for each in counted if each["values"]]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def _texts(table: pa.Table, name: str) -> pa.Array:
    """Return a column's sentences as a flat array, lists included."""
    column = table.column(name).combine_chunks()
    texts = column.flatten() if pa.types.is_list(column.type) else column
    return texts.cast(pa.large_string())


def _words(sentences: pa.Array, splitter: str) -> pa.Array:
    """Return a list of words for each sentence."""
    is_ascii = pc.string_is_ascii(sentences)
    if not pc.all(is_ascii).as_py():
        others = [spaced(text, splitter) for text in sentences.filter(pc.invert(is_ascii)).to_pylist()]
        sentences = pc.replace_with_mask(sentences, pc.invert(is_ascii), pa.array(others, sentences.type))
    return pc.utf8_split_whitespace(pc.utf8_trim_whitespace(sentences))


def _word_counts(sentences: pa.Array, words: str) -> WordCounts:
    lengths = pc.list_value_length(_words(sentences, words)).to_numpy()
    return WordCounts(
        minimum=int(lengths.min()),
        median=float(np.median(lengths)),
        mean=float(lengths.mean()),
        maximum=int(lengths.max()),
    )


def _scores(table: pa.Table) -> dict[str, int]:
    """Count records by score, in ascending order."""
    if "score" in table.column_names:
        scores = table.column("score").to_numpy()
    elif lists := {"grades", "scores"} & {*table.column_names}:
        scores = table.column(lists.pop()).combine_chunks().flatten().to_numpy()
    else:
        return {}
    values, counts = np.unique(scores, return_counts=True)
    if len(values) > MAX_LABELS:
        values, counts = np.unique(np.floor(scores * 10 + 0.5) / 10, return_counts=True)
    return {f"{value:g}": int(count) for value, count in zip(values, counts, strict=True)}


def _used_range(table: pa.Table) -> tuple[float, float] | None:
    if "score" not in table.column_names or not table.num_rows:
        return None
    ends = pc.min_max(table.column("score")).as_py()
    return ends["min"], ends["max"]


def _repetition(dataset: SyntheticDataset) -> dict[str, Any]:
    rows = list(dataset.text_rows())
    unordered = {_unordered(*each) for each in zip(rows, _numbers_ordered(dataset), strict=True)}
    nearly = [tuple(map(normalised, row)) for row in rows]
    return {
        "num_identical": sum(len(set(row)) < len(row) for row in rows),
        "num_nearly_identical": sum(len(set(row)) < len(row) for row in nearly),
        "num_duplicates": len(rows) - len(set(rows)),
        "num_unordered_duplicates": len(rows) - len(unordered),
    }


def _numbers_ordered(dataset: SyntheticDataset) -> list[int]:
    """Return, for each record, the number of leading texts whose order matters for duplicates.

    The order of a pair's sentences, a ranking's candidates and a triplet's negatives does not matter.
    """
    if dataset.kind == RecordKind.RANKING and "further_queries" in dataset.table.column_names:
        return [1 + len(further or ()) for further in dataset.column("further_queries")]
    return [{RecordKind.RANKING: 1, RecordKind.TRIPLET: 2}.get(dataset.kind, 0)] * len(dataset)


def _unordered(row: tuple[str, ...], num_ordered: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return row[:num_ordered], tuple(sorted(row[num_ordered:]))


def _distinct_n_grams(sentences: pa.Array, splitter: str) -> tuple[float, float]:
    """Return distinct-1 and distinct-2; 0 without any n-gram."""
    words = _words(pc.utf8_lower(sentences), splitter)
    codes = words.flatten().dictionary_encode()
    if not len(codes):
        return 0.0, 0.0
    index = codes.indices.to_numpy().astype(np.int64)
    is_last = np.zeros(len(index), dtype=bool)
    ends = np.cumsum(pc.list_value_length(words).to_numpy())
    is_last[ends[ends > 0] - 1] = True
    # One integer for each pair of neighbouring words within a sentence.
    pairs = (index[:-1] * len(codes.dictionary) + index[1:])[~is_last[:-1]]
    distinct_2 = len(np.unique(pairs)) / len(pairs) if len(pairs) else 0.0
    return len(codes.dictionary) / len(index), distinct_2
