"""How `run` and `recommend` begin, and how they stop early, to be resumed by the same command."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from synthbench.base.errors import PendingError
from synthbench.cli.console import INTERRUPTIONS, exit_code
from synthbench.cli.options import opening

if TYPE_CHECKING:
    from pathlib import Path

    from synthbench.config.overrides import Overrides
    from synthbench.pipeline.experiment_run import RunProgress
    from synthbench.pipeline.invocation import Invocation

EXIT_PENDING = 4


def opened(
    file: "Path", overrides: "Overrides", progress: "RunProgress", hosts: list[str] | None
) -> "Invocation":
    """Load an experiment, let `hosts` get its LLMs' keys, and show what it runs and sends."""
    from synthbench.config.key_hosts import allow_hosts
    from synthbench.pipeline.invocation import load_invocation

    progress.say(f"reading {file}")
    invocation = load_invocation(file, overrides)
    experiment = invocation.experiment
    if hosts:
        allow_hosts(hosts, [experiment.llms[name] for name in experiment.used_llms])
    for line in opening(experiment):
        progress.say(line)
    return invocation


@contextmanager
def resumable() -> Iterator[None]:
    """Say how to resume, and exit, on an interruption or while an LLM's batch is not done."""
    try:
        yield
    except PendingError as pending:
        print_pending(pending.messages)
        raise typer.Exit(EXIT_PENDING) from None
    except INTERRUPTIONS as interruption:
        print(f"interrupted; finished work is kept. To resume: {this_command()}", file=sys.stderr)
        raise typer.Exit(exit_code(interruption)) from None


def print_pending(lines: Iterable[str]) -> None:
    """Print what waits for an LLM's batch, and how to go on."""
    for line in lines:
        print(f"pending: {line}", file=sys.stderr)
    print(f"what is finished is kept; to go on later: {this_command()}", file=sys.stderr)


def this_command() -> str:
    """Return the command line of this process."""
    return shlex.join(["synthbench", *sys.argv[1:]])
