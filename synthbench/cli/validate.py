"""synthbench validate: every fault of an experiment at once."""

from synthbench.cli.console import counted
from synthbench.cli.options import (
    AllowCode,
    Assignments,
    Data,
    File,
    Profile,
    Seeds,
    Variants,
    allow_code_beside,
    overrides,
)


def validate(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
    allow_code: AllowCode = False,
) -> None:
    """Check an experiment file, and the local models and data that it names; print every fault (exit code 2).

    Computes and writes nothing, and asks no hub.
    """
    from synthbench.config.load import load_experiment

    allow_code_beside(file, allow_code)
    experiment = load_experiment(file, overrides(profile, assignments, variant, seeds, data), with_data=True)
    for note in (*experiment.notes, *experiment.remarks):
        print(f"note: {note}")
    seeds_used = f"seed{'' if len(experiment.seeds) == 1 else 's'} {', '.join(map(str, experiment.seeds))}"
    audits = f", audits: {', '.join(experiment.audits)}" if experiment.audits else ""
    print(f"{file}: valid: {counted(len(experiment.variants), 'variant')}, {seeds_used}{audits}")
