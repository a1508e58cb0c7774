"""The experiment files of this repository."""

from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SHIPPED = {
    file.stem: file
    for file in sorted(EXPERIMENTS.rglob("*.yaml"), key=lambda path: path.stem)
    if file.parent.name not in ("shared", "profiles", "prompts")
}
"""By name."""
