"""Base classes of an experiment's settings for the world's data sets and LLM.

If no world is installed, a file with such settings gives a one-line error; other files can be read.
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
            """Settings that always fail validation, since the world is missing."""

            @model_validator(mode="before")
            @classmethod
            def _refuse(cls, given: object) -> object:
                raise ValueError(fault)

        WorldSet = WorldLLMSettings = MissingWorld
