"""What a method needs first, as an experiment file configures it: where its faults stand, and its roles."""

from pathlib import Path

import pytest

from synthbench.config.load import load_experiment
from synthbench.errors import UserError
from synthbench.pipeline.plan import make_plan

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


def test_a_fault_in_a_nested_section_stands_there(tmp_path: Path) -> None:
    file = written(tmp_path, SEMANTIC.replace("model: sandbox", "modle: sandbox"))

    keys = [fault.split(":")[0] for fault in faults(file)]
    assert keys == ["data.silver.sampler.bi_encoder.base.model", "data.silver.sampler.bi_encoder.base.modle"]


def test_a_fault_in_settings_that_are_handed_on_is_told_once_where_it_stands(tmp_path: Path) -> None:
    file = written(tmp_path, KDE, ("cross_encoder: {base", "cross_encoder: {epocs: 1, base"))

    (fault,) = faults(file)
    assert fault.startswith("data.silver.cross_encoder.epocs: ")


@pytest.mark.parametrize("sampler", [KDE, SEMANTIC])
def test_an_optional_role_without_a_source_is_not_handed_on(tmp_path: Path, sampler: str) -> None:
    planned = make_plan(load_experiment(written(tmp_path, sampler)))

    labels = [str(stage) for stage in planned.stages.values()]
    assert sum("augsbert" in label for label in labels) >= 2
