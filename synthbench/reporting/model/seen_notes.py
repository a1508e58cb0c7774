"""Warnings on test sets and training data that a model behind the rows was trained on before."""

from collections.abc import Iterable, Iterator, Set

from synthbench.base.grouping import grouped
from synthbench.base.listing import listed
from synthbench.reporting.model.aggregate import rows as rows_of
from synthbench.reporting.model.table import SEEN_MARK
from synthbench.reporting.results import ExperimentResult, SeenData

MOST_ROWS = 4


def seen_notes(result: ExperimentResult) -> Iterator[str]:
    """Yield a warning for each model behind the rows that was trained before on data of the table."""
    rows = {row.label for row in rows_of(result)}
    return (f"{SEEN_MARK} {sentence}" for sentence in seen_sentences(result.seen, rows))


def seen_sentences(seen: Iterable[SeenData], all_rows: Set[str]) -> Iterator[str]:
    """Yield a sentence per model: which data it was trained on, who states this, which rows it concerns."""
    models = grouped(((each.model, each.stated_by), each) for each in seen)
    for (model, stated_by), of_model in models.items():
        rows = list(dict.fromkeys(row for each in of_model for row in each.rows))
        where = "" if all_rows <= set(rows) else f", which is behind {listed(rows, MOST_ROWS)},"
        kinds = {
            "test sets": _named(of_model, is_test=True),
            "training data": _named(of_model, is_test=False),
        }
        seen_by_kind = "; ".join(f"{kind}: {names}" for kind, names in kinds.items() if names)
        yield f"{model}{where} was trained on data of this table: {seen_by_kind} ({stated_by})."


def _named(seen: Iterable[SeenData], *, is_test: bool) -> str:
    """Name the test sets if `is_test`, else the sources, each with its data sets: "nli (SNLI, MultiNLI)"."""
    sets = grouped((each.name, each.data_set) for each in seen if each.is_test is is_test)
    return ", ".join(name if [name] == of else f"{name} ({', '.join(of)})" for name, of in sets.items())
