"""The prompt that asks for a query: shipped in our own words, or a user's."""

from typing import ClassVar

from synthbench.api import Prompt, PromptFile, Prompts, ShippedPrompts, replaceable_prompts

QUERIES = "queries"


class QueryPrompt(Prompt):
    """Asks for a query for {passage}."""

    slots: ClassVar[tuple[str, ...]] = ("passage",)


class QueryPrompts(PromptFile):
    """The prompts of `gpl-queries`."""

    queries: Prompts[QueryPrompt] | None = replaceable_prompts("ask for a query for {passage}")


SHIPPED = ShippedPrompts(
    "synthbench_gpl",
    QueryPrompts,
    {QUERIES: "63f4963baddb926971e8e49b8fceac58470ae5a3b334f2d662ed7f5249507074"},
)
