"""`synthbench export model`: write a trained model with a model card, and optionally upload it."""

from typing import Annotated

import typer

from synthbench.cli.exports import Export
from synthbench.cli.options import taking

Seed = Annotated[
    str,
    typer.Option(
        metavar="best-on-dev|N",
        show_default=False,
        help="The row's seed [the best on dev; without dev scores the first].",
    ),
]


@taking(Export, kind="model")
def export_model(export: Export, seed: Seed = "") -> None:
    """Write a trained model of the last tracked run as a folder that sentence-transformers loads.

    The folder also has the model card, the experiment file and the lineage. Repeat the options that changed
    the experiment in the run.
    """
    from synthbench.exporting.model import write_model

    subject = export.subject(seed)
    if not seed and subject.run.is_seeded and len(subject.runs) > 1 and not subject.chosen_by:
        others = ", ".join(str(run.seed) for run in subject.runs if run.seed != subject.run.seed)
        typer.echo(
            f"seed {subject.run.seed}: '{subject.row.label}' has no dev scores to choose by; the same command"
            f" with --seed N exports another one, of {others}",
            err=True,
        )
    export.fill(lambda folder: write_model(subject, export.statements(), folder))
