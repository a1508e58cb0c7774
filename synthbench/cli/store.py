"""`synthbench clean` and `ledger`: the content of the store, and the costs of LLMs."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.base.grouping import grouped
from synthbench.base.listing import counted, listed
from synthbench.cli.console import PLAIN, print_table
from synthbench.cli.options import Quiet, shown_progress

if TYPE_CHECKING:
    from synthbench.base.runtime import Progress
    from synthbench.engine.cleaning import Inventory
    from synthbench.engine.holdings import Holding
    from synthbench.engine.store import Store

EXIT_DAMAGED = 3


def clean(
    experiments: Annotated[
        list[str] | None,
        typer.Option("--experiment", metavar="NAME", help="Also remove what only NAME uses; repeatable."),
    ] = None,
    days: Annotated[
        float,
        typer.Option(
            "--unused-for",
            metavar="DAYS",
            min=0,
            help="Keep artifacts that a run used in the last DAYS days.",
        ),
    ] = 30,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="First check all artifacts' checksums and discard damaged ones (exit code 3 if any).",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove; without it, only show.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show the store's content and the removable artifacts; with `--yes`, remove these artifacts.

    Removes artifacts that no experiment uses and no run has used for DAYS; runs compute them again if needed.
    Artifacts of rows and seeds that an experiment no longer has count as used until you name the experiment
    by `--experiment`. Tracked results and written tables stay. Damaged artifacts, which are useless, go only
    with `--verify`.
    """
    from synthbench.engine.cleaning import clean as remove
    from synthbench.engine.cleaning import take_inventory
    from synthbench.engine.store import disk_errors
    from synthbench.engine.stores import open_store

    store = open_store()
    progress = shown_progress(is_quiet=quiet, is_verbose=False)
    store.say = progress.say
    if not store.contents.exists():
        raise UserError(f"{store}: there is no store; SYNTHBENCH_HOME or SYNTHBENCH_STORE says where it lies")
    with disk_errors(store.root):
        is_whole = _verify(store, progress) if verify else True
        if yes:
            print(f"removed: {_amount(remove(store, days, experiments or []))}")
        else:
            inventory = take_inventory(store)
            removable = inventory.removable(days, experiments or [])
            print(f"{store}: {_amount(inventory.holdings)}")
            if inventory.holdings:
                _print_kinds(inventory)
                _print_experiments(inventory)
            _print_removable(removable, days, experiments or [])
        if strays := store.contents.strays():
            print(f"passed over, for it is no artifact: {listed(strays, 1)}")
    if not is_whole:
        raise typer.Exit(EXIT_DAMAGED)


def _verify(store: "Store", progress: "Progress") -> bool:
    """Discard and print damaged artifacts; return whether all artifacts were intact."""
    from synthbench.engine.cleaning import discard_damaged

    num_artifacts, found = discard_damaged(store, progress)
    for damage in found:
        print(f"damaged: {damage.identity[:8]} {damage.label}: {damage.what}")
    fate = "; the damaged ones were discarded, and the next run computes them again" if found else ""
    print(f"verified: {counted(num_artifacts, 'artifact')}, {len(found):,} damaged{fate}")
    return not found


def _print_removable(removable: "Collection[Holding]", days: float, experiments: Iterable[str]) -> None:
    what = f"used by no experiment, nor by any run for {days:g} days"
    own = ", ".join(experiments)
    print(f"to be removed ({what}{f'; or by {own} alone' if own else ''}): {_amount(removable)}")
    if removable:
        print("nothing was removed; --yes removes it")
    elif not own:
        print("--experiment NAME removes what NAME alone uses")


def _print_kinds(inventory: "Inventory") -> None:
    by_kind = grouped((holding.kind, holding) for holding in inventory.holdings)
    ordered = sorted(by_kind.items(), key=lambda item: -_size(item[1]))
    lines = ((kind, f"{len(holdings):,}", _shown(_size(holdings))) for kind, holdings in ordered)
    print_table(("kind", "artifacts", "size"), lines, **PLAIN)


def _print_experiments(inventory: "Inventory") -> None:
    lines = []
    for name in inventory.used:
        holdings = inventory.of(name)
        alone = _shown(_size(inventory.only_of([name])))
        lines.append((name, f"{len(holdings):,}", _shown(_size(holdings)), alone))
    unused = inventory.unused()
    lines.append(("(none)", f"{len(unused):,}", _shown(_size(unused)), ""))
    print_table(("experiment", "artifacts", "size", "used by it alone"), lines, **PLAIN)


def _amount(holdings: "Collection[Holding]") -> str:
    return f"{counted(len(holdings), 'artifact')}, {_shown(_size(holdings))}"


def _size(holdings: "Iterable[Holding]") -> int:
    return sum(holding.size for holding in holdings)


def _shown(size: int) -> str:
    from rich.filesize import decimal

    return decimal(size)


def ledger(
    experiment: Annotated[str, typer.Argument(help="The experiment's name [all].")] = "",
    give_up: Annotated[
        str | None,
        typer.Option(metavar="BATCH", help="Stop waiting for a batch; runs then send its requests again."),
    ] = None,
) -> None:
    """Show answers, tokens and US dollars of each stage that asked an LLM, and requests in doubt.

    In doubt: a killed run or a lost connection cut the request off, and it may have been billed.
    """
    from synthbench.engine.leases import StageBusyError
    from synthbench.engine.stores import open_store
    from synthbench.llm.ledger import entries

    store = open_store()
    store.ledger.receive()
    folder = store.answers
    if give_up is not None:
        try:
            with store.ledger.held():
                _give_up(folder, give_up)
        except StageBusyError as busy:
            raise UserError(f"{busy} asks an LLM; nothing was given up") from None
    found = entries(folder, experiment)
    if experiment and not found:
        known = dict.fromkeys(entry.experiment for entry in entries(folder))
        raise UserError(f"{experiment}: asked no LLM; those that did: {', '.join(known) or 'none'}")
    for entry in found:
        typer.echo(f"{entry.experiment} {entry.stage[:8]}: {entry}")
    paid = sum(entry.paid.usd for entry in found)
    in_doubt = sum(entry.in_doubt.usd for entry in found)
    in_batches = sum(entry.in_batches.usd for entry in found)
    batches = f"; in batches: at most {in_batches:.4f}" if in_batches else ""
    typer.echo(f"paid: {paid:.4f} US dollars; in doubt: at most {in_doubt:.4f}{batches}")


def _give_up(folder: Path, batch: str) -> None:
    from synthbench.llm.finished_batches import give_up_batch

    typer.echo(f"given up batch {batch}; of its requests are in doubt now: {give_up_batch(folder, batch):,}")
