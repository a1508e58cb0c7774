"""The command `synthbench`: assembles the commands, and maps errors to exit codes."""

import io
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from synthbench import __version__
from synthbench.base.errors import UserError
from synthbench.base.processes import collect_rarely, disable_telemetry, wait_idly
from synthbench.base.terminal import control_characters_shown
from synthbench.cli import data, export, listing, plan, report, run
from synthbench.cli.checks import doctor, validate
from synthbench.cli.compare import compare
from synthbench.cli.console import INTERRUPTIONS, exit_code, raising_on_termination
from synthbench.cli.evaluate import evaluate
from synthbench.cli.expand import expand
from synthbench.cli.fetch import fetch
from synthbench.cli.init import init
from synthbench.cli.recommend import recommend
from synthbench.cli.register import register
from synthbench.cli.status import status
from synthbench.cli.store import clean, ledger
from synthbench.worlds import NAME, world

EXIT_FAULT = 1
EXIT_USER_ERROR = 2
LONGEST_MESSAGE = 2_000
MOST_MESSAGES = 100
GONE = {
    ("report", "--all"): "`dashboard` lists all experiments, and `report FILE` writes the report of one",
    ("compare", "--page"): "`compare` prints the same",
}
"""Command and removed option -> the replacement."""


class WorldCommands(TyperGroup):
    """The commands of the generated world, which is loaded only when they are used."""

    @property
    def commands(self) -> Any:  # noqa: ANN401 - typer keeps the type of a command to itself
        """The commands by name."""
        return get_group(world().commands()).commands

    @commands.setter
    def commands(self, given: object) -> None:
        """Ignore the mapping of commands that typer sets."""


of_world = typer.Typer(cls=WorldCommands, no_args_is_help=True, rich_markup_mode=None)
app = typer.Typer(
    name="synthbench",
    help="Compare methods for making synthetic training data for sentence embeddings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("fetch")(fetch)
app.command("recommend")(recommend)
app.command("register")(register)
app.command("validate")(validate)
app.command("expand")(expand)
app.command("report")(report.report)
app.command("compare")(compare)
app.command("dashboard")(report.dashboard)
app.command("evaluate")(evaluate)
app.command("list")(listing.list_plugins)
app.command("status")(status)
app.command("ledger")(ledger)
app.command("clean")(clean)
app.command("doctor")(doctor)
app.add_typer(data.app, name="data", help="Look into data sets, convert, import and export them.")
app.add_typer(export.app, name="export", help="Write results for other programs.")
app.add_typer(of_world, name=NAME, help="The generated world: its LLM server, its checkpoints.")


@app.callback(invoke_without_command=True)
def callback(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version if asked for."""
    if version:
        print(f"synthbench {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line and end the process.

    Exit codes: 0, 1 (a bug), 2 (user error), 3 (failed stages or damaged artifacts), 4 (results pending),
    130 (Ctrl-C), 143 (SIGTERM).
    """
    collect_rarely()
    disable_telemetry()
    wait_idly()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that can't show "±" still gets its table.
        sys.stdout.reconfigure(errors="replace")
    with control_characters_shown():
        code = _code_of_command()
    sys.exit(code)


def _code_of_command() -> int:
    """Run the command, print each error in one line, and return the exit code."""
    try:
        with raising_on_termination():
            return app(prog_name="synthbench", standalone_mode=False) or 0
    except TyperException as mistake:
        print(_in_our_words(mistake), file=sys.stderr)
        return mistake.exit_code
    except UserError as error:
        for message in error.messages[:MOST_MESSAGES]:
            print(f"error: {_shortened(message)}", file=sys.stderr)
        if len(error.messages) > MOST_MESSAGES:
            print(f"error: ... and {len(error.messages) - MOST_MESSAGES:,} more", file=sys.stderr)
        return EXIT_USER_ERROR
    except INTERRUPTIONS as interruption:
        print("interrupted", file=sys.stderr)
        return exit_code(interruption)
    except Exception:  # noqa: BLE001 - a bug; our traceback masks secrets
        traceback.print_exc()
        return EXIT_FAULT


def _shortened(message: str) -> str:
    """Return a message as one line; above LONGEST_MESSAGE characters, its middle is left out."""
    line = message.replace("\n", " ")
    left_out = len(line) - LONGEST_MESSAGE
    if left_out <= 0:
        return line
    half = LONGEST_MESSAGE // 2
    return f"{line[:half]} [... {left_out:,} characters ...] {line[-half:]}"


def _in_our_words(mistake: TyperException) -> str:
    """Return a one-line error for an invalid command line, or the help if no command was given."""
    message = mistake.format_message()
    if message.startswith("Usage: "):
        return message
    for theirs, ours in (("Value error, ", ""), ("Input should be", "must be")):
        message = message.replace(theirs, ours)
    context = getattr(mistake, "ctx", None)
    used = (context and context.info_name, getattr(mistake, "option_name", ""))
    if used in GONE:
        return f"error: {message}: it is gone; {GONE[used]}"
    return f"error: {message}" + (f" (see {context.command_path} --help)" if context else "")
