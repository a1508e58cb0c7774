"""Rows of sparse and late-interaction encoders, from the file to the card; what a file can't ask of them."""

from pathlib import Path

import pytest
from small_experiment import Called, Project
from wording import worded

EXPERIMENT = """\
experiment: searching
sources:
  answers: {sandbox: answers, split: train, size: 60}
  corpus: {sandbox: retrieval, split: test, size: 60}
seeds: [0]
defaults:
  data:
    gold: {source: answers}
  train:
    trainer: bi-encoder
    base: {model: sandbox/encoder, max_length: 16, encoder: sparse}
    loss: {name: multiple-negatives, temperature: 1, sparsity: {queries: 0.001, passages: 0.001}}
    batch_size: 8
    max_steps: 2
  evaluate:
    retrieval: {evaluator: retrieval, tasks: [corpus], prompts: {query: "who ", passage: "that "}}
baseline: sparse
variants:
  late-interaction: {train.base.encoder: late-interaction, train.loss.sparsity: null}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path, tmp_path / "home")
    found.file.write_text(EXPERIMENT, encoding="utf-8")
    return found


@pytest.mark.parametrize(
    ("row", "name", "loss"),
    [
        ("sparse", "SparseEncoder", "SpladeLoss"),
        ("late-interaction", "MultiVectorEncoder", "MultiVectorMultipleNegativesRankingLoss"),
    ],
)
def test_a_row_runs_and_its_exported_model_says_how_to_use_it(
    row: str, name: str, loss: str, project: Project
) -> None:
    if row == "sparse":
        project.change(EXPERIMENT[EXPERIMENT.index("variants:") :], "")
    called = project.call("run", project.file)
    assert (called.code, called.errors) == (0, [])
    exported = project.call("export", "model", project.file, row, "--to", project.folder / "model")
    assert (exported.code, exported.errors) == (0, [])
    card = (project.folder / "model" / "README.md").read_text(encoding="utf-8")
    assert f"from sentence_transformers import {name}" in card
    assert f"loss:{loss}" in card


def faults(called: Called) -> list[str]:
    assert called.code == 2
    return called.errors


def test_what_needs_one_vector_for_a_text_is_refused_at_its_line(project: Project) -> None:
    project.change("{evaluator: retrieval, tasks: [corpus], ", "{evaluator: bitext, tasks: [corpus], ")
    project.change(
        "gold: {source: answers}",
        "gold:\n      source: answers\n      prepare:"
        " [{step: semantic-dedup, encoder: {base: {model: sandbox/encoder, encoder: sparse}}}]",
    )
    found = faults(project.call("validate", project.file))
    worded(found, "'bitext' needs one vector", "encoder.base.encoder")


def test_simcse_and_cross_encoders_refuse_a_sparse_base(project: Project) -> None:
    project.change(EXPERIMENT[EXPERIMENT.index("    loss:") : EXPERIMENT.index("    batch_size")], "")
    project.change("trainer: bi-encoder", "trainer: simcse\n    learns_from: pair")
    project.change(EXPERIMENT[EXPERIMENT.index("variants:") :], "")
    worded(faults(project.call("validate", project.file)), "bi-encoder")
