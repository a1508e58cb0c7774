"""A short file with three recipes in the sandbox, small enough for a test."""

from pathlib import Path

STUDY = """\
experiment: tickets
base: sandbox/encoder
sources:
  sentences: {sandbox: sentences, split: train, size: 300, domains: &domains [sport, traffic]}
  gold: &pairs {sandbox: pairs, split: train, size: 120, domains: *domains}
  dev: {<<: *pairs, split: dev}
  test: {<<: *pairs, split: test}
llm: {endpoint: sandbox, price: {input: 100, output: 400, date: "2026-11-01"}}
budget: {usd: 100}
seeds: [0, 1]
variants:
  gold-only: &short {train: {epochs: null, least_steps: null, max_steps: 4}}
  syncse-partial: *short
  syncse-then-gold: *short
"""


def small_study(folder: Path, **changes: str) -> Path:
    """Write the study into a folder and return its file; `changes` replace the lines of these keys."""
    lines = STUDY.splitlines(keepends=True)
    for key, value in changes.items():
        lines = [f"{key}: {value}\n" if line.startswith(f"{key}:") else line for line in lines]
    file = folder / "tickets.yaml"
    file.write_text("".join(lines), encoding="utf-8")
    return file
