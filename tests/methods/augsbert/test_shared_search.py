"""AugSBERT's shards share one semantic search; their pairs equal those of a single stage."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_experiment import Project, new_project

from synthbench.config.overrides import Overrides
from synthbench.engine.plan import Plan
from synthbench.engine.stores import open_store
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan

FOUND, LABELLED = "generate augsbert/FoundPairs for", "generate augsbert for"


def with_search(project: Project, bert: Path) -> Project:
    encoder = f'{{base: {{model: "{bert}", num_layers: 1}}, max_steps: 8, batch_size: 8}}'
    project.change("{name: bm25, k: 1}", f"{{name: semantic-search, k: 2, bi_encoder: {encoder}}}")
    project.change("    select:\n      over: {data.silver.sampler.k: [1, 2]}\n", "")
    return project


@pytest.fixture
def searching(project: Project, bert: Path) -> Project:
    return with_search(project, bert)


def plan_of(project: Project, shards: int) -> Plan:
    overrides = Overrides(assignments=(f"runtime.shards={shards}",), variants=("augsbert",), seeds=(0,))
    return make_plan(load_invocation(project.file, overrides).experiment)


def test_shards_share_the_search_results_of_earlier_shards(searching: Project) -> None:
    stages = plan_of(searching, 3).stages.values()
    (pairs,), labelled = (
        [stage for stage in stages if str(stage).startswith(name)] for name in (FOUND, LABELLED)
    )
    *labellers, _ = labelled
    assert len(labellers) == 3
    assert all(pairs in shard.inputs.values() for shard in labellers)


def test_without_shards_there_is_no_search_stage_and_the_data_have_the_same_identity(
    searching: Project,
) -> None:
    alone, divided = plan_of(searching, 1), plan_of(searching, 3)
    assert not [stage for stage in alone.stages.values() if str(stage).startswith(FOUND)]
    assert alone.stages.keys() < divided.stages.keys()


def run_of(shards: int) -> tuple[str, ...]:
    settings = (f"runtime.shards={shards}", "runtime.batch_tokens=64")
    changes = (argument for setting in settings for argument in ("--set", setting))
    return ("run", "small.yaml", "--variant", "augsbert", "--seeds", "0", "--jobs", "1", *changes)


def silver_of(project: Project, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the hashes of the files of the silver pairs."""
    monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
    stages = plan_of(project, 1).stages.values()
    (stage,) = [stage for stage in stages if str(stage).startswith("generate augsbert")]
    files = open_store().record(stage.identity)["files"]
    return {name: file["sha256"] for name, file in files.items()}


@pytest.mark.experiments
def test_kills_do_not_change_the_bytes_of_the_data(
    tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill three shards when the second begins to label."""
    contents = []
    for shards in (1, 2, 3):
        project = with_search(new_project(tmp_path / str(shards), bert), bert)
        if shards == 3:
            kill_within(project, LABELLED, run_of(shards))
        called = project.call(*run_of(shards))
        assert called.code == 0, called.err
        found = [stage for stage in called.executed if stage.startswith(FOUND)]
        assert len(found) == {1: 0, 2: 1, 3: 0}[shards], "what was found before a kill is not searched again"
        contents.append(silver_of(project, monkeypatch))
    assert contents[0] == contents[1] == contents[2]


def kill_within(project: Project, stage: str, command: Sequence[str]) -> None:
    """Run the command, and kill it when it begins the second shard of such a stage."""
    process = project.start(*command)
    assert process.stderr is not None
    assert any(f"running {stage}" in line and ", shard 2 of" in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
