"""A method's dependencies in an experiment file: locations of faults, and roles."""

from pathlib import Path

import pytest
from wording import worded

from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment
from synthbench.pipeline.planning import make_plan

EXPERIMENT = """\
experiment: small
sources:
  gold: {sandbox: pairs, split: train, size: 40}
  test: {sandbox: pairs, split: test, size: 40}
seeds: [0]
defaults:
  data:
    silver:
      method: augsbert
      sources: {gold: gold}
      sampler: SAMPLER
      cross_encoder: {base: {model: sandbox/cross-encoder}}
  train: {trainer: bi-encoder, base: {model: sandbox/encoder}}
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
baseline: all
"""
KDE = "{name: kde, size: 50}"
SEMANTIC = "{name: semantic-search, k: 2, bi_encoder: {base: {model: sandbox/encoder}}}"


def written(folder: Path, sampler: str, *changes: tuple[str, str]) -> Path:
    text = EXPERIMENT.replace("SAMPLER", sampler)
    for old, new in changes:
        text = text.replace(old, new)
    (folder / "small.yaml").write_text(text, encoding="utf-8")
    return folder / "small.yaml"


def faults(file: Path) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        load_experiment(file)
    return tuple(message.split(": ", 1)[1] for message in caught.value.messages)


def test_a_fault_in_a_nested_section_has_its_location(tmp_path: Path) -> None:
    file = written(tmp_path, SEMANTIC.replace("model: sandbox", "modle: sandbox"))

    keys = [fault.split(":")[0] for fault in faults(file)]
    assert keys == ["data.silver.sampler.bi_encoder.base.model", "data.silver.sampler.bi_encoder.base.modle"]


def test_a_fault_in_a_dependencys_settings_is_reported_once_at_its_location(tmp_path: Path) -> None:
    file = written(tmp_path, KDE, ("cross_encoder: {base", "cross_encoder: {epocs: 1, base"))

    (fault,) = faults(file)
    assert fault.startswith("data.silver.cross_encoder.epocs: ")


@pytest.mark.parametrize("sampler", [KDE, SEMANTIC])
def test_an_optional_role_without_a_source_stays_empty(tmp_path: Path, sampler: str) -> None:
    planned = make_plan(load_experiment(written(tmp_path, sampler)))

    labels = [str(stage) for stage in planned.stages.values()]
    assert sum("augsbert" in label for label in labels) >= 2


OPTIMIZED = (
    "cross_encoder: {base",
    "cross_encoder: {seed_optimization: {seeds: 3, at: 0.5}, max_steps: 8, base",
)
WITH_DEV = (
    ("sources: {gold: gold}", "sources: {gold: gold, dev: dev}"),
    ("seeds: [0]", "  dev: {sandbox: pairs, split: dev, size: 40}\nseeds: [0]"),
)


@pytest.mark.parametrize("sampler", ["{name: random, size: 9}", KDE])
def test_a_labeller_may_use_seed_optimisation(tmp_path: Path, sampler: str) -> None:
    planned = make_plan(load_experiment(written(tmp_path, sampler, OPTIMIZED, *WITH_DEV)))

    stages = [stage for stage in planned.stages.values() if "cross_encoder" in stage.label]
    *starts, choice, training = stages
    assert [stage.operation.config().get("seed") for stage in starts] == [0, 1, 2]
    assert {stage.operation.config().get("until") for stage in starts} == {0.5}
    assert (choice.kind, list(choice.inputs.values())) == ("select", starts)
    assert (training.kind, training.inputs["paused"]) == ("train", choice)
    assert "until" not in training.operation.config()
    assert "seed_optimization" not in training.operation.config()
    assert {*training.inputs} == {"data:0", "dev:0", "paused"}


def test_a_bi_encoder_for_semantic_search_may_use_seed_optimisation(tmp_path: Path) -> None:
    sampler = SEMANTIC.replace("{base", "{seed_optimization: {}, max_steps: 8, base")
    planned = make_plan(load_experiment(written(tmp_path, sampler, *WITH_DEV)))

    kinds = [stage.kind for stage in planned.stages.values() if "sampler.bi_encoder" in stage.label]
    assert kinds == ["train"] * 5 + ["select", "train"]


def test_seed_optimization_of_a_labeller_needs_dev(tmp_path: Path) -> None:
    (fault,) = faults(written(tmp_path, KDE, OPTIMIZED))
    worded(fault, "data.silver.cross_encoder.seed_optimization", "'dev'")


@pytest.mark.parametrize(
    ("section", "fault"),
    [("{sets: 3}", "seed_optimization.sets: unknown key"), ("{at: 2}", "seed_optimization.at: "), ("5", "")],
)
def test_a_faulty_seed_optimisation_has_its_location(tmp_path: Path, section: str, fault: str) -> None:
    optimized = (OPTIMIZED[0], OPTIMIZED[1].replace("{seeds: 3, at: 0.5}", section))
    (found,) = faults(written(tmp_path, SEMANTIC, optimized, *WITH_DEV))
    assert found.startswith(f"data.silver.cross_encoder.{fault}")
