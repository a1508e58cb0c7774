"""A small experiment in which the sandbox's language model writes."""

from pathlib import Path

from hub_cache import SENTENCES
from small_experiment import Project

EXPERIMENT = """\
experiment: small
sources:
  x1: {file: x1.tsv, kind: sentence}
  test: {sandbox: pairs, split: test, size: 40}
seeds: [0]
defaults:
  data:
    x2:
      method: dino
      sources: {x1: x1}
      language_model: {model: sandbox/lm}
      task: sts
      max_new_tokens: 20
  train:
    trainer: bi-encoder
    base: {model: sandbox/encoder}
    max_steps: 2
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
baseline: all
runtime: {device: cpu, threads: 1}
"""


def dino_project(folder: Path, num_texts: int = 4) -> Project:
    """Write the experiment with `number` first texts into a new folder, with a home beside it."""
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.file.write_text(EXPERIMENT, encoding="utf-8")
    lines = "\n".join(("sentence", *SENTENCES[:num_texts]))
    (project.folder / "x1.tsv").write_text(lines + "\n", encoding="utf-8")
    return project
