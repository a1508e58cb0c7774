"""The prompts of stage 1: shipped in our own words, or a user's."""

from typing import ClassVar

from synthbench.api import Prompt, PromptFile, Prompts, ShippedPrompts, replaceable_prompts

POSITIVE, NEGATIVE = "positive", "negative"
KINDS = (POSITIVE, NEGATIVE)


class SentencePrompt(Prompt):
    """Asks for a sentence that follows from {sentence} or contradicts it."""

    slots: ClassVar[tuple[str, ...]] = ("sentence",)


class TripletPrompts(PromptFile):
    """The prompts of `multicsr` and `multicsr-triplets`."""

    positive: Prompts[SentencePrompt] | None = replaceable_prompts(
        "ask for a sentence that follows from {sentence}"
    )
    negative: Prompts[SentencePrompt] | None = replaceable_prompts(
        "ask for a sentence that contradicts {sentence}"
    )


SHIPPED = ShippedPrompts(
    "synthbench_multicsr",
    TripletPrompts,
    {
        POSITIVE: "90fb63f7c3cf246ce83f162881e1aa1d76c4ac49baed61a79ac31310dd9558ce",
        NEGATIVE: "b507aa32306d3c71bb2f3fc2e87020c0ee201c45a46a811e1ec087e1c4eb4f30",
    },
)
