"""Overrides that change an experiment, and those that leave it unchanged."""

from pathlib import Path

import pytest
from small_experiment import Project

from synthbench.cli.options import Given
from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import Invocation, _is_runtime, load_invocation, typed_options


def given(
    project: Project,
    *assignments: str,
    profile: str | None = None,
    variants: tuple[str, ...] = (),
    seeds: str | None = None,
    data: Path | None = None,
) -> Invocation:
    asked = Given(
        file=project.file,
        profile=profile,
        assignments=list(assignments),
        variant=list(variants),
        seeds=seeds,
        data=data,
    )
    return load_invocation(project.file, asked.overrides())


def test_without_overrides_the_invocation_is_that_of_the_file(project: Project) -> None:
    assert given(project).overrides == ()
    assert given(project, data=project.folder).overrides == ()


def test_overrides_are_shown_as_typed_in_a_fixed_order(project: Project) -> None:
    found = given(
        project, "train.max_steps=2", "table.caption=two words", variants=("gold-only",), seeds="0, 2"
    ).overrides
    assert found == (
        "--variant gold-only",
        "--seeds 0,2",
        "--set train.max_steps=2",
        "--set 'table.caption=two words'",
    )


def test_secrets_are_masked() -> None:
    typed = typed_options(
        Overrides(profile="small", assignments=("data.silver.api_key=hush", "train.max_steps=2"))
    )

    assert typed == ("--profile small", "--set 'data.silver.api_key=***'", "--set train.max_steps=2")


@pytest.mark.parametrize("seeds", [None, "0,1"])
def test_overrides_without_effect_are_left_out(project: Project, seeds: str | None) -> None:
    found = given(project, "train.max_steps=8", variants=("augsbert", "gold-only"), seeds=seeds)
    assert found.overrides == ()
    assert found.experiment.resolved == given(project).experiment.resolved


def test_runtime_settings_do_not_change_the_experiments_identity(project: Project) -> None:
    found = given(project, "runtime.threads=3")
    assert (found.overrides, found.experiment.runtime.threads) == ((), 3)
    assert given(project, "runtime={threads: 3}", seeds="0").overrides == ("--seeds 0",)


def test_request_settings_of_an_llm_do_not_change_the_experiments_identity(project: Project) -> None:
    for llm in ("llm", "llms.a"):
        assert all(_is_runtime(f"{llm}.{key}=1") for key in ("budget_usd", "offline", "batch", "timeout"))
        assert not any(_is_runtime(f"{llm}.{key}=1") for key in ("model", "name", "price.input", "noise"))
    assert not _is_runtime("llms.batch={endpoint: sandbox}")


def test_a_profile_is_shown_unless_it_changes_only_the_runtime(project: Project) -> None:
    (project.folder / "profiles").mkdir()
    (project.folder / "profiles" / "tiny.yaml").write_text("run: {train.max_steps: 4}\n")
    (project.folder / "profiles" / "gpu.yaml").write_text("experiment: {runtime: {device: cuda}}\n")
    assert given(project, profile="tiny").overrides == ("--profile tiny",)
    assert given(project, profile="gpu").overrides == ()


def test_overrides_that_make_a_file_valid_make_another_experiment(
    project: Project,
) -> None:
    project.change("learning_rate: 0.02", "learning_rate: fast")
    found = given(project, "defaults.train.learning_rate=0.02")
    assert found.overrides == ("--set defaults.train.learning_rate=0.02",)


def test_rows_stay_unchanged_if_overrides_change_or_remove_other_rows(project: Project) -> None:
    every = {variant.label for variant in given(project).experiment.variants}
    rest = every - {"augsbert"}

    assert given(project, "variants.augsbert=null").experiment.rows_of_file == rest
    assert given(project, "variants.augsbert.train.max_steps=4").experiment.rows_of_file == rest
    assert given(project, "table.decimals=1", seeds="0").experiment.rows_of_file == every
    assert given(project, "train.max_steps=4").experiment.rows_of_file == frozenset()


def test_a_shared_setting_changes_all_rows(project: Project) -> None:
    assert given(project, "vary=[generation]").experiment.rows_of_file == frozenset()
    assert given(project, "sources.gold.sample={size: 20}").experiment.rows_of_file == frozenset()


def test_rows_stay_unchanged_if_an_override_removes_an_invalid_one(project: Project) -> None:
    every = {variant.label for variant in given(project).experiment.variants}
    project.change("variants:", "variants:\n  faulty: {train.learning_rate: fast}")

    assert given(project, "variants.faulty=null").experiment.rows_of_file == every


def test_the_commands_assignments_follow_the_users(project: Project) -> None:
    asked = Given(file=project.file, assignments=["runtime.threads=3"])
    assert asked.overrides("runtime.executor=ray").assignments == (
        "runtime.threads=3",
        "runtime.executor=ray",
    )
