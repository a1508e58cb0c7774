"""Templates of pages and cards: what a template names must be given."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def templates_in(*folders: str, autoescape: bool = True) -> "Environment":
    """Return the environment of the templates in these folders of synthbench's package."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=autoescape,
        loader=ChoiceLoader([PackageLoader("synthbench", folder) for folder in folders]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
