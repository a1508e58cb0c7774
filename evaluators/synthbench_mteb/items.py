"""The test items of mteb's tasks as records, to find them in training data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from synthbench.api import Record, RecordKind, ScoredPair, Sentence, SyntheticDataset, UserError, is_invisible
from synthbench_mteb.published import published_revision

PARALLEL = "parallel"
"""mteb's name of all languages of a bitext task with a column for each."""


def test_items(task: Any) -> SyntheticDataset:  # noqa: ANN401 - an AbsTask of mteb with its data
    """Return the distinct test items: pairs (STS, pair classification), queries (retrieval), otherwise texts.

    Items are in the order of the data, without blank ones. Raises UserError if there are none.
    """
    from mteb.abstasks import AbsTaskPairClassification, AbsTaskSTS

    name = task.metadata.name
    is_of_pairs = isinstance(task, AbsTaskPairClassification | AbsTaskSTS)
    records: dict[tuple[str, ...], Record] = {}
    for split, subset in parts_of(task):
        found = _pairs(task, split, subset) if is_of_pairs else _sentences(task, split, subset)
        for record in found:
            texts = record.texts()
            if not any(map(is_invisible, texts)):
                records.setdefault(texts, record)
    if not records:
        raise UserError(f"{name}: no text was found in its data")
    return SyntheticDataset.create(
        RecordKind.SCORED_PAIR if is_of_pairs else RecordKind.SENTENCE,
        records.values(),
        config={"task": name},
        revisions=published_revision(task),
    )


def parts_of(task: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Yield the (split, subset) pairs that mteb scores; one per split if columns are languages."""
    subsets = [PARALLEL] if getattr(task, "parallel_subsets", False) else task.hf_subsets
    for split in task.eval_splits:
        for subset in subsets:
            yield split, subset


def rows_of(task: Any, split: str, subset: str) -> Mapping[str, Any]:  # noqa: ANN401
    """Return column name -> values of one split and subset.

    In mteb's earlier layout, a single row holds each column as a list.
    """
    data = task.dataset
    rows = data[subset][split] if subset in data else data[split]
    names = rows.column_names
    if len(rows) == 1 and all(isinstance(rows[0][name], list) for name in names):
        return {name: rows[0][name] for name in names}
    return {name: rows[name] for name in names}


def _pairs(task: Any, split: str, subset: str) -> Iterator[Record]:  # noqa: ANN401
    from mteb.abstasks import AbsTaskSTS

    rows = rows_of(task, split, subset)
    if isinstance(task, AbsTaskSTS):
        first, second = task.column_names
        scores = rows["score"]
        low, high = task.min_score, task.max_score
    else:
        first, second = task.input1_column_name, task.input2_column_name
        scores, low, high = rows[task.label_column_name], 0, 1
    for one, other, score in zip(rows[first], rows[second], scores, strict=True):
        share = min(1.0, max(0.0, (float(score) - low) / (high - low)))
        yield ScoredPair(sentence1=one, sentence2=other, score=share, split="test", subset=subset)


def _sentences(task: Any, split: str, subset: str) -> Iterator[Record]:  # noqa: ANN401
    from mteb.abstasks import AbsTaskRetrieval, AbsTaskSummarization

    if isinstance(task, AbsTaskRetrieval):
        columns: Iterable[Any] = [task.dataset[subset][split]["queries"]["text"]]
    else:
        names = {*task._get_content_columns()}
        if isinstance(task, AbsTaskSummarization):
            names |= {task.human_summaries_column_name, task.machine_summaries_column_name}
        rows = rows_of(task, split, subset)
        columns = [values for name, values in rows.items() if name in names]
    for column in columns:
        for text in _texts(column):
            yield Sentence(sentence=text, split="test", subset=subset)


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - a column of any depth
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence) or hasattr(value, "__array__") or hasattr(value, "to_pylist"):
        for each in value:
            yield from _texts(each)
