"""Which runs stand behind a cell of the table, and what they were made of."""

from collections.abc import Iterator, Mapping, Sequence

from synthbench.errors import UserError, did_you_mean
from synthbench.reporting import aggregate
from synthbench.reporting.aggregate import Measurement
from synthbench.reporting.ingredients import shown_revisions, told
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult


def trace(
    result: ExperimentResult, row: str, column: str, tracked: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each run behind a cell, the score first, and what it was made of, a line for each thing.

    `row` is a variant, with its axes where it has some as in "bm25 [base=static]", `column` the name of a
    test set or an average; `tracked` has the MLflow run of each run's identity. Raises UserError if the table
    has no such cell.
    """
    options = TableOptions.model_validate(result.table)
    over = _measured(result, column, options)
    runs = _runs(result, row, options)
    found = {one: [run for run in aggregate.runs_at(runs, one.place) if _has(run, one)] for one in over}
    if not any(found.values()):
        raise UserError(f"'{row}' has no score in the column '{column}'")
    for measurement, of_column in found.items():
        for run in of_column:
            yield _headline(run, measurement), tuple(_made_of(run, measurement, tracked))


def _measured(result: ExperimentResult, column: str, options: TableOptions) -> list[Measurement]:
    measured = aggregate.measurements(result, options.across)
    wanted = options.averages.get(column, (column,))
    found = [one for name in wanted for one in measured if name in one.names]
    if not found:
        known = [*(one.label for one in measured), *options.averages]
        raise UserError(f"the table has no column '{column}'{did_you_mean(column, known)}")
    return list(dict.fromkeys(found))


def _runs(result: ExperimentResult, row: str, options: TableOptions) -> Sequence[RunResult]:
    of_rows = {key.label: (key, runs) for key, runs in aggregate.rows(result, options.across).items()}
    exact = of_rows.get(row)
    if exact is not None:
        return exact[1]
    of_variant = [label for label, (key, _) in of_rows.items() if key.variant == row]
    if len(of_variant) == 1:
        return of_rows[of_variant[0]][1]
    if of_variant:
        raise UserError(f"'{row}' is several rows: {', '.join(repr(label) for label in of_variant)}")
    raise UserError(f"the table has no row '{row}'{did_you_mean(row, of_rows)}")


def _has(run: RunResult, measurement: Measurement) -> bool:
    return bool(aggregate.scores([run], measurement))


def _headline(run: RunResult, measurement: Measurement) -> str:
    (score,) = aggregate.scores([run], measurement)
    seed = f"seed {run.seed}" if run.is_seeded else "no seed"
    return (
        f"{measurement.label}, {seed}: {100 * score.scores[score.main_score]:.4f} ({score.main_score} × 100)"
    )


def _made_of(run: RunResult, measurement: Measurement, tracked: Mapping[str, str]) -> Iterator[str]:
    (score,) = aggregate.scores([run], measurement)
    yield f"MLflow run {tracked.get(run.identity, 'unknown: tracked elsewhere, or not any more')}"
    left_out = f", {score.num_dropped:,} left out" if score.num_dropped else ""
    yield f"evaluation {score.stage[:8]}: {score.num_items:,} items{left_out}"
    if run.model_folder:
        steps = f", {run.num_steps:,} steps" if run.num_steps else ""
        start = "".join(f", from {each}" for each in shown_revisions(run.revisions))
        yield f"model {run.model_folder}{steps}{start}"
    yield from (f"chosen on dev: {path} = {value}" for path, value in run.chosen.items())
    for data in run.datasets:
        by = f" by {data.method}" if data.method else ""
        content = f"{data.num_records:,} records, content {data.content_hash[:12]}"
        yield f"data {data.part}{by}: {content}, {data.folder}"
        yield from (f"  made of {told(ingredient)}" for ingredient in data.made_of)
