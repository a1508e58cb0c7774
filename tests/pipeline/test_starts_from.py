"""`train.starts_from`: a training goes on from the model that another variant trained with the same seed."""

import numpy as np
import pytest
from hub_cache import SENTENCES
from small_experiment import Project, artifact
from wording import refused, worded

from synthbench.base.runtime import Runtime
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.engine.plan import Plan
from synthbench.engine.stage import START
from synthbench.models.artifact import load
from synthbench.models.interfaces import Encoder
from synthbench.pipeline.planning import make_plan

FURTHER = """\
variants:
  further: {{train: {{starts_from: {first}{more}}}}}
"""


def project_with(project: Project, first: str, more: str = "") -> Project:
    """Add the variant `further`, which starts from another one."""
    project.change("variants:\n", FURTHER.format(first=first, more=more))
    return project


def plan_of(project: Project, *variants: str) -> Plan:
    return make_plan(load_experiment(project.file, Overrides(variants=variants)))


def starts(plan: Plan, variant: str) -> list[str]:
    """Return the identity of the model that each run of a variant starts from."""
    models = [run.model for run in plan.runs if run.variant.name == variant]
    return [model.inputs[START].identity for model in models if model]


def models_of(plan: Plan, variant: str) -> list[str]:
    return [run.model.identity for run in plan.runs if run.variant.name == variant and run.model]


def vectors(project: Project, label: str) -> np.ndarray:
    model = load(artifact(project, label), Runtime(device="cpu", threads=1))
    assert isinstance(model, Encoder)
    return model.encode(SENTENCES)


def test_the_start_is_the_model_of_the_same_seed(project: Project) -> None:
    alone = len(plan_of(project, "gold-only").stages)
    plan = plan_of(project_with(project, "gold-only"), "gold-only", "further")
    assert starts(plan, "further") == models_of(plan, "gold-only")
    assert len(set(starts(plan, "further"))) == 2
    # One more training and one more evaluation for each of two seeds.
    assert len(plan.stages) == alone + 4


def test_a_start_from_a_variant_with_select_uses_the_selected_model(project: Project) -> None:
    plan = plan_of(project_with(project, "augsbert"))
    assert starts(plan, "further") == models_of(plan, "augsbert")
    assert {plan.stages[each].operation.kind for each in starts(plan, "further")} == {"select"}


def test_a_change_of_the_first_training_changes_the_second(project: Project) -> None:
    project_with(project, "augsbert")
    before = models_of(plan_of(project), "further")
    project.change("data.silver:", "train.batch_size: 4\n    data.silver:")
    assert not set(before) & set(models_of(plan_of(project), "further"))


def test_the_second_training_starts_where_the_first_ended(project: Project) -> None:
    project_with(project, "gold-only", ", learning_rate: 1e-12, evaluations: 1")
    done = project.call("run", project.file, "--variant", "further", "--seeds", "0")
    assert done.code == 0, done.err
    first, further = (vectors(project, f"train {name} seed 0") for name in ("gold-only", "further"))
    np.testing.assert_allclose(further, first, atol=1e-6)
    # Shows both rows, and that one starts from the other.
    assert "gold-only" in done.out
    notes = next(project.folder.glob("reports/small/*/notes.md")).read_text("utf-8")
    assert "further starts from the trained model of gold-only" in notes
    project.change("evaluations: 1", "evaluations: 2")
    again = project.call("run", project.file, "--variant", "further", "--seeds", "0")
    assert [stage for stage in again.executed if stage.startswith("train")] == ["train further seed 0"]


def test_a_start_comes_from_the_same_grid_point(project: Project) -> None:
    project_with(project, "gold-only")
    project.change(
        "baseline:", "grid: {size: {small: {}, large: {train.base.static_dimension: 24}}}\nbaseline:"
    )
    plan = plan_of(project)
    assert starts(plan, "further") == models_of(plan, "gold-only")
    assert len(set(starts(plan, "further"))) == 4


@pytest.mark.parametrize(
    ("first", "more", "facts"),
    [
        ("gold", "", ("no variant is called 'gold'", "gold-only")),
        ("further", "", ("circle", "further starts from further")),
        ("gold-only", ", base: {static_dimension: 8}", ("train.base", "'gold-only'")),
        ("untrained", "", ("'untrained' trains no model",)),
        ("cross-encoder", "", ("another kind", "'cross-encoder'")),
    ],
    ids=["no such variant", "a circle", "another base", "no training", "another kind"],
)
def test_an_invalid_start_is_reported_in_one_line(
    project: Project, first: str, more: str, facts: tuple[str, ...]
) -> None:
    project_with(project, first, more)
    bert = project.file.read_text(encoding="utf-8").partition('base: {model: "')[2].partition('"')[0]
    others = f"""\
variants:
  untrained: {{data: null, train: {{trainer: none, base: {{model: "{bert}"}}}}}}
  cross-encoder: {{train: {{trainer: cross-encoder, base: {{model: "{bert}"}}, selection: null}}}}
"""
    project.change("variants:\n", others)
    line = (
        project.file.read_text("utf-8")
        .splitlines()
        .index(f"  further: {{train: {{starts_from: {first}{more}}}}}")
    )
    with refused(f"small.yaml:{line + 1}", "train.starts_from", *facts):
        load_experiment(project.file)


def test_each_variant_of_a_cycle_is_reported(project: Project) -> None:
    project_with(project, "augsbert")
    project.change("data.silver:", "train.starts_from: further\n    data.silver:")
    called = project.call("validate", project.file)
    assert (called.code, len(called.errors)) == (2, 2)
    worded(called.errors, "a circle", "further starts from augsbert starts from further")


@pytest.mark.parametrize(
    ("trainer", "own", "fact"),
    [
        ("simcse, learns_from: sentence, dropout: 0.1", "mlm_weight: 0.1, ", "mlm_weight"),
        ("cross-encoder", "hidden_size: 8, ", "hidden_size"),
        ("none", "", "trainer 'none' starts from no trained model"),
    ],
)
def test_a_trainer_that_can_not_use_the_start_is_refused(
    project: Project, trainer: str, own: str, fact: str
) -> None:
    bert = project.file.read_text(encoding="utf-8").partition('base: {model: "')[2].partition('"')[0]
    data = "data: null, " if trainer == "none" else ""
    base = f'base: {{model: "{bert}"}}, selection: null'
    project.change(
        "variants:\n",
        f"variants:\n  first: {{{data}train: {{trainer: {trainer}, {base}}}}}\n"
        f"  further: {{{data}train: {{trainer: {trainer}, {own}{base}, starts_from: first}}}}\n",
    )
    with refused("train.starts_from", fact):
        load_experiment(project.file)
