"""What it takes to get the same figures again."""

from dataclasses import dataclass

from synthbench.reporting.results import ExperimentResult


@dataclass(frozen=True)
class Reproducing:
    """Commands, and facts as (name, value)."""

    commands: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    revisions: tuple[tuple[str, str], ...]


def reproducing(result: ExperimentResult) -> Reproducing:
    """Return how a result came to be. Its overrides are as typed, fit for a shell."""
    given = " ".join((f"{result.experiment}.yaml", *result.overrides))
    seeds = ", ".join(map(str, sorted({run.seed for run in result.runs})))
    facts = {
        "seeds": seeds,
        "done anew for every seed": ", ".join(result.varied),
        "result": result.identity,
        "asked for by": result.request,
    }
    return Reproducing(
        commands=(
            f"synthbench run {given}",
            f"synthbench report {given}",
            f"synthbench report {given} --trace ROW COLUMN",
        ),
        facts=tuple((name, value) for name, value in facts.items() if value),
        environment=tuple(result.environment.items()),
        revisions=tuple(dict.fromkeys(each for excerpt in result.excerpts for each in excerpt.revisions)),
    )
