"""`synthbench validate` and `doctor`: find every fault of an experiment file, or of this machine."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.base.listing import counted
from synthbench.cli.options import Given, taking


@taking(Given)
def validate(given: Given) -> None:
    """Check an experiment file and its local models and data; print every fault (exit code 2).

    Works offline; computes and writes nothing. With --profile, also prints the faults of the file without
    the profile.
    """
    from synthbench.config.described_models import described_models
    from synthbench.config.environment_checks import missing_keys
    from synthbench.config.load import load_experiment
    from synthbench.config.precisions import check_precisions

    experiment = load_experiment(given.file, given.overrides(), with_data=True)
    check_precisions(experiment.precisions, experiment.runtime)
    for line in described_models(experiment):
        print(line)
    for note in (*experiment.notes, *experiment.remarks, *missing_keys(experiment).values()):
        print(f"note: {note}")
    seeds_used = f"seed{'' if len(experiment.seeds) == 1 else 's'} {', '.join(map(str, experiment.seeds))}"
    audits = f", audits: {', '.join(experiment.audits)}" if experiment.audits else ""
    with_profile = f" with --profile {given.profile}" if given.profile else ""
    if any(remark.startswith("--profile") for remark in experiment.remarks):
        for line in _without_profile(given):
            print(f"note: {line}")
    rows = counted(len(experiment.variants), "variant")
    print(f"{given.file}: valid{with_profile}: {rows}, {seeds_used}{audits}")


MOST_MESSAGES = 20


def _without_profile(given: Given) -> Iterator[str]:
    """Yield notes on the file without --profile: all faults, or "valid" and the missing API keys."""
    from synthbench.config.environment_checks import missing_keys
    from synthbench.config.load import load_experiment

    try:
        whole = load_experiment(given.file, replace(given, profile=None).overrides(), with_data=True)
    except UserError as error:
        yield from (f"without --profile {given.profile}: {each}" for each in error.messages[:MOST_MESSAGES])
        if (more := len(error.messages) - MOST_MESSAGES) > 0:
            yield f"without --profile {given.profile}: {more:,} more faults"
    else:
        yield f"without --profile {given.profile}: valid, too"
        yield from (f"without --profile {given.profile}: {each}" for each in missing_keys(whole).values())


WIDTH_OF_A_LEVEL = 8


def doctor(
    *,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="also generate and train on the GPU for half a minute")
    ] = False,
) -> None:
    """Check the installation, devices, folders and tracking server, and say what to do.

    Changes nothing and contacts only your tracking server. `run` checks an experiment's LLM.
    Exit code 2 if a problem would end a run.
    """
    from synthbench.cli.diagnosis import Level, diagnose
    from synthbench.cli.gpu_diagnosis import check_gpu

    levels: Counter[Level] = Counter()
    for finding in chain(diagnose(home()), check_gpu() if gpu else ()):
        levels[finding.level] += 1
        typer.echo(f"{finding.level:<{WIDTH_OF_A_LEVEL}}{finding.subject}: {finding.text}")
        if finding.advice:
            typer.echo(f"{'':<{WIDTH_OF_A_LEVEL}}-> {finding.advice}")
    typer.echo(f"problems: {levels[Level.PROBLEM]}, notes: {levels[Level.NOTE]}")
    if levels[Level.PROBLEM]:
        raise typer.Exit(2)
