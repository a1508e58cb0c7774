"""Entry points of installed packages, by which packages offer plug-ins."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import TypeVar

from synthbench.base.errors import UserError, in_one_line

T = TypeVar("T")


@cache
def offered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return name -> entry points of a group, such as "methods"; several if packages share the name."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in _installed().select(group=f"synthbench.{group}"):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(points.values()) for name, points in found.items()}


_installed = cache(entry_points)


def only_offer(word: str, points: tuple[EntryPoint, ...]) -> EntryPoint:
    """Return the only entry point; raises UserError if several packages offer its name.

    `word` names the kind of component in the message, such as "method".
    """
    if len(points) > 1:
        both = " and ".join(origin(point.value, point.dist) for point in points)
        raise UserError(f"two installed packages offer the {word} '{points[0].name}': {both}; uninstall one")
    return points[0]


def origin(value: str, distribution: Distribution | None) -> str:
    """Return where a plug-in comes from: module, class and distribution."""
    return value + (f" of {distribution.name} {distribution.version}" if distribution else "")


def imported(title: str, load: Callable[[], T]) -> T:
    """Return what `load` imports; raises UserError with one line that begins with `title` if it fails."""
    try:
        return load()
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        # A plug-in that fails to import, in whatever way, must not block the others.
        known = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise UserError(f"{title} can't be loaded: {known}{in_one_line(error)}") from error
