"""synthbench report: tables, plots and page again, from tracked results."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import console
from synthbench.cli.given import load_given
from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, home
from synthbench.reporting.figure_files import FORMATS

if TYPE_CHECKING:
    from synthbench.reporting.results import ExperimentResult
    from synthbench.tracking.mlflow_tracker import MlflowTracker

OutputFolder = Annotated[
    Path, typer.Option(help="Folder for tables and plot, in a folder of the experiment's name.")
]

Cell = Annotated[
    tuple[str, str],
    typer.Option(
        metavar="ROW COLUMN",
        show_default=False,
        help="Print the runs behind a cell of the table, down to their data, and write nothing."
        " A row of several axes is named as 'bm25 [base=static]'.",
    ),
]


def report(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
    output: OutputFolder = Path("reports"),
    trace: Cell = ("", ""),
) -> None:
    """Write the report of the last tracked run of this file and these overrides again; computes nothing."""

    from synthbench.pipeline.collect import request
    from synthbench.reporting.terminal_report import terminal_report
    from synthbench.reporting.write import place_report, report_files, report_folder
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    given = load_given(file, profile, assignments, variant, (seeds, data))
    name = given.experiment.name
    tracker = MlflowTracker(home())
    result = tracker.load(name, request(given.experiment, given.overrides))
    if trace != ("", ""):
        _print_trace(result, trace, tracker)
        return
    console().print(terminal_report(result))
    files = dict(report_files(result))
    folder = report_folder(output, name, given.overrides)
    print_placed(folder, files, place_report(files, folder))
    print(f"MLflow: {tracker.place}")


def _print_trace(result: "ExperimentResult", cell: tuple[str, str], tracker: "MlflowTracker") -> None:
    from synthbench.reporting.trace import trace

    row, column = cell
    for headline, lines in trace(result, row, column, tracker.run_ids(result)):
        print(headline)
        for line in lines:
            print(f"  {line}")


def print_placed(folder: Path, names: Iterable[str], kept: Mapping[str, str]) -> None:
    """Say where a report's files are: a line for the page, all tables and all plots; and what was edited."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for name in names:
        stem, _, ending = name.rpartition(".")
        kind = "page" if ending == "html" else "plots" if ending in FORMATS else "tables"
        kinds.setdefault(kind, {}).setdefault(stem, []).append(ending)
    for kind in ("tables", "plots", "page"):
        stems: dict[str, list[str]] = {}
        for stem, endings in kinds.get(kind, {}).items():
            stems.setdefault(_any_of(endings), []).append(stem)
        if stems:
            print(
                f"{kind}: {folder}/{', '.join(f'{_any_of(of)}.{endings}' for endings, of in stems.items())}"
            )
    for name, copy in kept.items():
        print(f"edited: {folder / name} was changed by hand since it was written; your version is {copy} now")


def _any_of(names: Sequence[str]) -> str:
    """Return "{a,b}", as shells have it; a name alone as it is."""
    return names[0] if len(names) == 1 else f"{{{','.join(names)}}}"
