"""In shards, AugSBERT's semantic search is made once, and its pairs are those of one stage."""

from pathlib import Path
from typing import Any

import pytest
from small_experiment import Project, new_project

from synthbench.config.overrides import Overrides
from synthbench.pipeline.engine.plan import Plan
from synthbench.pipeline.engine.stores import open_store
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan

FOUND = "generate augsbert-shared"


@pytest.fixture
def searching(project: Project, bert: Path) -> Project:
    return with_search(project, bert)


def with_search(project: Project, bert: Path) -> Project:
    encoder = (
        f'{{base: {{model: "{bert}", static: true, static_dimension: 16}}, max_steps: 8, batch_size: 8}}'
    )
    project.change("{name: bm25, k: 1}", f"{{name: semantic-search, k: 2, bi_encoder: {encoder}}}")
    project.change("    select:\n      over: {data.silver.sampler.k: [1, 2]}\n", "")
    return project


def plan_of(project: Project, shards: int) -> Plan:
    overrides = Overrides(assignments=(f"runtime.shards={shards}",), variants=("augsbert",), seeds=(0,))
    return make_plan(load_invocation(project.file, overrides).experiment)


def test_shards_read_what_one_stage_has_found(searching: Project) -> None:
    plan = plan_of(searching, 3)
    (found,) = [stage for stage in plan.stages.values() if str(stage).startswith(FOUND)]
    shards = [stage for stage in plan.stages.values() if ", shard " in str(stage)]
    assert len(shards) == 3
    assert all(found in shard.inputs.values() for shard in shards)


def test_without_shards_there_is_no_such_stage_and_the_data_are_the_same_stage(searching: Project) -> None:
    alone, divided = plan_of(searching, 1), plan_of(searching, 3)
    assert not [stage for stage in alone.stages.values() if str(stage).startswith(FOUND)]
    assert alone.stages.keys() < divided.stages.keys()


@pytest.mark.experiments
def test_the_data_are_the_same_bytes(tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    for shards in (1, 3):
        project = with_search(new_project(tmp_path / str(shards), bert), bert)
        called = project.call(
            *(
                "run",
                "small.yaml",
                "--variant",
                "augsbert",
                "--seeds",
                "0",
                "--set",
                f"runtime.shards={shards}",
            )
        )
        assert called.code == 0, called.err
        assert called.err.count("semantic search: 2 neighbours") == 1
        monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
        (stage,) = [
            stage
            for stage in plan_of(project, 1).stages.values()
            if str(stage).startswith("generate augsbert")
        ]
        files = open_store().record(stage.identity)["files"]
        made.append({name: file["sha256"] for name, file in files.items()})
    assert made[0] == made[1]
