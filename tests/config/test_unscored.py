"""Triplets without the scores that a training needs: refused before anything runs."""

import json
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded

EXPERIMENT = """\
experiment: unscored
sources:
  triplets: {file: triplets.jsonl, kind: triplet}
  test: {sandbox: pairs, split: test, size: 20}
seeds: [0]
defaults:
  data:
    triplets: {source: triplets}
  train: {trainer: bi-encoder, base: {model: sandbox/encoder}, loss: {name: margin-mse}}
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
baseline: margins
"""
LINE = EXPERIMENT.splitlines().index("    triplets: {source: triplets}") + 1
MARGINS = "{trainer: bi-encoder, base: {model: sandbox/encoder}, loss: {name: margin-mse}}"
SOFT = "{trainer: simcse, learns_from: triplet, base: {model: sandbox/encoder}, soft_labels: positive}"
STEP = "{step: score-triplets, labeller: {encoder: {base: {model: sandbox/encoder, pooling: cls}}}}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An experiment on five triplets; the third has no scores in its column."""
    found = Project(tmp_path, tmp_path / "home")
    found.file.write_text(EXPERIMENT, encoding="utf-8")
    lines = [
        json.dumps(
            {
                **{name: f"{name} {row}" for name in ("anchor", "positive", "negative")},
                "scores": None if row == 2 else [0.9, 0.1],
            }
        )
        for row in range(5)
    ]
    (tmp_path / "triplets.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return found


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
@pytest.mark.parametrize(
    ("train", "name"), [(MARGINS, "margin-mse"), (SOFT, "soft_labels")], ids=["margins", "soft labels"]
)
def test_a_file_without_scores_is_refused(project: Project, command: str, train: str, name: str) -> None:
    project.change(MARGINS, train)
    called = project.call(command, project.file)
    assert (called.code, len(called.errors)) == (2, 1)
    facts = (f"small.yaml:{LINE}: data.triplets: ", name, "score-triplets", "columns: {scores: NAME}")
    worded(called.errors, *facts)
    assert not list(project.home.glob("store/artifacts/*"))


def test_a_row_without_scores_in_their_column_is_named_by_its_line(project: Project) -> None:
    project.change("kind: triplet", "kind: triplet, columns: {scores: scores}")
    called = project.call("validate", project.file)
    assert (called.code, len(called.errors)) == (2, 1)
    worded(called.errors, "triplets.jsonl:3", "scores")


def test_the_sandboxs_triplets_without_scores_are_refused(project: Project) -> None:
    project.change("{file: triplets.jsonl, kind: triplet}", "{sandbox: triplets, split: train, size: 10}")
    called = project.call("validate", project.file)
    assert (called.code, len(called.errors)) == (2, 1)
    worded(called.errors, f"small.yaml:{LINE}: data.triplets: ", "score-triplets")


def test_data_scored_by_a_step_are_accepted(project: Project) -> None:
    project.change("{source: triplets}", f"{{source: triplets, prepare: [{STEP}]}}")
    assert project.call("validate", project.file).code == 0
