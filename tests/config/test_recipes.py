"""Recipes: named bundles that packages ship as data, and that a run's patch may name."""

import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from shipped_files import SHIPPED as SHIPPED_STUDIES

from synthbench.base.errors import UserError
from synthbench.config import recipes as module
from synthbench.config.documents import parse_document
from synthbench.config.experiment import Candidate, Experiment
from synthbench.config.recipes import Recipe, recipe, recipe_faults, recipes, with_recipes

SHIPPED = """\
silver:
  - version: 1
    summary: One silver pair.
    tasks: [similarity]
    needs: [gold, dev]
    run: {data.silver: {method: fake, sources: {gold: gold}, size: 1}}
  - version: 2
    summary: Three silver pairs.
    tasks: [similarity]
    needs: [gold, dev]
    measured: a study
    rates: {small: {use: 2e-5, try: [1e-5, 2e-5]}}
    run: {data.silver: {method: fake, sources: {gold: gold}, size: 3}, train.strength: 1}
"""


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Offer SHIPPED as an installed package's recipes, and those of a package without the file."""
    for package, text in (("some_recipes", SHIPPED), ("other_recipes", "")):
        (tmp_path / package).mkdir()
        if text:
            (tmp_path / package / "recipes.yaml").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    points = {
        name: (importlib.metadata.EntryPoint(name, name, "synthbench.recipes"),)
        for name in ("some_recipes", "other_recipes")
    }
    monkeypatch.setattr(module, "offered", lambda group: points)
    module._shipped.cache_clear()
    yield
    module._shipped.cache_clear()


def configs(experiment: Experiment) -> list[Candidate]:
    return [candidate for variant in experiment.variants for candidate in variant.candidates]


def expanded(text: str) -> dict[str, object]:
    found: dict[str, object] = with_recipes(parse_document(text, "study.yaml")).data
    return found


@pytest.mark.usefixtures("ship")
def test_without_a_version_the_newest_is_meant() -> None:
    assert recipe("silver") is recipe("silver@2") is recipes()["silver"]
    assert recipe("silver@1").summary == "One silver pair."
    assert recipe("silver").rates["small"].tries == (1e-5, 2e-5)


@pytest.mark.usefixtures("ship")
def test_a_package_whose_recipes_cannot_be_read_is_named_and_spares_the_others() -> None:
    assert list(recipes()) == ["silver"]
    (fault,) = recipe_faults()
    assert fault.startswith("recipes of other_recipes are left out: no such file:")


@pytest.mark.usefixtures("ship")
def test_a_recipe_lies_under_the_rest_of_its_patch() -> None:
    run = {
        "data": {"silver": {"method": "fake", "sources": {"gold": "gold"}, "size": 7}},
        "train": {"strength": 1},
    }
    text = "variants: {mine: {recipe: silver, data.silver.size: 7}}"
    assert expanded(text) == {"variants": {"mine": run}}
    text = "grid: {axis: {value: {variants: {mine: {recipe: silver, data: {silver: {size: 7}}}}}}}"
    assert expanded(text) == {"grid": {"axis": {"value": {"variants": {"mine": run}}}}}


@pytest.mark.usefixtures("ship")
def test_a_patch_of_the_defaults_may_name_a_recipe() -> None:
    data = {"silver": {"method": "fake", "sources": {"gold": "gold"}, "size": 1}, "gold": {"source": "gold"}}
    assert expanded("defaults: {recipe: silver@1, data.gold: {source: gold}}") == {"defaults": {"data": data}}


@pytest.mark.usefixtures("ship")
def test_a_file_with_a_recipe_is_the_file_with_what_it_expands_to(experiment: ExperimentFile) -> None:
    study = experiment
    long = study.load()
    written = "    data.silver:\n      method: fake\n      sources: {gold: gold}\n      size: 3\n"
    short = study.change(written, "    recipe: silver@2\n    train.strength: 0.5\n").load()
    assert [each.config for each in configs(short)] == [each.config for each in configs(long)]
    resolved = json.dumps(short.resolved)
    assert '"recipe"' not in resolved and '"method": "fake"' in resolved


@pytest.mark.usefixtures("ship")
def test_faults_of_a_recipes_values_name_the_line_of_the_recipe(experiment: ExperimentFile) -> None:
    study = experiment
    study.change(
        "    data.silver:\n      method: fake\n      sources: {gold: gold}\n      size: 3\n",
        "    recipe: silver\n",
    )
    study.change("  gold: {file: gold.tsv, kind: scored_pair}\n", "")
    study.change("    gold: {source: gold}\n", "    gold: {source: dev}\n")
    with pytest.raises(UserError) as error:
        study.load()
    assert f":{study.line('recipe: silver')}: data.silver.sources.gold" in str(error.value)


@pytest.mark.usefixtures("ship")
def test_unknown_recipes_and_versions_are_told_all_at_once() -> None:
    with pytest.raises(UserError) as error:
        expanded("variants:\n  a: {recipe: silvr}\n  b: {recipe: silver@3}")
    first, second = error.value.messages
    assert first.startswith(
        "study.yaml:2: variants.a.recipe: no recipe is called 'silvr'; did you mean 'silver'?"
    )
    assert second == "study.yaml:3: variants.b.recipe: recipe 'silver' has no version '3'; known: 1, 2"


def shipped() -> list[Recipe]:
    return list(recipes().values())


def test_the_study_that_measured_a_shipped_recipe_is_shipped() -> None:
    measured = {each.measured for each in shipped() if not each.is_of_paper} - {""}
    assert measured <= set(SHIPPED_STUDIES)


def test_the_shipped_recipes_can_be_read() -> None:
    assert recipe_faults() == ()
    assert {"untrained", "gold-only", "syncse-partial", "syncse-then-gold"} <= {
        each.name for each in shipped()
    }


@pytest.mark.parametrize("each", shipped(), ids=lambda each: each.name)
def test_a_shipped_recipe_starts_from_a_shipped_one_and_uses_a_rate_it_tries(each: Recipe) -> None:
    assert each.starts_from is None or each.starts_from in recipes()
    assert all(rates.use in rates.tries for rates in each.rates.values())
