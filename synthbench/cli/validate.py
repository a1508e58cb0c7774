"""synthbench validate: every fault of an experiment file at once."""

from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, load


def validate(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
) -> None:
    """Check an experiment file and print every fault with file, line and key (exit code 2)."""
    experiment = load(file, profile, assignments, variant, (seeds, data))
    for note in experiment.notes:
        print(f"note: {note}")
    num_variants, num_seeds = len(experiment.variants), len(experiment.seeds)
    print(f"{file}: valid: {num_variants} variants x {num_seeds} seeds = {num_variants * num_seeds} runs")
