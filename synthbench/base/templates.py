"""Templates of pages and cards; rendering fails if a variable of the template is missing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def templates_in(*folders: str, autoescape: bool = True) -> "Environment":
    """Return the Jinja environment that finds templates in these folders of the package `synthbench`."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=autoescape,
        loader=ChoiceLoader([PackageLoader("synthbench", folder) for folder in folders]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
