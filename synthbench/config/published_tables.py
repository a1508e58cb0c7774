"""Published figures of papers, read from a CSV with one figure per line."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from synthbench.base.errors import UserError, did_you_mean, first_fault
from synthbench.base.user_files import read_settings
from synthbench.config.table_options import PublishedCosts, PublishedOptions

Flag = Literal["", "reported-elsewhere", "test-selected-k", "paste-error", "unclear"]
Count = Annotated[int | None, BeforeValidator(lambda text: text or None)]


def _read_settings(value: object) -> object:
    """Return "queries=mixed; relevant_from=0.9" as a mapping."""
    if not isinstance(value, str):
        return value
    pairs = [text.partition("=") for text in value.split(";") if text.strip()]
    if any(not (key.strip() and sign and setting.strip()) for key, sign, setting in pairs):
        raise ValueError(f"'{value}' is not of the form 'NAME=VALUE; NAME=VALUE'")
    return {key.strip(): setting.strip() for key, _, setting in pairs}


EvaluatorSettings = Annotated[Mapping[str, str], BeforeValidator(_read_settings)]


class PublishedValue(BaseModel):
    """A published figure, with the conditions that a comparable result has to meet.

    `value` and `sd` have the printed digits. `encoder` and `generator` are model names, "" for none or
    unknown. `settings` are the paper's evaluator settings, with synthbench's key names. `n`: number of test
    items, None if unknown.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    paper: str
    table: str
    row: str
    encoder: str
    generator: str
    column: str
    metric: str
    split: Literal["train", "dev", "test", ""]
    aggregation: Literal["all", "mean", "none"]
    settings: EvaluatorSettings = {}
    n: Count
    value: str
    sd: str
    flag: Flag

    @property
    def source(self) -> str:
        """Paper and table."""
        return f"{self.paper}, Table {self.table}"


def read_published(file: Path) -> tuple[PublishedValue, ...]:
    """Return every figure of a file; raises UserError if it has none or an unreadable line."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_settings(file), newline="")))
    except csv.Error as error:
        raise UserError(f"{file}: can't be read: {error}") from error
    values = []
    for number, row in enumerate(rows, start=2):
        try:
            values.append(PublishedValue.model_validate(row))
        except ValidationError as error:
            raise UserError(f"{file}: line {number}: {first_fault(error)}") from error
    if not values:
        raise UserError(f"{file}: no figures")
    return tuple(values)


def chosen_costs(options: PublishedCosts, values: Sequence[PublishedValue]) -> tuple[PublishedValue, ...]:
    """Return the published costs that `table.costs` selects, in US dollars.

    Raises UserError for a row or column that the file lacks. The message names the key below `costs`.
    """
    of_row = {value.column: value for value in values if value.row == options.row and value.metric == "usd"}
    if not of_row:
        known = {value.row for value in values if value.metric == "usd"}
        raise UserError(f"row: no '{options.row}' in US dollars{did_you_mean(options.row, known)}")
    faults = [
        f"columns.{ours}: no '{column}'{did_you_mean(column, of_row)}"
        for ours, columns in options.columns.items()
        for column in columns
        if column not in of_row
    ]
    if faults:
        raise UserError(*faults)
    wanted = dict.fromkeys(column for columns in options.columns.values() for column in columns)
    return tuple(of_row[column] for column in wanted)


def chosen_values(options: PublishedOptions, values: Sequence[PublishedValue]) -> tuple[PublishedValue, ...]:
    """Return the published figures that `table.published` selects.

    Raises UserError for an encoder, row or column that the file lacks, and for a row that the file has for
    several encoders or splits. The message names the key below `published`.
    """
    wanted_encoders = {f"encoders.{at}": name for at, name in options.encoders.items()}
    if options.encoder is not None:
        wanted_encoders["encoder"] = options.encoder
    known_encoders = {value.encoder for value in values}
    faults = [
        f"{key}: '{name}' is not there{did_you_mean(name, known_encoders)}"
        for key, name in wanted_encoders.items()
        if name not in known_encoders
    ]
    of_encoder = [
        value for value in values if not wanted_encoders or value.encoder in wanted_encoders.values()
    ]
    rows, columns = ({getattr(each, key) for each in of_encoder} for key in ("row", "column"))
    for key, wanted, known in (("rows", options.rows, rows), ("columns", options.columns, columns)):
        for ours, printed in wanted.items():
            if of_encoder and printed not in known:
                faults.append(f"{key}.{ours}: no '{printed}'{did_you_mean(printed, known)}")
    chosen = tuple(value for value in of_encoder if value.row in options.rows.values())
    cells = Counter((value.row, value.column, value.encoder if options.encoders else "") for value in chosen)
    for row in dict.fromkeys(row for (row, _, _), count in cells.items() if count > 1):
        faults.append(f"rows: '{row}' is there for several encoders or splits; name the `encoder:`")
    if faults:
        raise UserError(*faults)
    return chosen


class PublishedAudit(BaseModel):
    """A published audit's shares, in percent: judged label -> intended label -> share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    cells: dict[str, dict[str, str]]


def read_published_audit(file: Path, rows: Mapping[str, str], columns: Mapping[str, str]) -> PublishedAudit:
    """Return a published audit's shares.

    `rows` map judged labels to the file's rows, `columns` map intended labels to the file's columns. Raises
    UserError if the file is unreadable, or lacks a row or column.
    """
    options = PublishedOptions(file=(str(file),), rows=rows, columns=columns)
    values = chosen_values(options, read_published(file))
    found = {(value.row, value.column): value.value for value in values}
    cells = {
        judged: {
            intended: found[row, column] for intended, column in columns.items() if (row, column) in found
        }
        for judged, row in rows.items()
    }
    return PublishedAudit(source=values[0].source, cells=cells)
