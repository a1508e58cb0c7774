"""Runs whose checkpoint is selected by the dev split of their own training data."""

from pathlib import Path

from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines, work_done

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.results.collect import collect

SPLIT = "prepare: [{step: split, dev: 0.5, seed: 0}]"


def run(plan: Plan, store: Store) -> RunReport:
    return Runner(store, InProcess(), RUNTIME, Lines()).run(plan)


def select_by_gold(experiment: ExperimentFile) -> Plan:
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, {SPLIT}}}\n")
    experiment.change("sources: [dev]}", "parts: [gold]}")
    return make_plan(experiment.load("seeds=[0]", "sources.dev=null", "variants=null"))


def test_only_records_of_split_dev_select(experiment: ExperimentFile, store: Store, work_log: Path) -> None:
    plan = select_by_gold(experiment)
    assert not run(plan, store).failed
    assert "evaluate 2 pairs" in work_done(work_log)
    (result,) = collect(plan, Artifacts(store)).runs
    assert result.dev_score == 0.5


def test_selection_and_training_use_the_same_stage(experiment: ExperimentFile) -> None:
    plan = select_by_gold(experiment)
    trained = plan.runs[0].candidates[0]
    assert trained.inputs["dev-part:0"] is trained.inputs["data:0"]
    assert trained.inputs["data:0"].kind == "prepare"


def test_sources_and_parts_have_equal_weight(
    experiment: ExperimentFile, store: Store, work_log: Path
) -> None:
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, {SPLIT}}}\n")
    experiment.change("sources: [dev]}", "sources: [dev], parts: [gold]}")
    assert not run(make_plan(experiment.load("seeds=[0]", "variants=null")), store).failed
    scored = [line for line in work_done(work_log) if line.startswith("evaluate")]
    assert scored[:2] == ["evaluate 3 pairs", "evaluate 2 pairs"]


def test_a_generated_part_without_dev_records_is_reported_in_one_line(
    experiment: ExperimentFile, store: Store
) -> None:
    """A method's splits are known once its data exist; a source's are known to `validate`."""
    experiment.change("gold: {source: gold}\n", "gold: {method: fake, sources: {gold: gold}}\n")
    experiment.change("sources: [dev]}", "parts: [gold]}")
    report = run(make_plan(experiment.load("seeds=[0]", "sources.dev=null", "variants=null")), store)
    assert report.only_user_errors
    ((stage, lines),) = report.failed.values()
    assert str(stage) == "train plain seed 0"
    assert lines == (
        "train.selection.parts: none of the 4 records of part 'gold' is in split dev; "
        "a last step such as {step: split, dev: 0.1} in data.gold.prepare sets some apart",
    )


def test_the_identity_holds_a_selecting_part_but_not_its_name(experiment: ExperimentFile) -> None:
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, {SPLIT}}}\n")
    before = make_plan(experiment.load("seeds=[0]", "variants=null")).runs[0].model.identity
    experiment.change("sources: [dev]}", "sources: [dev], parts: [gold]}")
    after = make_plan(experiment.load("seeds=[0]", "variants=null")).runs[0].model.identity
    experiment.change("gold: {source: gold,", "pairs: {source: gold,").change(
        "parts: [gold]", "parts: [pairs]"
    )
    renamed = make_plan(experiment.load("seeds=[0]", "variants=null")).runs[0].model.identity
    assert before != after == renamed
