"""Experiments and evaluations on word vectors from a file."""

import random

import pytest
from hub_cache import SENTENCES
from small_experiment import Project
from wording import worded

VECTORS = "vectors.txt"


@pytest.fixture
def on_vectors(project: Project) -> Project:
    """The small experiment with word vectors beside it as the base of the bi-encoder."""
    text = project.file.read_text(encoding="utf-8")
    start = text.index("    base: {")
    base = text[start : text.index("\n", start)]
    project.change(base, f"    base: {{model: {VECTORS}}}")
    draw = random.Random(0)
    words = sorted({word for sentence in SENTENCES for word in sentence.lower().rstrip(".").split()})
    lines = (f"{word} {' '.join(f'{draw.gauss(0, 1):.3f}' for _ in range(6))}\n" for word in words)
    (project.folder / VECTORS).write_text("".join(lines), encoding="utf-8")
    return project


def test_a_row_evaluates_untrained_and_trained_word_vectors(on_vectors: Project) -> None:
    on_vectors.change(
        "variants:\n",
        "variants:\n  as-they-are: {data.gold: null, train: {trainer: none, base: {model: vectors.txt}}}\n",
    )
    rows = ["--variant", "as-they-are", "--variant", "gold-only"]
    planned = on_vectors.call("plan", on_vectors.file, *rows)
    assert (planned.code, planned.errors) == (0, [])
    called = on_vectors.call("run", on_vectors.file, *rows)
    assert (called.code, called.errors) == (0, [])
    again = on_vectors.call("run", on_vectors.file, *rows)
    assert " 0 stages executed" in again.err
    with (on_vectors.folder / VECTORS).open("a", encoding="utf-8") as file:
        file.write("another 1 2 3 4 5 6\n")
    assert on_vectors.call("run", on_vectors.file, *rows).executed, "other vectors are another base"


def test_a_damaged_file_is_refused_before_anything_is_computed(on_vectors: Project) -> None:
    with (on_vectors.folder / VECTORS).open("a", encoding="utf-8") as file:
        file.write("another 1 2 3\n")
    called = on_vectors.call("run", on_vectors.file)
    assert (called.code, called.executed) == (2, [])
    worded(
        [error for error in called.errors if "another" not in error],
        "small.yaml:13",
        "train.base.model",
        VECTORS,
    )


def test_a_missing_file_is_refused_with_its_location(on_vectors: Project) -> None:
    (on_vectors.folder / VECTORS).unlink()
    called = on_vectors.call("validate", on_vectors.file)
    assert called.code == 2
    worded(called.errors, "small.yaml:13", "train.base.model", VECTORS)
