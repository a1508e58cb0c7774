"""The prompts that ask for a query: shipped in our own words, or a user's."""

from typing import ClassVar

from synthbench.api import Prompt, PromptFile, Prompts, ShippedPrompts, replaceable_prompts

QUERIES, QUERIES_OF_TWO = "queries", "queries_of_two"


class QueryPrompt(Prompt):
    """Asks for a query for {passage}."""

    slots: ClassVar[tuple[str, ...]] = ("passage",)


class TwoPassagePrompt(Prompt):
    """Asks for a query that {passage} and {second} answer together."""

    slots: ClassVar[tuple[str, ...]] = ("passage", "second")


class QueryPrompts(PromptFile):
    """The prompts of `gpl-queries` and `two-passage-queries`."""

    queries: Prompts[QueryPrompt] | None = replaceable_prompts("ask for a query for {passage}")
    queries_of_two: Prompts[TwoPassagePrompt] | None = replaceable_prompts(
        "ask for a query that needs {passage} and {second}"
    )


SHIPPED = ShippedPrompts(
    "synthbench_gpl",
    QueryPrompts,
    {
        QUERIES: "63f4963baddb926971e8e49b8fceac58470ae5a3b334f2d662ed7f5249507074",
        QUERIES_OF_TWO: "6eb527e6e92224bce71bb2739be998ae546cc8c644621611351cae8287da86cd",
    },
)
