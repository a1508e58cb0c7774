"""Settings of the world's data sets and LLM, the base classes of the core's sections.

If no world is installed, a section of these settings is a one-line error; files without such sections can be
read.
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
            """Settings that can't be read, since the world is missing."""

            @model_validator(mode="before")
            @classmethod
            def _refuse(cls, given: object) -> object:
                raise ValueError(fault)

        WorldSet = WorldLLMSettings = MissingWorld
