"""synthbench report: tables again, from tracked results."""

from pathlib import Path
from typing import Annotated

import typer

from synthbench.cli.console import console
from synthbench.cli.options import home

OutputFolder = Annotated[
    Path, typer.Option(help="Folder for the tables, in a folder of the experiment's name.")
]


def report(
    file: Annotated[Path, typer.Argument(help="Experiment file (YAML).")],
    output: OutputFolder = Path("reports"),
) -> None:
    """Write the tables of an experiment's last tracked run again; computes nothing."""

    from synthbench.config.load import experiment_name
    from synthbench.reporting.build import build_table
    from synthbench.reporting.terminal import terminal_table
    from synthbench.reporting.write import write_report
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    result = MlflowTracker(home()).load(experiment_name(file))
    console().print(terminal_table(build_table(result)))
    for path in write_report(result, output / result.experiment):
        print(path)
