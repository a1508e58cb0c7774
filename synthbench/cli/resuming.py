"""Starts `run` and `recommend`, and prints how to resume them after an early stop."""

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
    """Return the loaded experiment after allowing `hosts` to get its LLMs' API keys.

    Shows the lines of `opening`, such as the code that runs and the LLM services that get data.
    """
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
    """On an interruption or an unfinished LLM batch, print how to resume, and exit."""
    try:
        yield
    except PendingError as pending:
        print_pending(pending.messages)
        raise typer.Exit(EXIT_PENDING) from None
    except INTERRUPTIONS as interruption:
        print(f"interrupted; finished work is kept. To resume: {this_command()}", file=sys.stderr)
        raise typer.Exit(exit_code(interruption)) from None


def print_pending(lines: Iterable[str]) -> None:
    """Print `lines`, the stages that wait for an LLM's batch, and the command that resumes the run."""
    for line in lines:
        print(f"pending: {line}", file=sys.stderr)
    print(f"what is finished is kept; to go on later: {this_command()}", file=sys.stderr)


def this_command() -> str:
    """Return the command line of this process."""
    return shlex.join(["synthbench", *sys.argv[1:]])
