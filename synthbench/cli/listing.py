"""synthbench list: the plug-ins that are installed."""

from enum import StrEnum
from typing import Annotated

import typer

from synthbench.errors import UserError


class Group(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    TRAINERS = "trainers"
    EVALUATORS = "evaluators"


def list_plugins(group: Annotated[Group, typer.Argument(help="Which plug-ins to list.")]) -> None:
    """List the installed methods, trainers or evaluators with their settings."""
    from synthbench.plugins import component, installed

    for name, point in sorted(installed(group).items()):
        try:
            plugin = component(group, name)
        except UserError as error:
            print(f"{name}  (can't be loaded: {error})")
            continue
        summary = (plugin.__doc__ or "").strip().splitlines()[0]
        print(f"{name}  version {plugin.version}  [{point.value}]\n    {summary}")
        for field, info in plugin.model_fields.items():
            default = (
                "required" if info.is_required() else f"default {info.get_default(call_default_factory=True)}"
            )
            print(f"    {field}: {default}")
