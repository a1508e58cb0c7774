"""synthbench dashboard: what is tracked, in MLflow's UI."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.options import overrides
from synthbench.home import home

if TYPE_CHECKING:
    from synthbench.tracking.mlflow_tracker import Addresses

PORT = 5000


def dashboard(
    file: Annotated[
        Path | None, typer.Argument(help="Experiment file (YAML); what was tracked last if not given.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = PORT,
) -> None:
    """Open MLflow's UI on an experiment: a server on this machine, until Ctrl-C.

    Where MLFLOW_TRACKING_URI names a server, that is where to look, and none is started.
    """
    from synthbench.config.load import load_experiment
    from synthbench.tracking.mlflow_tracker import MlflowTracker
    from synthbench.tracking.server import served

    name = "" if file is None else load_experiment(file, overrides()).name
    tracker = MlflowTracker(home())
    addresses = tracker.addresses(name)
    if tracker.is_web:
        _print(tracker.place, addresses)
        return
    with served(tracker.uri, tracker.artifacts, port) as (server, process):
        _print(server, addresses)
        print("Ctrl-C ends it.", flush=True)
        process.wait()


def _print(server: str, addresses: "Addresses") -> None:
    print(f"{addresses.title} in MLflow:")
    for what, address in addresses.pages.items():
        print(f"{what}: {server}{address}")
