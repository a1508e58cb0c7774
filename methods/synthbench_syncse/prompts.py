"""Prompts, exemplars, genres and topics: shipped, or a user's.

SynCSE's paper prints its prompts, genres and topics; its exemplars and examples were not released. The
shipped ones are reconstructed: as many prompts and exemplars as in the paper, its genres and topics, but our
own wording and examples. A user's file can hold the paper's wording.
"""

from collections.abc import Collection
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from synthbench.api import (
    Prompt,
    PromptFile,
    Prompts,
    PromptSection,
    PromptText,
    ShippedPrompts,
    UserError,
    did_you_mean,
    replaceable_prompts,
)

POSITIVE, NEGATIVE, SENTENCES = "positive", "negative", "sentences"
LABELS = (POSITIVE, NEGATIVE)
NUM_EXAMPLES = 10
NUM_CAPTIONS = 4
NUM_TOPICS = 6


class LabelPrompt(Prompt):
    """Asks for a positive or a hard negative of {sentence}."""

    slots: ClassVar[tuple[str, ...]] = ("sentence",)


class ListPrompt(Prompt):
    """Asks for {number} sentences; an example list, of the genre or the section `naive`, is shown first."""

    shared_slots: ClassVar[tuple[str, ...]] = ("number",)
    takes_exemplars: ClassVar[bool] = False


class GenrePrompt(ListPrompt):
    """Asks for {number} sentences of a {genre} on {topics}."""

    shared_slots: ClassVar[tuple[str, ...]] = ("number", "genre", "topics")
    optional_slots: ClassVar[tuple[str, ...]] = ("examples",)


class CaptionPrompt(ListPrompt):
    """Asks for {number} sentences of a {genre}, such as {examples}."""

    shared_slots: ClassVar[tuple[str, ...]] = ("number", "genre")
    optional_slots: ClassVar[tuple[str, ...]] = ("topics", "examples")


class DomainPrompt(Prompt):
    """Asks for {number} sentences of a {domain} on {topics}."""

    shared_slots: ClassVar[tuple[str, ...]] = ("number", "domain", "topics")


class Genre(PromptSection):
    """A kind of text, as described in a prompt, and example sentences."""

    description: PromptText = Field(description="the text that replaces {genre}")
    examples: Annotated[tuple[PromptText, ...], Field(min_length=NUM_EXAMPLES)] = Field(
        description="example sentences; each request shows ten"
    )


class NaivePrompts(PromptSection):
    """The prompt of naive generation, and the examples that it always shows."""

    prompt: Prompts[ListPrompt] = Field(description="the prompt of naive generation")
    examples: Annotated[tuple[PromptText, ...], Field(min_length=1)] = Field(
        description="the example sentences that the prompt shows"
    )


class SentencePrompts(PromptSection):
    """The prompts for new sentences, and their genres, topics and domains."""

    prompts: Prompts[GenrePrompt] = Field(description="ask for {number} sentences of {genre} on {topics}")
    caption_prompts: Prompts[CaptionPrompt] | None = Field(
        None, description="prompts for the genres in `caption_genres`, in place of `prompts`"
    )
    domain_prompts: Prompts[DomainPrompt] | None = Field(
        None, description="ask for {number} sentences of {domain} on {topics}, drawn from `aspects`"
    )
    naive: NaivePrompts | None = Field(None, description="the prompt of naive generation")
    topics: Annotated[tuple[PromptText, ...], Field(min_length=NUM_TOPICS)] = Field(
        description="topics; each request names six"
    )
    aspects: tuple[PromptText, ...] = Field(
        (), description="topics that suit any domain; each request names six"
    )
    domains: dict[str, PromptText] = Field(
        {}, description="domain -> its description; another domain NAME is described as `texts on NAME`"
    )
    caption_genres: tuple[str, ...] = Field((), description="genres that `caption_prompts` ask for")
    genres: Annotated[dict[str, Genre], Field(min_length=1)] = Field(
        description="genre's name -> its description and example sentences"
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.caption_genres and not self.caption_prompts:
            raise ValueError("caption_genres need caption_prompts; add some")
        if self.domain_prompts and len(self.aspects) < NUM_TOPICS:
            raise ValueError(
                f"domain_prompts need at least {NUM_TOPICS} aspects, there are {len(self.aspects)}"
            )
        try:
            self.check_genres(self.caption_genres)
        except UserError as error:
            raise ValueError(f"caption_genres: {error}") from None
        return self

    def check_genres(self, names: Collection[str]) -> None:
        """Raise UserError if a name is no genre."""
        for name in names:
            if name not in self.genres:
                raise UserError(f"no genre '{name}'{did_you_mean(name, self.genres)}")


class SynCSEPrompts(PromptFile):
    """The prompts of SynCSE's methods."""

    positive: Prompts[LabelPrompt] | None = replaceable_prompts(
        "ask for a sentence that means the same as {sentence}"
    )
    negative: Prompts[LabelPrompt] | None = replaceable_prompts(
        "ask for a sentence that does not mean the same as {sentence}"
    )
    sentences: SentencePrompts | None = replaceable_prompts("ask for new sentences")


SHIPPED = ShippedPrompts(
    "synthbench_syncse",
    SynCSEPrompts,
    {
        POSITIVE: "b60e940037d91f01691ebf789df1d43123a437f9b301181e57fb13cab223dafb",
        NEGATIVE: "0491f46e20c4f803b238b7d28c887c9444dfb888878bfef477ca5f6b2c7da301",
        SENTENCES: "efae42daf86035d50e0a0a89f6be0e0d9d846ef60ae31244c90f90eac95ebfef",
    },
)


def labels_of(prompts: SynCSEPrompts, kind: str) -> tuple[LabelPrompt, ...]:
    """Return the prompts for positives or hard negatives."""
    found = prompts.positive if kind == POSITIVE else prompts.negative
    assert found is not None
    return found


def sentences_of(prompts: SynCSEPrompts) -> SentencePrompts:
    """Return the prompts for new sentences."""
    assert prompts.sentences is not None
    return prompts.sentences
