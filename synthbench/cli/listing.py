"""`synthbench list`: show the installed plug-ins and their settings."""

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.base.errors import UserError, did_you_mean
from synthbench.cli.console import console

if TYPE_CHECKING:
    from collections.abc import Mapping


WIDTH = 100


GROUPS = ("methods", "steps", "trainers", "evaluators", "importers")
RECIPES, EXPERIMENTS, ALL = "recipes", "experiments", "all"


def _known() -> list[str]:
    """Return all arguments that `list` accepts: groups, recipes, experiments, all, and components."""
    from synthbench.plugins.loading import installed

    return [*GROUPS, RECIPES, EXPERIMENTS, ALL, *(name for group in GROUPS for name in installed(group))]


def _complete(incomplete: str) -> list[str]:
    return [name for name in _known() if name.startswith(incomplete)]


def list_plugins(
    named: Annotated[
        str,
        typer.Argument(
            metavar="[GROUP|NAME]",
            help=f"{', '.join(GROUPS)}, {RECIPES}, {EXPERIMENTS}, {ALL}, or a component [names alone].",
            autocompletion=_complete,
        ),
    ] = "",
) -> None:
    """List the installed components, recipes or experiments, or show components with their settings."""
    from synthbench.plugins.loading import installed

    overviews = {"": _print_overview, RECIPES: _print_recipes, EXPERIMENTS: _print_experiments}
    if named in overviews:
        overviews[named]()
        return
    if named == ALL or named in GROUPS:
        for group in GROUPS if named == ALL else (named,):
            if named == ALL:
                print(f"{group.upper()}\n")
            for name in sorted(installed(group)):
                _print_component(group, name)
        return
    groups = [group for group in GROUPS if named in installed(group)]
    if not groups:
        raise UserError(f"nothing installed is called '{named}'{did_you_mean(named, {*_known()})}")
    for group in groups:
        print(f"{group.upper()}\n")
        _print_component(group, named)


def _print_overview() -> None:
    """Print the names of all components, by group, on one screen."""
    from synthbench.plugins.loading import installed

    for group in GROUPS:
        names = ", ".join(sorted(installed(group)))
        print(textwrap.fill(f"{group}: {names}", WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    print()
    print(f"synthbench list NAME: one with its settings; list GROUP: all of a group; list {ALL}: everything")
    print(f"synthbench list {RECIPES}: ready-made rows for short files, each in a line")
    print(f"synthbench list {EXPERIMENTS}: what `synthbench init --experiment NAME` writes")


def _print_experiments() -> None:
    """Print each experiment that ships with synthbench or a plug-in, with its description."""
    from synthbench.cli.shipped_experiments import shipped_experiments

    for name, experiment in shipped_experiments().items():
        print(textwrap.shorten(f"{name}: {experiment.description}", WIDTH, placeholder=" ..."))


def _print_recipes() -> None:
    """Print a line for each recipe's newest version: what it does and needs, and where it was measured."""
    from synthbench.config.recipes import recipe_faults, recipes

    for each in recipes().values():
        needs = f" Needs {', '.join(each.needs)}." if each.needs else ""
        measured = f" Measured: {each.measured}." if each.measured else " Not measured."
        print(f"{each.title}: {each.summary} For {', '.join(each.tasks)}.{needs}{measured}")
    for fault in recipe_faults():
        print(fault)


def _print_component(group: str, name: str) -> None:
    from synthbench.plugins.loading import component, installed

    try:
        plugin = component(group, name)
    except UserError as error:
        print(f"{name}  left out: {error}\n")
        return
    _print_plugin(f"{name}  version {plugin.version}  [{installed(group)[name].value}]", plugin)


def _print_plugin(title: str, plugin: type[Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from synthbench.cli.settings import REQUIRED, settings_of, summary

    target = console()
    target.width = min(target.width, WIDTH)
    target.print(Text(title))
    for line in (summary(plugin), *_contract(plugin)):
        target.print(Padding(Text(line), (0, 0, 0, 4)))
    for setting in settings_of(plugin):
        default = setting.default if setting.default in ("", REQUIRED) else f"default {setting.default}"
        line = f"{setting.key}: {setting.values}{'; ' if default else ''}{default}"
        target.print(Padding(Text(line), (0, 0, 0, 4)))
        target.print(Padding(Text(setting.description), (0, 0, 0, 8)))
    target.print()


def _contract(plugin: type[Any]) -> list[str]:
    """Return lines on what a method makes and reads, a step takes, or a trainer makes and needs."""
    from synthbench.plugins.contracts import Method, Step
    from synthbench.plugins.model_contracts import Trainer

    if issubclass(plugin, Method):
        roles = [*_roles(plugin.source_roles, ""), *_roles(plugin.optional_source_roles, ", may be left out")]
        return [f"Makes: {plugin.record_kind}. Roles in `sources:`: {'; '.join(roles) or 'none'}."]
    if issubclass(plugin, Step):
        return [f"For: {', '.join(sorted(plugin.kinds))}."]
    if issubclass(plugin, Trainer):
        return [f"Makes: {plugin.model_kind}. {'Needs' if plugin.takes_data else 'Takes no'} data."]
    return []


def _roles(roles: "Mapping[str, object]", note: str) -> list[str]:
    return [f"{role} ({kind}{note})" for role, kind in roles.items()]
