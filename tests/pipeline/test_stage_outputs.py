"""Pinned outputs of built-in stages by version: another output under the same version is a bug.

If one of these fails because the output is meant to change, raise the component's version with it.
"""

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.engine.artifacts import read_dataset
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan

GOLDEN = {
    ("source", "FileSource", 1): "09a5af29c5402a50",
    ("exclude", "pairs", 2): "23df6e38d55a8067",
    ("prepare", "steps", 1): "3ee0d1cddeb443c6",
}


@pytest.fixture
def hashes(experiment: ExperimentFile, store: Store) -> dict[tuple[str, str, int], str]:
    """The content hash of the last data set of each kind of stage."""
    header, known = "sentence1\tsentence2\tscore\n", "a b\tc\t0.25\nd\te f\t0.5\n"
    others = "same\tsame\t1.0\na b\tc\t0.75\nx y z\tw\t0.5\ng\th\t0.125\ni\tj\t0.375\n"
    (experiment.folder / "gold.tsv").write_text(header + known + others)
    (experiment.folder / "test.tsv").write_text(header + "e f\td\t0.5\nnew\tpair\t0.0\nold\tpair\t1.0\n")
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, prepare: [{STEPS}]}}\n")
    experiment.change("tasks: [test]", "tasks: [test]\n      exclude: [gold]")
    plan = make_plan(experiment.load("seeds=[0]"))
    report = Runner(store, InProcess(), RUNTIME, Lines()).run(plan)
    assert not report.failed
    found = {}
    for stage in plan.stages.values():
        if (stage.kind, stage.operation.component, stage.operation.version) in GOLDEN:
            folder = store.folder(stage.identity)
            key = (stage.kind, stage.operation.component, stage.operation.version)
            found[key] = read_dataset(folder).manifest.content_hash[:16]
    return found


STEPS = (
    "{step: drop-identical}, {step: drop-duplicates}, {step: length, max_words: 2},"
    " {step: sample, size: 3, seed: 1}"
)


def test_a_stage_of_one_version_has_pinned_outputs(hashes: dict[tuple[str, str, int], str]) -> None:
    assert hashes == GOLDEN
