"""synthbench validate: every fault of an experiment at once."""

from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, load


def validate(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
) -> None:
    """Check an experiment file, and the local models and data that it names; print every fault (exit code 2).

    Computes and writes nothing, and asks no hub.
    """
    experiment = load(file, profile, assignments, variant, (seeds, data), with_data=True)
    for note in experiment.notes:
        print(f"note: {note}")
    seeds_used = ", ".join(map(str, experiment.seeds))
    print(f"{file}: valid: {len(experiment.variants)} variants, seeds {seeds_used}")
