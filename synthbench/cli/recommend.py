"""`synthbench recommend`: find the best recipe for the user's data within a budget."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import PLAIN, print_table
from synthbench.cli.options import (
    AllowHosts,
    Given,
    Quiet,
    Verbose,
    shown_progress,
    store_line,
    taking,
)
from synthbench.cli.report import OutputFolder
from synthbench.cli.resuming import opened, resumable

if TYPE_CHECKING:
    from synthbench.recommending.outcome import Recommendation


@taking(Given, variant=None, seeds=None)
def recommend(
    given: Given,
    allow_host: AllowHosts = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of local processes.")] = 1,
    output: OutputFolder = Path("reports"),
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the recipe that suits your data and budget, by a pilot, a race and one comparison on the test set.

    FILE is a short file with `budget`. Writes each phase's experiment beside FILE. Exit code 4: an LLM's
    batch is not done yet; run the same command again later to resume.
    """
    from synthbench.recommending.page import write_page
    from synthbench.recommending.studies import recommender_of

    progress = shown_progress(is_quiet=quiet, is_verbose=verbose)
    progress.say(store_line())
    overrides = given.overrides()
    opened(given.file, overrides, progress, allow_host)
    with resumable():
        found = recommender_of(given.file, overrides, progress, jobs=jobs, output=output).run()
        page = write_page(found, output)
    _print(found, page)


def _print(found: "Recommendation", page: Path) -> None:
    for line in (found.answer, found.more, found.spent, *found.notes):
        print(line)
    print()
    lines = [
        (each.recipe, each.data, f"{each.dev_score:.1f}", f"{each.usd:,.2f}", each.dropped)
        for each in found.measured
    ]
    print_table(("recipe", "data", "dev", "dollars", "dropped because"), lines, words=(0, 1, 4), **PLAIN)
    for name, why in found.left_out.items():
        print(f"not measured: {name}: {why}")
    print(f"page: {page}")
    print(f"experiment: {found.files[-1]}")
    print(f"next: {found.export}")
