"""A paper's own audit, as its shares stand beside ours."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from synthbench.reporting.options import PublishedOptions
from synthbench.reporting.published import chosen_values, read_published


class PublishedAudit(BaseModel):
    """The printed shares, in percent: judged label -> intended label -> share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    cells: dict[str, dict[str, str]]


def read_published_audit(file: Path, rows: Mapping[str, str], columns: Mapping[str, str]) -> PublishedAudit:
    """Return the shares that `rows` (judged label -> published row) and `columns` (intended) ask for.

    Raises UserError if the file can't be read, or has no such row or column.
    """
    options = PublishedOptions(file=str(file), rows=rows, columns=columns)
    values = chosen_values(options, read_published(file))
    found = {(value.row, value.column): value.value for value in values}
    cells = {
        judged: {
            intended: found[row, column] for intended, column in columns.items() if (row, column) in found
        }
        for judged, row in rows.items()
    }
    return PublishedAudit(source=values[0].source, cells=cells)
