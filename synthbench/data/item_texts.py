"""The texts of each test item, which tell whether items share sentences."""

from collections.abc import Mapping, Sequence

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind

Texts = tuple[str, ...]
Graded = tuple[str, float]
"""A passage and its grade."""


def texts_by_item(task: SyntheticDataset) -> Mapping[str, Texts]:
    """Return record id -> its texts; for a retrieval set, query id -> the query and its relevant passages.

    All queries share the corpus, but only passages that are judged relevant decide a query's score.
    """
    if task.kind is not RecordKind.RETRIEVAL:
        return dict(zip(task.column("id"), task.text_rows(), strict=True))
    return {
        query: (text, *(passage for passage, _ in relevant))
        for query, (text, relevant) in relevant_passages(task).items()
    }


def relevant_passages(task: SyntheticDataset) -> Mapping[str, tuple[str, Sequence[Graded]]]:
    """Return query id -> (text, passages with a grade above 0) for a retrieval set's judged queries."""
    queries = {
        query: (text, {name: grade for name, grade in zip(judged, grades, strict=True) if grade > 0})
        for query, text, judged, grades in task.rows_of("id", "text", "judged", "grades")
        if judged
    }
    wanted = {name for _, relevant in queries.values() for name in relevant}
    passages = {name: text for name, text in task.rows_of("id", "text") if name in wanted}
    return {
        query: (text, [(passages[name], grade) for name, grade in relevant.items() if name in passages])
        for query, (text, relevant) in queries.items()
    }
