"""The generated world, whose true similarities are known: its name, and the function that loads it.

A world is a plug-in. Another world can replace it under the same name by implementing `contract.py`.
"""

from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from synthbench.worlds.contract import World

    WorldName = str

NAME: Final = "sandbox"
"""The world's name, shared by its entry point, sources, LLM, judge, profile and commands."""
MODEL_PREFIX = f"{NAME}/"
"""The prefix of its models' names."""
if not TYPE_CHECKING:
    WorldName = Literal[NAME]


@cache
def world() -> "World":
    """Return the world; raises UserError if no package has it, or if it can't be loaded."""
    from synthbench.base.entry_points import imported, offered, only_offer, origin
    from synthbench.base.errors import UserError
    from synthbench.worlds.contract import World

    if NAME not in offered("worlds"):
        raise UserError(f"no installed package offers the world '{NAME}'; install synthbench again")
    point = only_offer("world", offered("worlds")[NAME])
    where = origin(point.value, point.dist)
    found = imported(f"world '{NAME}' ({where})", point.load)
    if not isinstance(found, World):
        raise UserError(f"{where} is not a World, as '{NAME}' must be")
    return found
