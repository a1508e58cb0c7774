"""The experiment files of this repository."""

from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SHIPPED = {
    file.stem: file
    for file in sorted(EXPERIMENTS.rglob("*.yaml"), key=lambda path: path.stem)
    if file.parent.name not in ("shared", "profiles", "prompts")
}
"""By name."""

TOGETHER_EVERYTHING = (
    "augsbert_table5",
    "augsbert_table11",
    "brainstorm_categories",
    "dino_table1",
    "encoders_scifact",
    "gpl_scifact",
    "graded_msmarco",
    "languages_syncse",
    "released_data",
    "syncse_table2",
    "syncse_table3",
    "syncse_table4",
    "syncse_table6",
    "syncse_table8",
    "table2_ablation",
)
"""Experiments that name everything on the hub that any shipped one names."""
