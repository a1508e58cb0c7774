"""`synthbench report` and `dashboard`: write tracked results again, or show them in MLflow's UI."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.home import home
from synthbench.cli.last_screen import next_step, print_last_screen
from synthbench.cli.options import Given, taking

if TYPE_CHECKING:
    from synthbench.reporting.results import ExperimentResult
    from synthbench.tracking.mlflow_tracker import Addresses, MlflowTracker

OutputFolder = Annotated[Path, typer.Option(help="Folder of reports, with a subfolder for each experiment.")]

Cell = Annotated[
    tuple[str, str],
    typer.Option(
        metavar="ROW COLUMN",
        show_default=False,
        help="Print the runs behind a cell of the table, down to their data; write nothing."
        " ROW with several axes: 'bm25 [base=static]'.",
    ),
]


@taking(Given)
def report(
    given: Given,
    output: OutputFolder = Path("reports"),
    trace: Cell = ("", ""),
) -> None:
    """Rewrite the report of the last tracked run with this file and these overrides; computes nothing."""
    from synthbench.pipeline.invocation import load_invocation
    from synthbench.reporting.files import place_report, report_files, report_folder, report_inputs
    from synthbench.results.collect import request
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    invocation = load_invocation(given.file, given.overrides())
    name = invocation.experiment.name
    tracker = MlflowTracker(home())
    result = tracker.load(name, request(invocation.experiment, invocation.overrides))
    if trace != ("", ""):
        _print_trace(result, trace, tracker)
        return
    folder = report_folder(output, name, invocation.overrides)
    kept = place_report(dict(report_files(result)), folder, report_inputs(result))
    print_last_screen(result, folder, kept, next_step(invocation, tracker.location))


def _print_trace(result: "ExperimentResult", cell: tuple[str, str], tracker: "MlflowTracker") -> None:
    from synthbench.reporting.trace import trace

    row, column = cell
    for headline, lines in trace(result, row, column, tracker.run_ids(result)):
        print(headline)
        for line in lines:
            print(f"  {line}")


PORT = 5000


def dashboard(
    file: Annotated[Path | None, typer.Argument(help="Experiment file (YAML) [the last tracked].")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The UI's port; 0: any free one.")] = PORT,
) -> None:
    """Show an experiment in MLflow's UI, served on this machine until Ctrl-C.

    If MLFLOW_TRACKING_URI names a server, only print that server's address.
    """
    from synthbench.config.load import load_experiment
    from synthbench.tracking.mlflow_tracker import MlflowTracker
    from synthbench.tracking.server import served

    name = "" if file is None else load_experiment(file).name
    tracker = MlflowTracker(home())
    addresses = tracker.addresses(name)
    if tracker.is_web:
        _print(tracker.location, addresses)
        return
    with served(tracker.uri, tracker.artifacts, port) as (server, process):
        _print(server, addresses)
        print("Ctrl-C ends it.", flush=True)
        process.wait()


def _print(server: str, addresses: "Addresses") -> None:
    print(f"{addresses.title} in MLflow:")
    for what, address in addresses.pages.items():
        print(f"{what}: {server}{address}")
