"""`synthbench doctor`: is everything here that runs need, and what to do if not."""

from collections import Counter

import typer

from synthbench.home import home

WIDTH_OF_A_LEVEL = 8


def doctor() -> None:
    """Check installation, devices, folders, endpoint and tracking server, and say what to do.

    Nothing is changed, and nobody is contacted but the endpoint and the tracking server that are configured.
    Exit code 2 if a problem would end a run.
    """
    from synthbench.diagnosis import diagnose
    from synthbench.diagnosis.machine import Level

    levels: Counter[Level] = Counter()
    for finding in diagnose(home()):
        levels[finding.level] += 1
        typer.echo(f"{finding.level:<{WIDTH_OF_A_LEVEL}}{finding.subject}: {finding.text}")
        if finding.advice:
            typer.echo(f"{'':<{WIDTH_OF_A_LEVEL}}-> {finding.advice}")
    typer.echo(f"problems: {levels[Level.PROBLEM]}, notes: {levels[Level.NOTE]}")
    if levels[Level.PROBLEM]:
        raise typer.Exit(2)
