"""`synthbench export dataset`: synthetic data with their card, and on the hub if they are wanted there."""

from typing import Annotated

import typer

from synthbench.cli.leaving import Export
from synthbench.cli.options import taking

Part = Annotated[
    str, typer.Option(metavar="NAME", help="Which part of the row's data; not needed if a method made one.")
]
Seed = Annotated[
    str, typer.Option(metavar="N", help="Which of the row's seeds; not needed where all have the same data.")
]


@taking(Export, kind="dataset")
def export_dataset(export: Export, part: Part = "", seed: Seed = "any") -> None:
    """Write synthetic data of the last tracked run as a folder that `datasets.load_dataset` reads.

    Beside the Parquet files are their card, the experiment file and the lineage. The options that change an
    experiment must be those of the run.
    """
    from synthbench.exporting.dataset import part_named, write_dataset

    subject = export.subject(seed)
    named = part_named(subject, part, seed)
    export.fill(lambda folder: write_dataset(subject, named, export.statements(), folder))
