"""`synthbench ledger`: what LLMs were asked, and what that cost."""

from typing import Annotated

import typer

from synthbench.cli.options import home


def ledger(
    experiment: Annotated[str, typer.Argument(help="The experiment's name; all without.")] = "",
) -> None:
    """Show answers, tokens and US dollars of each stage that asked an LLM, and what is in doubt.

    What was under way when a run was killed or a connection lost is in doubt: it may have been paid.
    """
    from synthbench.generation.chat.ledger import entries
    from synthbench.pipeline.store import Store

    found = entries(Store(home() / "store").answers, experiment)
    for entry in found:
        typer.echo(f"{entry.experiment} {entry.stage[:8]}: {entry}")
    paid = sum(entry.answered.usd for entry in found)
    in_doubt = sum(entry.in_doubt.usd for entry in found)
    typer.echo(f"paid: {paid:.4f} US dollars; in doubt: at most {in_doubt:.4f}")
