"""`synthbench export dataset`: synthetic data with their card, and on the hub if they are wanted there."""

from typing import Annotated

import typer

from synthbench.cli.leaving import Destination, DryRun, Force, Language, License, Public, Push, Row, To, Yes
from synthbench.cli.options import (
    AllowCode,
    Assignments,
    Data,
    File,
    Profile,
    Seeds,
    Variants,
    allow_code_beside,
    overrides,
)

Part = Annotated[
    str, typer.Option(metavar="NAME", help="Which part of the row's data; not needed if a method made one.")
]
Seed = Annotated[
    str, typer.Option(metavar="N", help="Which of the row's seeds; not needed where all have the same data.")
]


def export_dataset(
    file: File,
    row: Row,
    to: To,
    part: Part = "",
    seed: Seed = "any",
    push: Push = "",
    public: Public = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
    license_id: License = "",
    language: Language = "",
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
    allow_code: AllowCode = False,
) -> None:
    """Write synthetic data of the last tracked run as a folder that `datasets.load_dataset` reads.

    Beside the Parquet files are their card, Croissant, the experiment file and the lineage. The options that
    change an experiment must be those of the run.
    """
    from synthbench.exporting.dataset import part_named, write_dataset
    from synthbench.exporting.subject import find_subject
    from synthbench.exporting.tracked import tracked
    from synthbench.pipeline.engine.stores import open_store

    destination = Destination("dataset", to, push, public, dry_run, yes, force)
    destination.check()
    allow_code_beside(file, allow_code)
    experiment, result = tracked(file, overrides(profile, assignments, variant, seeds, data))
    subject = find_subject(experiment, result, row, seed, open_store())
    named = part_named(subject, part, seed)
    statements = destination.statements(license_id, language)
    destination.fill(lambda folder: write_dataset(subject, named, statements, folder))
