"""Recipes: named, versioned bundles of method, steps, trainer and learning rates, shipped by plug-ins.

A package ships `recipes.yaml` and names itself under the entry point group `synthbench.recipes`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Annotated, Any, Literal

from pydantic import Field

from synthbench.base.entry_points import offered, origin
from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import PACKAGE_PREFIX, in_package, read_settings
from synthbench.config.documents import (
    Document,
    KeyPath,
    expand_dotted,
    merge,
    parse_document,
    without_nulls,
)
from synthbench.config.problems import Cursor, Problems
from synthbench.config.schema import Name, RunSection, Section, Settings
from synthbench.models.sizes import Size

FILE = "recipes.yaml"
RECIPE = "recipe"
"""The key of a run's patch that names a recipe."""

Need = Literal["sentences", "gold", "dev", "passages", "llm"]
Task = Literal["similarity", "duplicates", "retrieval", "classification"]


class Rates(Section):
    """Learning rates and other settings for base models of one size."""

    use: float = Field(gt=0, lt=1, description="the learning rate, if none is chosen on dev")
    tries: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        alias="try", min_length=1, description="the learning rates among which dev scores choose"
    )
    run: Settings = Field({}, description="patch of the recipe's run for bases of this size")


class Recipe(Section):
    """A recipe: the settings of a run, as in an experiment file; its sources have the names in `needs`."""

    name: Name = Field(description="the key of the recipe's section in `recipes.yaml`")
    version: int = Field(ge=1, description="raised whenever the recipe's run changes")
    summary: str = Field(min_length=1, description="what the recipe does, in one sentence")
    tasks: tuple[Task, ...] = Field(min_length=1, description="what the encoder is meant for")
    needs: tuple[Need, ...] = Field(
        description="the sources that the recipe needs, and llm if it needs an LLM"
    )
    measured: str = Field("", description='the study or paper that measured the recipe; "": none')
    starts_from: Name | None = Field(
        None, description="the recipe whose trained model the training starts from; null: the base"
    )
    languages: tuple[str, ...] = Field(
        (), description="codes of the languages that the recipe was made for, such as en; empty: any"
    )
    bases: tuple[str, ...] = Field(
        ("train.base",),
        description="keys of the run that get the file's base model; the learning rate beside each is set for"
        " the model's size",
    )
    rates: dict[Size, Rates] = Field(
        {}, description="base model's size -> rates; empty: the run sets a rate itself, or trains nothing"
    )
    run: Settings = Field(description="the run's settings, without base model and learning rate")

    @property
    def title(self) -> str:
        """NAME@VERSION, as experiment files pin a version."""
        return f"{self.name}@{self.version}"

    @property
    def is_of_paper(self) -> bool:
        """Whether the recipe sets a paper's own base model; `variants: all` leaves such recipes out."""
        return "base" in self.run.get("train", {})

    def lacks(self, available: Collection[str]) -> list[str]:
        """Return the recipe's needs that `available` (source names, perhaps "llm") lacks."""
        return [need for need in self.needs if need not in available]


def recipes() -> Mapping[str, Recipe]:
    """Return the newest version of every installed recipe, by name."""
    by_version = sorted(_shipped()[0].values(), key=lambda each: (each.name, each.version))
    return {recipe.name: recipe for recipe in by_version}


def recipe_faults() -> tuple[str, ...]:
    """Return a line on each installed package whose recipes can't be read."""
    return _shipped()[1]


def recipe(name: str) -> Recipe:
    """Return the recipe NAME, in its newest version, or NAME@VERSION; raises UserError if there is none."""
    known = recipes()
    bare, at, _ = name.partition("@")
    found = _shipped()[0].get(name) if at else known.get(bare)
    if found is not None:
        return found
    if bare in known:
        versions = [each.version for each in _shipped()[0].values() if each.name == bare]
        known_versions = ", ".join(map(str, sorted(versions)))
        raise UserError(f"recipe '{bare}' has no version '{name[len(bare) + 1 :]}'; known: {known_versions}")
    raise UserError("; ".join((f"no recipe is called '{bare}'{did_you_mean(bare, known)}", *recipe_faults())))


@cache
def _shipped() -> tuple[Mapping[str, Recipe], tuple[str, ...]]:
    """Return the recipes by title, and a line on each package whose recipes can't be read."""
    found: dict[str, Recipe] = {}
    faults: list[str] = []
    for points in offered("recipes").values():
        for point in points:
            try:
                read = list(_read(point))
                twice = [each.title for each in read if each.title in found]
                if twice:
                    raise UserError(f"another package offers {', '.join(twice)}; uninstall one")
                found |= {each.title: each for each in read}
            except UserError as error:
                title = f"recipes of {origin(point.value, point.dist)} are left out"
                faults += [f"{title}: {message}" for message in error.messages]
    return found, tuple(faults)


def _read(point: EntryPoint) -> Iterator[Recipe]:
    """Yield a package's recipes; in the file, a recipe with several versions is a list."""
    name = f"{PACKAGE_PREFIX}{point.value.replace('.', '/')}/{FILE}"
    files = [path for path in in_package(name) if path.is_file()]
    if not files:
        raise UserError(f"no such file: {name}")
    document = parse_document(read_settings(files[0]), name)
    problems = Problems()
    file = Cursor(document, problems)
    for key, value in file.mapping.items():
        versions = (
            [file[key][index] for index in range(len(value))] if isinstance(value, list) else [file[key]]
        )
        for at in versions:
            run = expand_dotted(document.section(*at.path, "run"))
            parsed = at.parse(Recipe, {**at.mapping, "name": key, "run": run.data})
            if parsed is not None:
                Cursor(run, problems).parse(RunSection, without_nulls(run.data))
                yield parsed
    problems.raise_if_any()


def with_recipes(document: Document) -> Document:
    """Return an experiment file with each patch's key `recipe` replaced by the recipe's run.

    The rest of the patch overrides the recipe's run. Values of the recipe have the location of `recipe:`.
    Raises one UserError for all unknown recipes.
    """
    faults: list[str] = []
    for path in _patches(document):
        patch = document.section(*path)
        if RECIPE not in patch.data:
            continue
        try:
            found = recipe(str(patch.data[RECIPE]))
        except UserError as error:
            title = ".".join((*path, RECIPE))
            faults += [f"{patch.location((RECIPE,))}: {title}: {message}" for message in error.messages]
            continue
        document = _replaced(document, path, under_patch(found.run, patch))
    if faults:
        raise UserError(*faults)
    return document


def under_patch(run: Mapping[str, Any], patch: Document) -> Document:
    """Return a recipe's run, overridden by a patch whose keys may be dotted."""
    whole = located(dict(run), patch.location((RECIPE,)))
    return merge(whole, without_recipe(expand_dotted(patch)), keep_nulls=True)


def without_recipe(patch: Document) -> Document:
    """Return a patch without the key `recipe`."""
    return replace(patch, data={key: value for key, value in patch.data.items() if key != RECIPE})


def located(data: Any, location: str) -> Document:  # noqa: ANN401 - whatever the file holds
    """Return data as a document in which every key has the same location."""
    return Document(data, dict.fromkeys(_paths(data), location))


def _paths(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:  # noqa: ANN401 - whatever the file holds
    yield path
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _paths(value, (*path, key))


def _patches(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield the path of each patch in a file: in `defaults`, in variants and in axis values."""
    paths = [("defaults",), *(("variants", name) for name in document.mapping("variants"))]
    for axis in document.mapping("grid"):
        for value in document.mapping("grid", axis):
            at = ("grid", axis, value)
            paths += [at, *((*at, "variants", name) for name in document.mapping(*at, "variants"))]
    yield from (path for path in paths if isinstance(document.at(path), dict))


def _replaced(document: Document, path: KeyPath, patch: Document) -> Document:
    """Return the document with `patch` as the section at a path."""
    locations = {own: each for own, each in document.locations.items() if own[: len(path)] != path}
    locations |= {(*path, *own): each for own, each in patch.locations.items()}
    locations[path] = document.location(path)
    return Document(document.replaced(path, patch.data).data, locations)
