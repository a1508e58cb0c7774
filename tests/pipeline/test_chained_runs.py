"""Runs in which a method's source is another part of the data."""

import json
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import FakeMethod, Lines, work_done

from synthbench.api import Expected
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.facts import StageFacts
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.trace import ingredient_text
from synthbench.results.collect import collect

SILVER = """\
    data.silver:
      method: fake
      sources: {gold: gold}
      size: 3
"""
CHAIN = """\
    data.scratch:
      method: fake
      sources: {gold: gold}
      size: 6
      train_on: false
      prepare: [{step: sample, size: 4}]
    data.silver: {method: fake, sources: {gold: {part: scratch}}, size: 3}
"""
BARE = "variants.silver.data.silver.sources.gold={part: scratch, prepared: false}"


def run(plan: Plan, store: Store) -> RunReport:
    return Runner(store, InProcess(), RUNTIME, Lines()).run(plan)


@pytest.fixture
def chained(experiment: ExperimentFile) -> ExperimentFile:
    return experiment.change(SILVER, CHAIN)


def silver_of(plan: Plan, seed: int = 0) -> Stage:
    (row,) = (row for row in plan.runs if row.variant.name == "silver" and row.seed == seed)
    (parts,) = row.data.values()
    return parts["silver"]


def test_the_method_reads_a_part_before_or_after_its_steps(chained: ExperimentFile) -> None:
    prepared = silver_of(make_plan(chained.load())).inputs["source:gold"]
    bare = silver_of(make_plan(chained.load(BARE))).inputs["source:gold"]
    assert (prepared.kind, bare.kind) == ("prepare", "generate")
    assert prepared.inputs["data"].identity == bare.identity


def test_a_parts_content_is_in_the_identity_and_its_name_is_not(chained: ExperimentFile) -> None:
    silver = silver_of(make_plan(chained.load()))
    changed = silver_of(make_plan(chained.load("variants.silver.data.scratch.size=7")))
    chained.change("data.scratch:", "data.raw:").change("{part: scratch}", "{part: raw}")
    renamed = silver_of(make_plan(chained.load()))
    assert renamed.identity == silver.identity != changed.identity


def test_seeds_that_vary_generation_vary_every_part_of_a_chain(chained: ExperimentFile) -> None:
    plan = make_plan(chained.load("vary=[generation]"))
    first, second = (silver_of(plan, seed).inputs["source:gold"].inputs["data"] for seed in (0, 1))
    assert [stage.operation.config()["seed"] for stage in (first, second)] == [0, 1]


def test_a_part_is_trained_on_by_default(chained: ExperimentFile, store: Store, work_log: Path) -> None:
    plan = make_plan(chained.load("seeds=[0]"))
    silver = silver_of(plan)
    assert not run(plan, store).failed
    assert work_done(work_log).index("generate unit 5") < work_done(work_log).index("generate unit 2")
    (row,) = (row for row in collect(plan, Artifacts(store)).runs if row.variant == "silver")
    assert {data.part: data.trained_on for data in row.datasets} == {
        "gold": True,
        "scratch": False,
        "silver": True,
    }
    (model,) = (each.model for each in plan.runs if each.variant.name == "silver" and each.model)
    assert [name for name in model.inputs if name.startswith("data:")] == ["data:0", "data:1"]
    assert model.inputs["data:1"].identity == silver.identity
    assert {part for overlap in row.overlaps for part in overlap.by_part} == {"gold", "silver"}


def test_lineage_goes_through_the_part_to_its_sources(chained: ExperimentFile, store: Store) -> None:
    plan = make_plan(chained.load("seeds=[0]"))
    assert not run(plan, store).failed
    (row,) = (row for row in collect(plan, Artifacts(store)).runs if row.variant == "silver")
    (silver,) = (data for data in row.datasets if data.part == "silver")
    assert [(one.role, one.kind, one.num_records) for one in silver.made_of] == [
        ("gold", "prepare", 4),
        ("data", "generate", 6),
        ("gold", "source", 4),
    ]
    assert "prepared by sample from data" in ingredient_text(silver.made_of[0])


def test_expected_sizes_pass_through_the_steps_of_the_part(
    chained: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeMethod, "expected", lambda method, _: Expected(method.size))
    silver, bare = (silver_of(make_plan(chained.load(*changes))) for changes in ([], [BARE]))
    assert StageFacts(store).view(silver).sizes() == {"gold": 4}
    assert StageFacts(store).view(bare).sizes() == {"gold": 6}


def test_a_method_checks_a_generated_source_after_its_generation(
    chained: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        FakeMethod, "check_data", lambda _, sources: seen.append(len(sources["gold"])), raising=False
    )
    assert not run(make_plan(chained.load("seeds=[0]", variants=("silver",))), store).failed
    assert seen == [4, 4]


def test_stages_of_files_without_chains_keep_their_identities(
    chained: ExperimentFile, experiment: ExperimentFile
) -> None:
    specs = [stage.spec for stage in make_plan(chained.load()).stages.values()]
    assert "is_chained" not in json.dumps(specs)
    assert "train_on" not in json.dumps(specs)
