"""The settings of the world's data sets and of its LLM, from which the core's sections inherit.

Without the world, a section of these kinds is refused in one line; files without such sections are read.
"""

from typing import TYPE_CHECKING

from pydantic import BaseModel, model_validator

from synthbench.base.errors import UserError
from synthbench.worlds import world

__all__ = ["WorldLLMSettings", "WorldSet"]

if TYPE_CHECKING:
    from synthbench.worlds.contract import WorldLLMSettings, WorldSet
else:
    try:
        WorldSet, WorldLLMSettings = world().sets, world().llm_settings
    except UserError as error:
        fault = str(error)

        class MissingWorld(BaseModel):
            """Settings that can't be read."""

            @model_validator(mode="before")
            @classmethod
            def _refuse(cls, given: object) -> object:
                raise ValueError(fault)

        WorldSet = WorldLLMSettings = MissingWorld
