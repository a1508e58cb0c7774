"""DINO's recipe and pairs to try it on."""

from collections.abc import Sequence
from typing import Any

from applying import step_of

from synthbench.config.experiment import PrepareStep
from synthbench.data.records import ScoredPair


def dino_pairs(rows: Sequence[tuple[str, str, str]], **values: Any) -> list[ScoredPair]:
    """Pairs of x1, x2 and label, as a method that follows DINO gives them."""
    return [
        ScoredPair(
            id=str(number), sentence1=first, sentence2=second, score=float(label), label=label, **values
        )
        for number, (first, second, label) in enumerate(rows)
    ]


def dino_recipe(seed: int = 0, **of_split: Any) -> list[PrepareStep]:
    """The steps as an experiment file has them."""
    steps = [
        {"step": "drop-duplicates"},
        {"step": "drop-identical"},
        {"step": "smooth-labels", "epsilon": 0.2},
        {"step": "keep-per-group", "columns": ("sentence1", "label"), "most": 2, "seed": seed},
        {"step": "add-random-negatives", "per_group": 2, "seed": seed},
        {"step": "split", "dev": 0.1, "seed": seed, **of_split},
    ]
    return [step_of(step) for step in steps]
