"""Options that several commands share."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.worlds import NAME

if TYPE_CHECKING:
    from synthbench.config.experiment import Experiment
    from synthbench.config.overrides import Overrides
    from synthbench.pipeline.experiment_run import RunProgress

File = Annotated[Path, typer.Argument(help="Experiment file (YAML).")]
Profile = Annotated[
    str | None,
    typer.Option(help=f"Patch from profiles/NAME.yaml beside the file, else a shipped one: {NAME}."),
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change one value, such as seeds=[0].")
]
Variants = Annotated[list[str] | None, typer.Option("--variant", help="Only this variant; repeatable.")]
Seeds = Annotated[str | None, typer.Option(help="Only these seeds, such as 0,1,2.")]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Run Python files in the experiment's folder, models' own code and commands that serve LLMs;"
        " connect to its remote Ray cluster.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="HOST", help="Let this host get the LLM's key, also in later runs."),
]
Data = Annotated[Path | None, typer.Option(help="Folder of the standard data sets [$SYNTHBENCH_DATA].")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Show no progress: print results, warnings and errors only.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="On a terminal, print a line when a stage starts.")]

MOST_DIGITS = 20


def shown_progress(*, is_quiet: bool, is_verbose: bool) -> "RunProgress":
    """Return the progress display that --quiet or --verbose asks for; raises UserError if both do."""
    from synthbench.engine.progress import progress_for_people

    if is_quiet and is_verbose:
        raise UserError("--quiet and --verbose: give one of them")
    return progress_for_people(is_quiet=is_quiet, is_verbose=is_verbose)


def store_line() -> str:
    """Return the first line of `run` and `plan`: the store's folder, which depends on the working folder."""
    from synthbench.engine.stores import store_name

    return f"store: {store_name()}"


def opening(experiment: "Experiment") -> Iterator[str]:
    """Yield the lines that `run` and `plan` print after `store_line`.

    The lines name the remote Ray cluster, code that runs, LLM services that get data, and files read outside
    the experiment's folder.
    """
    from synthbench.config.permissions import (
        what_connects,
        what_is_read_outside,
        what_is_sent,
        what_runs,
    )

    yield from what_connects(experiment)
    yield from what_runs(experiment)
    yield from what_is_sent(experiment)
    yield from what_is_read_outside(experiment, home())


@dataclass(frozen=True, kw_only=True)
class Given:
    """An experiment file, and the command-line options that change it."""

    file: File
    profile: Profile = None
    assignments: Assignments = None
    variant: Variants = None
    seeds: Seeds = None
    data: Data = None
    allow_code: AllowCode = False

    def overrides(self, *more: str) -> "Overrides":
        """Return the overrides from the options, plus `more` assignments; --allow-code allows code to run.

        Raises UserError if --seeds is invalid.
        """
        from synthbench.config.overrides import Overrides
        from synthbench.plugins.files import allow_code

        if self.allow_code:
            allow_code(self.file.parent)
        return Overrides(
            profile=self.profile,
            assignments=(*(self.assignments or ()), *more),
            variants=tuple(self.variant or ()),
            seeds=_seeds(self.seeds),
            data=self.data,
        )


def taking(
    given: Callable[..., Any], **fixed: object
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that turns the fields of the class `given` into options of a command.

    The command gets an instance of the class as its first argument. `fixed` fields have a fixed value and are
    no options.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        shared = [each for name, each in inspect.signature(given).parameters.items() if name not in fixed]
        own = list(inspect.signature(command).parameters.values())[1:]

        @wraps(command)
        def called(**values: object) -> None:
            command(given(**fixed, **{each.name: values.pop(each.name) for each in shared}), **values)

        options = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*shared, *own)]
        called.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in options}
        return called

    return decorated


def _seeds(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < MOST_DIGITS for part in parts):
        raise UserError(f"--seeds {text}: must be whole numbers with commas between them, such as 0,1,2")
    return tuple(int(part) for part in parts)
