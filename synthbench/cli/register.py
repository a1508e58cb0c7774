"""`synthbench register`: record what an experiment declares, before any score exists."""

from pathlib import Path
from typing import Annotated

import typer

from synthbench.cli.options import Given, Quiet, Verbose, shown_progress, store_line, taking

Export = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Also write the registration here; the file's SHA-256 is its hash."),
]


@taking(Given)
def register(given: Given, export: Export = None, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Record rows, seeds, test items and comparisons with a hash and the time; trains nothing.

    `run` registers by itself before its first score. An unchanged declaration is not recorded again.
    """
    from synthbench.pipeline.invocation import load_invocation
    from synthbench.pipeline.register import register as recorded
    from synthbench.reporting.model.registration_note import registration_notes

    progress = shown_progress(is_quiet=quiet, is_verbose=verbose)
    progress.say(store_line())
    invocation = load_invocation(given.file, given.overrides())
    registered = recorded(invocation, progress, export)
    print(f"{invocation.experiment.name}: registered at {registered.time}")
    for note in registration_notes(registered):
        print(note)
    print(f"hash: {registered.hash}")
    if export is not None:
        print(f"{export}: written")
