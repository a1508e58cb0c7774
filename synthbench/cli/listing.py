"""synthbench list: the plug-ins that are installed, with their settings."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.cli.console import console
from synthbench.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

WIDTH = 100


class Group(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    STEPS = "steps"
    TRAINERS = "trainers"
    EVALUATORS = "evaluators"


def list_plugins(
    group: Annotated[Group | None, typer.Argument(help="Which plug-ins; all if not given.")] = None,
) -> None:
    """List the installed methods, steps, trainers and evaluators, and the settings of each."""
    from synthbench.plugin_loading import component, installed

    for each in [group] if group else list(Group):
        if group is None:
            print(f"{each.upper()}\n")
        for name, point in sorted(installed(each).items()):
            try:
                plugin = component(each, name)
            except UserError as error:
                print(f"{name}  left out: {error}\n")
                continue
            _print_plugin(f"{name}  version {plugin.version}  [{point.value}]", plugin)


def _print_plugin(title: str, plugin: type[Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from synthbench.cli.reference import summary

    target = console()
    target.width = min(target.width, WIDTH)
    target.print(Text(title))
    for line in (summary(plugin), *_contract(plugin)):
        target.print(Padding(Text(line), (0, 0, 0, 4)))
    if plugin.model_fields:
        target.print(Padding(_settings_table(plugin), (0, 0, 0, 4)))
    target.print()


def _contract(plugin: type[Any]) -> list[str]:
    """Say what a method makes of what, or what a trainer makes: the same keys for every setting."""
    from synthbench.plugins import Method, Step, Trainer

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


def _settings_table(plugin: type[Any]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    from synthbench.cli.reference import settings_of

    table = Table(box=None, pad_edge=False, show_edge=False)
    # A key is to be copied whole; values and meanings share what is left.
    table.add_column("key", no_wrap=True)
    table.add_column("value", ratio=1)
    table.add_column("default", no_wrap=True)
    table.add_column("meaning", ratio=2)
    for setting in settings_of(plugin):
        table.add_row(*map(Text, (setting.key, setting.values, setting.default, setting.description)))
    return table
