"""synthbench report: tables again, from tracked results."""

from pathlib import Path
from typing import Annotated

import typer

from synthbench.cli.console import console
from synthbench.cli.given import load_given
from synthbench.cli.options import Assignments, File, Profile, Seeds, Variants, home

OutputFolder = Annotated[
    Path, typer.Option(help="Folder for the tables, in a folder of the experiment's name.")
]


def report(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    output: OutputFolder = Path("reports"),
) -> None:
    """Write the tables of the last tracked run of this file and these overrides again; computes nothing."""

    from synthbench.pipeline.collect import request
    from synthbench.reporting.build import build_table
    from synthbench.reporting.terminal import terminal_table
    from synthbench.reporting.write import report_folder, write_report
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    given = load_given(file, profile, assignments, variant, (seeds, None))
    name = given.experiment.name
    result = MlflowTracker(home()).load(name, request(given.experiment, given.overrides))
    console().print(terminal_table(build_table(result)))
    for path in write_report(result, report_folder(output, name, given.overrides)):
        print(path)
