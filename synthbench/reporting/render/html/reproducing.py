"""What it takes to get the same figures again."""

import shlex
from dataclasses import dataclass

from synthbench.reporting.results import ExperimentResult


@dataclass(frozen=True)
class Reproducing:
    """Commands, and facts as (name, value).

    `file` is the experiment file that the commands name, empty where its text is not part of the result.
    """

    commands: tuple[str, ...]
    file: str
    facts: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    revisions: tuple[tuple[str, str], ...]


def reproducing(result: ExperimentResult) -> Reproducing:
    """Return how a result came to be. Its overrides are as typed, fit for a shell."""
    file = result.file or f"{result.experiment}.yaml"
    given = " ".join((shlex.quote(file), *result.overrides))
    data = " --data DIR" if result.is_data_folder_given else ""
    of_excerpts = (each for excerpt in result.excerpts for each in excerpt.revisions)
    seeds = ", ".join(map(str, sorted({run.seed for run in result.runs})))
    facts = {
        "seeds": seeds,
        "done anew for every seed": ", ".join(result.varied),
        "result": result.identity,
        "asked for by": result.request,
    }
    return Reproducing(
        commands=(
            f"synthbench run {given}{data}",
            f"synthbench report {given}",
            f"synthbench report {given} --trace ROW COLUMN",
        ),
        file=file if result.source and not result.overrides else "",
        facts=tuple((name, value) for name, value in facts.items() if value),
        environment=tuple(result.environment.items()),
        revisions=tuple(dict.fromkeys((*result.revisions, *of_excerpts))),
    )
