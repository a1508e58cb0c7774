"""The prompt for documents of every level, and the levels: shipped in our own words, or a user's."""

from typing import Annotated, ClassVar

from pydantic import Field

from synthbench.api import (
    Prompt,
    PromptChat,
    PromptFile,
    Prompts,
    PromptText,
    ShippedPrompts,
    drawn_chat,
    replaceable_prompts,
)

DOCUMENTS, LEVELS = "documents", "levels"
LEVEL_END = "; "


class DocumentsPrompt(Prompt):
    """Asks for a document for each of {levels} of relevance for {query}; pools fill all other slots."""

    slots: ClassVar[tuple[str, ...]] = ("query",)
    shared_slots: ClassVar[tuple[str, ...]] = ("levels",)


class GradedPrompts(PromptFile):
    """The prompts of `graded-documents`."""

    documents: Prompts[DocumentsPrompt] | None = replaceable_prompts(
        "ask for a document for each of {levels} for {query}"
    )
    levels: Annotated[tuple[PromptText, ...], Field(min_length=2, max_length=20)] | None = (
        replaceable_prompts("a description of each level's documents, the most relevant first, level 0 last")
    )

    @property
    def keys(self) -> tuple[str, ...]:
        """The levels' numbers, the highest first: the keys of an answer."""
        return tuple(str(level) for level in reversed(range(len(self.levels or ()))))

    def chat(self, query: str, *of: object) -> PromptChat:
        """Return a request for documents; `of`, such as seed and key, determines all draws."""
        assert self.documents is not None and self.levels is not None
        levels = (f'"{key}" ({meaning})' for key, meaning in zip(self.keys, self.levels, strict=True))
        return drawn_chat(self.documents, {"query": query, "levels": LEVEL_END.join(levels)}, *of)


SHIPPED = ShippedPrompts(
    "synthbench_sycl",
    GradedPrompts,
    {
        DOCUMENTS: "86b9ea48ac883f5b04a6a14eb1485330adc8352fa0640a37e77d05edffb82243",
        LEVELS: "33cc59199482cf377a44e893aaf84cc9f77dcb56f55ff7f8ed8cd40c3236e21c",
    },
)
