"""Bad input of several LLMs, chains, steps and losses: a line each, by the real command and plug-ins."""

from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded

FILE = """\
experiment: small
sources:
  sentences: {sandbox: sentences, split: train, size: 20}
  test: {sandbox: pairs, split: test, size: 30}
llms:
  mini: sandbox
defaults:
  data:
    triplets:
      method: syncse-partial
      sources: {sentences: sentences}
      llm: mini
      prepare: []
  train:
    trainer: simcse
    learns_from: triplet
    base: {model: sandbox/encoder}
    pooling: mean
    max_steps: 2
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
"""
SOURCES, STEPS, TRAINER = (
    "sources: {sentences: sentences}",
    "prepare: []",
    "trainer: simcse\n    learns_from: triplet",
)
LATER = "  train:\n    trainer: simcse"


@pytest.mark.parametrize(
    ("changes", "line", "facts"),
    [
        ({SOURCES: "sources: {sentences: {part: first}}"}, "part: first", ("no part of `data`", "'first'")),
        ({SOURCES: "sources: {sentences: {part: test}}"}, "part: test", ("is a source", "sentences: test")),
        (
            {
                SOURCES: "sources: {sentences: {part: first}}",
                LATER: f"    first: {{source: sentences, train_on: false}}\n{LATER}",
            },
            "part: first",
            ("'first' comes later", "before 'triplets'"),
        ),
        ({"  mini: sandbox": "  mini: sandbox\n  idle: sandbox"}, "idle", ("llms.idle", "no row")),
        ({"llm: mini": "llm: mni"}, "llm: mni", ("data.triplets.llm", "'mni'", "'mini'")),
        (
            {STEPS: "prepare: [{step: judge, question: {prompt: 'Good? {sentence1}'}}]"},
            "step: judge",
            ("data.triplets.prepare.0", "{sentence1}", "anchor", "positive"),
        ),
        (
            {STEPS: "prepare: [{step: smooth-labels}]"},
            "smooth-labels",
            ("data.triplets.prepare.0", "scored_pair", "triplet"),
        ),
        (
            {STEPS: "prepare: [{step: mine-negatives, encoder: {base: {model: sandbox/encoder}}}]"},
            "mine-negatives",
            ("data.triplets.prepare.0", "under test", "train.base"),
        ),
        (
            {
                "    pooling: mean\n": "",
                TRAINER: "trainer: bi-encoder\n    loss: {name: cosine}",
                "method: syncse-partial\n": "source: sentences\n",
                f"      {SOURCES}\n      llm: mini\n      {STEPS}\n": "",
                "llms:\n  mini: sandbox\n": "",
            },
            "triplets:",
            ("data.triplets", "loss cosine", "sentence", "losses that fit sentence records"),
        ),
        (
            {
                "    pooling: mean\n": "",
                TRAINER: "trainer: bi-encoder\n    loss: {name: margin-mse}",
                STEPS: "prepare: [{step: mine-negatives, miner: bm25}, {step: draw-negatives}]",
            },
            "triplets:",
            ("data.triplets", "margin-mse", "'triplets' have no scores", "score-triplets"),
        ),
        (
            {
                TRAINER: f"{TRAINER}\n    soft_labels: all",
                STEPS: "prepare: [{step: mine-negatives, miner: bm25}]",
            },
            "triplets:",
            ("data.triplets", "soft_labels", "'triplets' have no scores", "score-triplets"),
        ),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_file_line_and_key(
    changes: dict[str, str], line: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    text = FILE
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    project = Project(tmp_path, tmp_path / "home")
    project.file.write_text(text, encoding="utf-8")
    called = project.call("validate", "small.yaml")
    number = next(n for n, each in enumerate(text.splitlines(), start=1) if line in each)
    assert called.code == 2
    (error,) = called.errors
    worded(error, f"small.yaml:{number}: ", *facts)


SCORED = "{step: score-triplets, labeller: {encoder: {base: {model: sandbox/encoder}}}}"


@pytest.mark.parametrize(
    "steps",
    [f"{{step: mine-negatives, miner: bm25}}, {SCORED}", f"{SCORED}, {{step: draw-negatives}}", ""],
)
def test_triplets_with_required_or_optional_scores_are_accepted(steps: str, tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "home")
    text = FILE.replace(TRAINER, "trainer: bi-encoder\n    loss: {name: margin-mse}")
    text = text.replace("    pooling: mean\n", "").replace(STEPS, f"prepare: [{steps}]")
    project.file.write_text(text, encoding="utf-8")
    assert project.call("validate", "small.yaml").code == 0
