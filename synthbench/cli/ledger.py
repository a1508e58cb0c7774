"""`synthbench ledger`: what LLMs were asked, and what that cost."""

from pathlib import Path
from typing import Annotated

import typer

from synthbench.errors import UserError
from synthbench.home import home


def ledger(
    experiment: Annotated[str, typer.Argument(help="The experiment's name; all without.")] = "",
    give_up: Annotated[
        str | None,
        typer.Option(metavar="BATCH", help="Wait no more for a batch; what is in it will be asked again."),
    ] = None,
) -> None:
    """Show answers, tokens and US dollars of each stage that asked an LLM, and what is in doubt.

    What was under way when a run was killed or a connection lost is in doubt: it may have been paid.
    """
    from synthbench.llm.ledger import entries
    from synthbench.pipeline.engine.store import Store

    folder = Store(home() / "store").answers
    if give_up is not None:
        _give_up(folder, give_up)
    found = entries(folder, experiment)
    if experiment and not found:
        known = dict.fromkeys(entry.experiment for entry in entries(folder))
        raise UserError(f"{experiment}: asked no LLM; those that did: {', '.join(known) or 'none'}")
    for entry in found:
        typer.echo(f"{entry.experiment} {entry.stage[:8]}: {entry}")
    paid = sum(entry.answered.usd for entry in found)
    in_doubt = sum(entry.in_doubt.usd for entry in found)
    in_batches = sum(entry.in_batches.usd for entry in found)
    batches = f"; in batches: at most {in_batches:.4f}" if in_batches else ""
    typer.echo(f"paid: {paid:.4f} US dollars; in doubt: at most {in_doubt:.4f}{batches}")


def _give_up(folder: Path, batch: str) -> None:
    from synthbench.llm.batches import give_up_batch

    typer.echo(f"given up batch {batch}; of its requests are in doubt now: {give_up_batch(folder, batch):,}")
