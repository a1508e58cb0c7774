"""The texts of each test item, by which items are known to share sentences."""

from collections.abc import Mapping

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind

Texts = tuple[str, ...]


def texts_by_item(task: SyntheticDataset) -> Mapping[str, Texts]:
    """Return the texts of each record by its id; of retrieval, those of queries with their relevant passages.

    All queries share the corpus, but only passages that are judged relevant decide a query's score.
    """
    if task.kind is not RecordKind.RETRIEVAL:
        return dict(zip(task.column("id"), task.text_rows(), strict=True))
    relevant = {
        query: (text, [name for name, grade in zip(judged, grades, strict=True) if grade > 0])
        for query, text, judged, grades in task.rows_of("id", "text", "judged", "grades")
        if judged
    }
    wanted = {name for _, names in relevant.values() for name in names}
    passages = {name: text for name, text in task.rows_of("id", "text") if name in wanted}
    return {
        query: (text, *(passages[name] for name in names if name in passages))
        for query, (text, names) in relevant.items()
    }
