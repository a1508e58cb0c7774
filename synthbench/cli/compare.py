"""`synthbench compare`: compare two tracked results, row by row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.base.patterns import linear_pattern
from synthbench.cli.console import console

if TYPE_CHECKING:
    from synthbench.reporting.results import ExperimentResult

_RESULT = linear_pattern(r"^(.+)~([0-9]{1,4})\Z")
WHICH = "Experiment file, or an experiment's name: its result tracked last. NAME~1: the result before."


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=WHICH)],
    second: Annotated[str, typer.Argument(metavar="B", help="The other result, given in the same way as A.")],
) -> None:
    """Compare two experiments, or two results of one experiment: each row of B minus the same row of A.

    Computes nothing. Intervals and p values are computed as in reports (docs/statistics.md).
    """
    from synthbench.engine.artifacts import Artifacts
    from synthbench.engine.stores import open_store
    from synthbench.reporting.model.comparison_section import comparison_section
    from synthbench.reporting.model.two_results import comparison_of, differing_settings, rows_of_one
    from synthbench.reporting.model.verdicts import rule
    from synthbench.reporting.render.terminal import terminal_section
    from synthbench.results.items_of_two import items_of_two

    results = _result(first), _result(second)
    if results[0].identity == results[1].identity:
        raise UserError(f"{first} and {second} are the same result; {_earlier(first)} is the one before")
    items = items_of_two(*results, Artifacts(open_store()))
    compared = comparison_of(*results, *items)
    section = comparison_section(compared)
    if section is None:
        raise UserError(f"{first} and {second}: no row with scores is in both")
    for label, result in zip("AB", results, strict=True):
        print(f"{label}: {result.title} ({result.identity[:12]})")
    console().print(terminal_section(section))
    for note in rule(compared):
        print(note)
    for label, rows in zip("AB", rows_of_one(*results), strict=True):
        if rows:
            print(f"only in {label}: {', '.join(rows)}")
    for line in differing_settings(*results):
        print(f"set otherwise: {line}")


def _result(named: str) -> "ExperimentResult":
    """Return the tracked result that an argument names; raises UserError if there is none."""
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    name, before = _name_and_number(named)
    return MlflowTracker(home()).load(_experiment(name), before=before)


def _name_and_number(named: str) -> tuple[str, int]:
    """Split "study~2" into ("study", 2), and "study" into ("study", 0)."""
    found = _RESULT.match(named)
    return (found[1], int(found[2])) if found else (named, 0)


def _earlier(named: str) -> str:
    name, before = _name_and_number(named)
    return f"{name}~{before + 1}"


def _experiment(name: str) -> str:
    """Return the experiment's name in the file if `name` is a .yaml or .yml file, else `name` itself."""
    from synthbench.config.documents import read_document

    if not name.endswith((".yaml", ".yml")):
        return name
    found = read_document(Path(name)).data.get("experiment")
    if not isinstance(found, str):
        raise UserError(f"{name}: has no `experiment: NAME`")
    return found
