"""Any damaged file of a finished experiment is reported and recomputed, with the same results."""

from pathlib import Path

import pytest
from disks import DAMAGES, flip
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from wording import refused

from synthbench.base.durability import seal, unseal
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.pipeline.experiment_run import collect_whole
from synthbench.pipeline.planning import make_plan

SELECT = "size: 3\n    select: {over: {train.strength: [0.25, 0.75]}}"


@pytest.fixture
def plan(experiment: ExperimentFile, store: Store) -> Plan:
    """A finished experiment with a source, an exclusion, generated data, trainings, a choice and scores."""
    experiment.change("size: 3", SELECT)
    experiment.change("tasks: [test]", "tasks: [test]\n      exclude: [gold]")
    planned = make_plan(experiment.load("seeds=[0]"))
    run(planned, store)
    return planned


def run(plan: Plan, store: Store) -> tuple[object, RunReport, list[str]]:
    """Run the plan; return its results without times, the executed stages, and the messages."""
    lines = Lines()
    runner = Runner(store, InProcess(), RUNTIME, lines)
    report = runner.run(plan)
    result = collect_whole(plan, runner, report)
    assert not report.failed
    return result.model_dump(exclude={"runs": {"__all__": {"seconds"}}}), report, lines.said


def one_of_each(plan: Plan, store: Store) -> list[Path]:
    """Return one file of each kind in artifacts, and the cached data checks."""
    found: dict[tuple[str, str], Path] = {}
    for stage in plan.stages.values():
        folder = store.folder(stage.identity)
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            found.setdefault((stage.kind, file.name), file)
    return [*found.values(), *sorted((store.root / "examined").iterdir())]


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damaged_file_is_reported_and_the_results_are_the_same(
    plan: Plan, store: Store, damage: str
) -> None:
    before, report, _ = run(plan, store)
    assert not report.executed
    for file in one_of_each(plan, store):
        DAMAGES[damage](file)
        result, _, said = run(plan, store)
        assert result == before, file
        is_missing_cache = damage == "removed" and file.parent.name == "examined"
        assert is_missing_cache or any("damaged" in line or "computing it again" in line for line in said), (
            file
        )
    # A file that was not made whole again would be reported by each later run.
    assert run(plan, store)[2] == []


def test_records_may_lack_values_for_their_keys(plan: Plan, store: Store) -> None:
    before, _, _ = run(plan, store)
    for stage in plan.stages.values():
        file = store.folder(stage.identity) / "stage.json"
        empty = dict.fromkeys(("seconds", "label", "by", "spec"))
        file.write_text(seal({**unseal(file.read_bytes()), **empty}), encoding="utf-8")
    result, report, _ = run(plan, store)
    assert not report.executed
    assert [each["scores"] for each in result["runs"]] == [each["scores"] for each in before["runs"]]


def test_hidden_damage_to_a_large_file_is_found_when_the_results_are_read(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.engine.local_artifacts.SMALL", 0)
    before, _, _ = run(plan, store)
    (generated,) = (stage for stage in plan.stages.values() if stage.kind == "generate")
    for kept in (store.root / "examined").iterdir():
        kept.unlink()
    flip(store.folder(generated.identity) / "dataset" / "records.parquet")
    result, report, said = run(plan, store)
    assert result == before
    assert [stage.kind for stage in report.executed] == ["generate"]
    (line,) = (line for line in said if "is damaged" in line)
    assert line.endswith("is damaged (the checksum of dataset/records.parquet differs); computing it again")


def test_missing_artifacts_that_are_not_needed_are_not_recomputed(plan: Plan, store: Store) -> None:
    for stage in plan.stages.values():
        if stage.kind in ("source", "generate"):
            store.discard(stage.identity)
    _, report, said = run(plan, store)
    assert (report.executed, said) == ([], [])


def test_a_disk_that_damages_every_file_ends_the_run_with_a_message(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [store.folder(stage.identity) / "scores.json" for stage in plan.runs[0].evaluations.values()]
    commit = Store.commit

    def spoil(self: Store, identity: str, record: dict[str, object]) -> None:
        commit(self, identity, record)
        for file in scores:
            if file.parent.name == identity:
                flip(file)

    monkeypatch.setattr(Store, "commit", spoil)
    flip(scores[0])
    with refused("computed"):
        run(plan, store)
