"""Prepare steps on graded lists: they keep lists whole, or refuse them in one line."""

from typing import Any

import pytest
from applying import apply_steps, step_of

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, RecordKind
from synthbench.plugins.loading import component, installed

LISTS = {
    "a": ("what is rain", "Rain is water.", "It rains much.", "A cat sleeps."),
    "b": ("who feeds cats", "People feed cats.", "Cats eat.", "Rain falls on the sea and on all the land."),
    "c": ("what is rain", "Rain is water.", "It rains much.", "A cat sleeps."),
    "d": ("where is the sea", "Where is the sea", "Ships sail.", "As an AI language model, I cannot say."),
}
DATA = SyntheticDataset.create(
    RecordKind.RANKING,
    [
        Ranking(id=name, query=query, candidates=tuple(texts), grades=(1.0, 0.5, 0.0), label=name)
        for name, (query, *texts) in LISTS.items()
    ],
)
KEPT: dict[str, tuple[dict[str, Any], set[str]]] = {
    "length": ({"max_words": 8}, {"a", "c", "d"}),
    "drop-refusals": ({}, {"a", "b", "c"}),
    "drop-identical": ({"normalised": True}, {"a", "b", "c"}),
    "drop-duplicates": ({}, {"a", "b", "d"}),
    "drop-near-duplicates": ({}, {"a", "b", "d"}),
    "sample": ({"size": 4}, set(LISTS)),
    "keep-per-group": ({"columns": ("label",), "most": 1}, set(LISTS)),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_step_keeps_whole_lists(name: str) -> None:
    settings, expected = KEPT[name]
    made = list(apply_steps(DATA, [step_of({"step": name, **settings})]))
    assert {one.id for one in made} == expected
    assert all(isinstance(one, Ranking) and one.grades == (1.0, 0.5, 0.0) for one in made)


def test_a_part_of_the_lists_becomes_dev() -> None:
    made = apply_steps(DATA, [step_of({"step": "split", "dev": 0.25})])
    assert sorted(made.column("split")) == ["dev", "train", "train", "train"]


def test_steps_on_scores_pairs_and_triplets_take_no_lists() -> None:
    refusing = {
        name for name in installed("steps") if RecordKind.RANKING not in component("steps", name).kinds
    }
    assert refusing == {
        "add-random-negatives", "add-swapped", "draw-negatives", "keep-best", "keep-consistent",
        "mine-negatives", "relabel-retrieved", "score-triplets", "smooth-labels",
        "write-negatives",
    }  # fmt: skip
