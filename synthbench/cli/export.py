"""`synthbench export`: models and data sets in the formats of other programs."""

import typer

from synthbench.cli.export_dataset import export_dataset
from synthbench.cli.export_model import export_model

app = typer.Typer(no_args_is_help=True)
app.command("model")(export_model)
app.command("dataset")(export_dataset)
