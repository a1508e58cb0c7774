"""`synthbench recommend`: from a budget to an answer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import PendingError
from synthbench.cli.console import INTERRUPTIONS, PLAIN, exit_code, print_table
from synthbench.cli.options import (
    AllowHosts,
    Given,
    Quiet,
    Verbose,
    opening,
    shown_progress,
    store_line,
    taking,
)
from synthbench.cli.report import OutputFolder
from synthbench.cli.run import EXIT_PENDING, allow_hosts_of, this_command

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
    """Say which recipe suits your data and budget: a pilot, a race, then one comparison on the test set.

    FILE is a short file with `budget`. Each phase's experiment is written beside it. Exit code 4: an LLM's
    batch is not done yet; run the same command again later to resume.
    """
    from synthbench.pipeline.invocation import load_invocation
    from synthbench.recommending.page import write_page
    from synthbench.recommending.studies import recommender_of

    progress = shown_progress(is_quiet=quiet, is_verbose=verbose)
    progress.say(store_line())
    overrides = given.overrides()
    experiment = load_invocation(given.file, overrides).experiment
    allow_hosts_of(allow_host, experiment)
    for line in opening(experiment):
        progress.say(line)
    try:
        found = recommender_of(given.file, overrides, progress, jobs=jobs, output=output).run()
        page = write_page(found, output)
    except PendingError as pending:
        for line in pending.messages:
            print(f"pending: {line}", file=sys.stderr)
        print(f"what is finished is kept; to go on later: {this_command()}", file=sys.stderr)
        raise typer.Exit(EXIT_PENDING) from None
    except INTERRUPTIONS as interruption:
        print(f"interrupted; finished work is kept. To resume: {this_command()}", file=sys.stderr)
        raise typer.Exit(exit_code(interruption)) from None
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
