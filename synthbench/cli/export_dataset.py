"""`synthbench export dataset`: write synthetic data with a data card, and optionally upload them."""

from typing import Annotated

import typer

from synthbench.cli.exports import Export
from synthbench.cli.options import taking

Part = Annotated[
    str, typer.Option(metavar="NAME", help="The part of the row's data [the part that a method made].")
]
Seed = Annotated[
    str, typer.Option(metavar="N", help="The row's seed; not needed if all its seeds have the same data.")
]


@taking(Export, kind="dataset")
def export_dataset(export: Export, part: Part = "", seed: Seed = "any") -> None:
    """Write synthetic data of the last tracked run as a folder that `datasets.load_dataset` reads.

    The folder has Parquet files, the data card, the experiment file and the lineage. Repeat the options that
    changed the experiment in the run.
    """
    from synthbench.exporting.dataset import part_named, write_dataset

    subject = export.subject(seed)
    named = part_named(subject, part, seed)
    export.fill(lambda folder: write_dataset(subject, named, export.statements(), folder))
