"""`synthbench export model`: a trained model with its card, and on the hub if it is wanted there."""

from typing import Annotated

import typer

from synthbench.cli.leaving import Export, exports

Seed = Annotated[str, typer.Option(metavar="best-on-dev|N", help="Which of the row's seeds.")]


@exports("model")
def export_model(export: Export, seed: Seed = "best-on-dev") -> None:
    """Write a trained model of the last tracked run as a folder that sentence-transformers loads.

    Beside it are its card, the experiment file and its lineage. The options that change an experiment must be
    those of the run.
    """
    from synthbench.exporting.model import write_model

    subject = export.subject(seed)
    export.fill(lambda folder: write_model(subject, export.statements(), folder))
