"""Prompts by category of task: shipped in our own words, or a user's.

The paper prints its prompts; a user's file can hold them.
"""

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from synthbench.api import (
    Prompt,
    PromptFile,
    Prompts,
    PromptSection,
    PromptText,
    ShippedPrompts,
    replaceable_prompts,
)


class Category(StrEnum):
    """A kind of task, by the lengths of query and document; the paper's bitext (two languages) is missing."""

    SHORT_LONG = "short-long"
    LONG_SHORT = "long-short"
    SHORT_SHORT = "short-short"
    LONG_LONG = "long-long"
    STS = "sts"


class TasksPrompt(Prompt):
    """Asks for {number} tasks."""

    shared_slots: ClassVar[tuple[str, ...]] = ("number",)


class RecordPrompt(Prompt):
    """Asks for a record of {task} in {language}; other slots draw texts from pools."""

    optional_slots: ClassVar[tuple[str, ...]] = ("task", "language")


class Keys(PromptSection):
    """Keys of a record's three texts in an answer."""

    anchor: PromptText = Field(description="key of the query")
    positive: PromptText = Field(description="key of the positive")
    negative: PromptText = Field(description="key of the hard negative")


class CategoryPrompts(PromptSection):
    """The prompts of one category; without `tasks`, `task` is the task of all records."""

    tasks: Prompts[TasksPrompt] | None = Field(None, description="ask for {number} tasks")
    task: PromptText | None = Field(None, description="the task of all records, in place of `tasks`")
    records: Prompts[RecordPrompt] = Field(description="ask for one record, as JSON")
    keys: Keys = Field(description="keys of the record's texts in an answer")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.tasks is None) == (self.task is None):
            raise ValueError("needs either `tasks` or `task`")
        if self.tasks is not None and not all("task" in prompt.slots_in_text for prompt in self.records):
            raise ValueError("`records` lacks the slot {task}")
        return self


class BrainstormPrompts(PromptFile):
    """The prompts of `brainstorm` and `brainstorm-tasks`, by category."""

    short_long: CategoryPrompts | None = replaceable_prompts(
        "a short query finds a long text", Category.SHORT_LONG.value
    )
    long_short: CategoryPrompts | None = replaceable_prompts(
        "a long text gets a label", Category.LONG_SHORT.value
    )
    short_short: CategoryPrompts | None = replaceable_prompts("short texts match", Category.SHORT_SHORT.value)
    long_long: CategoryPrompts | None = replaceable_prompts("long texts match", Category.LONG_LONG.value)
    sts: CategoryPrompts | None = replaceable_prompts("texts of two asked similarities")


SHIPPED = ShippedPrompts(
    "synthbench_brainstorm",
    BrainstormPrompts,
    {
        Category.SHORT_LONG: "26cf3421a4690f338ad93d77cb89510a2650a3edddaa5817372faff1395d1286",
        Category.LONG_SHORT: "c14f8b53511222de088b85658487a9b80b410e195b9395b96211cdde9bcc4479",
        Category.SHORT_SHORT: "77bd7a42340f4bd0a83fc50d290f23627af569b669926b94655c6fbac771ad1e",
        Category.LONG_LONG: "e82497c8ececddd52d8b131ce9a6d4ec99f1832671b32507e7dea77029d3889e",
        Category.STS: "129c0e1653eda8b7147a6f22492379014eeec87fba83affeea617ed2b1f575cb",
    },
)


def prompts_of(prompts: BrainstormPrompts, category: Category) -> CategoryPrompts:
    """Return the prompts of a category."""
    found: CategoryPrompts | None = getattr(prompts, category.name.lower())
    assert found is not None
    return found
