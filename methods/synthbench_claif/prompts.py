"""The prompts that make the second sentence of a pair: shipped in our own words, or a user's."""

from typing import ClassVar

from synthbench.api import Prompt, PromptFile, Prompts, ShippedPrompts, replaceable_prompts

FILL, PARAPHRASE = "fill", "paraphrase"


class FillPrompt(Prompt):
    """Asks to fill every {mask} of {sentence}."""

    slots: ClassVar[tuple[str, ...]] = ("sentence",)
    shared_slots: ClassVar[tuple[str, ...]] = ("mask",)


class ParaphrasePrompt(Prompt):
    """Asks for {sentence} in other words."""

    slots: ClassVar[tuple[str, ...]] = ("sentence",)


class PairPrompts(PromptFile):
    """The prompts of `claif` and `claif-pairs`."""

    fill: Prompts[FillPrompt] | None = replaceable_prompts("ask to replace every {mask} in {sentence}")
    paraphrase: Prompts[ParaphrasePrompt] | None = replaceable_prompts(
        "ask for {sentence} in other words, at mask rate 0"
    )


SHIPPED = ShippedPrompts(
    "synthbench_claif",
    PairPrompts,
    {
        FILL: "ce0b4afe0fa29f1c5387a6bf6e7ced9488b61eb5d565c4acf86e52f6710a89cd",
        PARAPHRASE: "4e33873928de37097bb0a1cb8c62ef861c5964e0f17b7591d6c348bf45b57da9",
    },
)
