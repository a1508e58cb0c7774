"""Prompts by category of task: the shipped file, in our own words, or a user's.

The paper prints its prompts; a user's file can hold them.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.api import ShippedFile

PROMPTS_NAME = "reconstructed prompts"
PROMPTS = ShippedFile("synthbench_brainstorm", "prompts.yaml", "shipped prompts")
Text = Annotated[str, Field(pattern=r"\S")]
_DRAWN_BY_US = ("task", "language")


class Category(StrEnum):
    """A kind of task, by the lengths of query and document; the paper's bitext needs several languages."""

    SHORT_LONG = "short-long"
    LONG_SHORT = "long-short"
    SHORT_SHORT = "short-short"
    LONG_LONG = "long-long"
    STS = "sts"


class _PromptSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Keys(_PromptSection):
    """Keys of a record's three texts in an answer."""

    anchor: Text
    positive: Text
    negative: Text


class CategoryPrompts(_PromptSection):
    """The prompts of one category, and the values of their placeholders.

    `tasks` requests tasks; without it, `instruction` is the task of all records.
    """

    tasks: Text | None = None
    instruction: Text | None = None
    records: Text
    keys: Keys
    values: dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.tasks is None) == (self.instruction is None):
            raise ValueError("needs either `tasks` or `instruction`")
        needed = {"task"} if self.tasks is not None else set()
        missing = [name for name in (*needed, *self.values) if f"{{{name}}}" not in self.records]
        if missing:
            raise ValueError(f"`records` lacks {', '.join(f'{{{name}}}' for name in missing)}")
        if self.tasks is not None and "{number}" not in self.tasks:
            raise ValueError("`tasks` lacks {number}")
        reserved = next((name for name in _DRAWN_BY_US if name in self.values), None)
        if reserved is not None:
            raise ValueError(f"`values` has '{reserved}', which the method fills in; leave it out")
        return self


class PromptSet(_PromptSection):
    """The prompts of some categories."""

    short_long: CategoryPrompts | None = Field(None, alias=Category.SHORT_LONG.value)
    long_short: CategoryPrompts | None = Field(None, alias=Category.LONG_SHORT.value)
    short_short: CategoryPrompts | None = Field(None, alias=Category.SHORT_SHORT.value)
    long_long: CategoryPrompts | None = Field(None, alias=Category.LONG_LONG.value)
    sts: CategoryPrompts | None = None

    def of(self, category: Category) -> CategoryPrompts | None:
        """Return a category's prompts, None if the file has none."""
        found: CategoryPrompts | None = getattr(self, category.name.lower())
        return found


def prompts(file: Path | None) -> PromptSet:
    """Return the prompts of a file, by default the shipped one; raises UserError listing its faults."""
    return PROMPTS.read(PromptSet, file)
