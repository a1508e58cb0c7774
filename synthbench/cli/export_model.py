"""`synthbench export model`: a trained model with its card, and on the hub if it is wanted there."""

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

Seed = Annotated[str, typer.Option(metavar="best-on-dev|N", help="Which of the row's seeds.")]


def export_model(
    file: File,
    row: Row,
    to: To,
    seed: Seed = "best-on-dev",
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
    """Write a trained model of the last tracked run as a folder that sentence-transformers loads.

    Beside it are its card, the experiment file and its lineage. The options that change an experiment must be
    those of the run.
    """
    from synthbench.exporting.model import write_model
    from synthbench.exporting.subject import find_subject
    from synthbench.exporting.tracked import tracked
    from synthbench.pipeline.engine.stores import open_store

    destination = Destination("model", to, push, public, dry_run, yes, force)
    destination.check()
    allow_code_beside(file, allow_code)
    experiment, result = tracked(file, overrides(profile, assignments, variant, seeds, data))
    subject = find_subject(experiment, result, row, seed, open_store())
    statements = destination.statements(license_id, language)
    destination.fill(lambda folder: write_model(subject, statements, folder))
