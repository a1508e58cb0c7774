"""Results with artifacts of several versions: they are used, with a note in the table."""

from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.base.durability import read_sealed, write_sealed
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.records import STAGE_FILE
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.results.collect import collect


@pytest.fixture
def plan(experiment: ExperimentFile, store: Store) -> Plan:
    """A finished experiment of two rows, `plain` and `silver`."""
    planned = make_plan(experiment.load())
    assert not Runner(store, InProcess(), RUNTIME, Lines()).run(planned).failed
    return planned


def of_other_version(file: Path, **versions: str) -> None:
    """Change the recorded versions of an artifact."""
    info = read_sealed(file)
    info["by"].update(versions)
    write_sealed(file, info)


def test_rows_computed_with_other_versions_are_named(plan: Plan, store: Store) -> None:
    first = next(run for run in plan.runs if run.variant.name == "silver")
    assert first.model is not None
    of_other_version(store.folder(first.model.identity) / STAGE_FILE, torch="1.0", extra="9")

    result = collect(plan, Artifacts(store))

    (note,) = [note for note in result.notes if note.startswith("Not all")]
    now = result.environment["torch"]
    assert note == f"Not all computed with the same torch: 1.0 (silver), {now} (plain, silver)."
    assert note in build_table(Analysis(result)).notes


def test_equal_versions_are_not_mentioned(plan: Plan, store: Store) -> None:
    assert not any("Not all" in note for note in collect(plan, Artifacts(store)).notes)
    for run in plan.runs:  # written by hand, or by a version that noted nothing
        for stage in run.ends:
            file = store.folder(stage.identity) / STAGE_FILE
            write_sealed(file, {**read_sealed(file), "by": None})
    assert not any("Not all" in note for note in collect(plan, Artifacts(store)).notes)
