"""`synthbench export`: write results, models and data sets in the formats of other programs."""

import sys

import typer

from synthbench.cli.export_dataset import export_dataset
from synthbench.cli.export_model import export_model
from synthbench.cli.exports import To
from synthbench.cli.options import Given, taking

app = typer.Typer(no_args_is_help=True)
app.command("model")(export_model)
app.command("dataset")(export_dataset)


@app.command("mteb")
@taking(Given)
def mteb(given: Given, to: To) -> None:
    """Write the scores of the last tracked run in mteb's layout, a folder per variant and seed.

    Scores on data that differ from the published task are named and left out.
    """
    from synthbench.engine.artifacts import Artifacts
    from synthbench.engine.stores import open_store
    from synthbench.exporting.folders import new_folder
    from synthbench.exporting.mteb_results import write_results
    from synthbench.exporting.tracked import tracked
    from synthbench.pipeline.planning import make_outline

    experiment, result = tracked(given.file, given.overrides())
    plan = make_outline(experiment)
    with new_folder(to) as folder:
        written = write_results(result, list(plan.stages.values()), Artifacts(open_store()), folder)
    for name, reason in written.left_out.items():
        print(f"not exported: {name}: {reason}", file=sys.stderr)
    print(f"{to}: {written.num_files} files of results")
