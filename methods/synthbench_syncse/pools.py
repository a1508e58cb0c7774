"""Pools: the prompts and examples for each kind of sentence, in YAML files.

SynCSE's paper prints its prompts, genres and topics; its exemplars and examples were not released. The
shipped pools are reconstructed: as many prompts and exemplars as in the paper, its genres and topics, but our
own wording and examples. A user's file can hold the paper's wording.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from synthbench.api import ShippedFile, UserError, did_you_mean, located_key

POOLS_NAME = "reconstructed pools"
NUM_EXEMPLARS = 5
NUM_EXAMPLES = 10
NUM_CAPTIONS = 4
NUM_TOPICS = 6

Item = TypeVar("Item")
Text = Annotated[str, Field(pattern=r"\S")]


class _PoolSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Exemplar(_PoolSection):
    """A sentence and the desired answer."""

    sentence: Text
    answer: Text


class LabelPrompt(_PoolSection):
    """An instruction and its exemplars."""

    instruction: Text
    exemplars: tuple[Exemplar, ...]

    @field_validator("exemplars")
    @classmethod
    def _are_enough(cls, exemplars: tuple[Exemplar, ...]) -> tuple[Exemplar, ...]:
        return _at_least(NUM_EXEMPLARS, exemplars, "exemplars")


class LabelPool(_PoolSection):
    """The prompts for positives or for hard negatives, by name."""

    prompts: dict[str, LabelPrompt] = Field(min_length=1)


class Genre(_PoolSection):
    """A kind of text, as described in a prompt, and example sentences."""

    description: Text
    examples: tuple[Text, ...]

    @field_validator("examples")
    @classmethod
    def _are_enough(cls, examples: tuple[str, ...]) -> tuple[str, ...]:
        return _at_least(NUM_EXAMPLES, examples, "examples")


class NaivePool(_PoolSection):
    """The only prompt, and its fixed examples."""

    prompt: Text
    examples: tuple[Text, ...] = Field(min_length=1)

    @field_validator("prompt")
    @classmethod
    def _has_placeholders(cls, prompt: str) -> str:
        return _with_placeholders(prompt, "number")


class SentencePool(_PoolSection):
    """The prompts for new sentences, and their genres, topics and domains.

    `caption_genres` names the genres that use `caption_prompts` instead of `prompts`. `domains` has
    descriptions of domains; for others, the name is the description. `aspects` are topics within any domain.
    """

    prompts: tuple[Text, ...] = Field(min_length=1)
    caption_prompts: tuple[Text, ...] = ()
    domain_prompts: tuple[Text, ...] = ()
    naive: NaivePool | None = None
    topics: tuple[Text, ...]
    aspects: tuple[Text, ...] = ()
    domains: dict[str, Text] = {}
    caption_genres: tuple[str, ...] = ()
    genres: dict[str, Genre] = Field(min_length=1)

    @field_validator("prompts")
    @classmethod
    def _name_genre_and_topics(cls, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_with_placeholders(prompt, "number", "genre", "topics") for prompt in prompts)

    @field_validator("caption_prompts")
    @classmethod
    def _name_the_genre(cls, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_with_placeholders(prompt, "number", "genre") for prompt in prompts)

    @field_validator("domain_prompts")
    @classmethod
    def _name_domain_and_aspects(cls, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_with_placeholders(prompt, "number", "domain", "topics") for prompt in prompts)

    @field_validator("topics")
    @classmethod
    def _are_enough(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        return _at_least(NUM_TOPICS, topics, "topics")

    @model_validator(mode="after")
    def _fit_together(self) -> "SentencePool":
        if self.caption_genres and not self.caption_prompts:
            raise ValueError("caption_genres need caption_prompts, there are none")
        if self.domain_prompts and len(self.aspects) < NUM_TOPICS:
            raise ValueError(
                f"domain_prompts need at least {NUM_TOPICS} aspects, there are {len(self.aspects)}"
            )
        return self

    def check_genres(self, names: Collection[str]) -> None:
        """Raise UserError if a name is no genre."""
        for name in names:
            if name not in self.genres:
                raise UserError(f"no genre '{name}'{did_you_mean(name, self.genres)}")


def _at_least(number: int, items: tuple[Item, ...], what: str) -> tuple[Item, ...]:
    if len(items) < number:
        raise ValueError(f"needs at least {number} {what}, has {len(items)}")
    return items


def _with_placeholders(prompt: str, *names: str) -> str:
    missing = [f"{{{name}}}" for name in names if f"{{{name}}}" not in prompt]
    if missing:
        raise ValueError(f"lacks {' and '.join(missing)}: {prompt!r}")
    return prompt


def _file(kind: str) -> ShippedFile:
    return ShippedFile("synthbench_syncse", f"pools/{kind}.yaml", "shipped pool")


def positive_pool(file: Path | None = None) -> LabelPool:
    """Return the prompts for positives in a file, by default the shipped one.

    Raises UserError on each fault of the file, as all functions below.
    """
    return _file("positive").read(LabelPool, file)


def negative_pool(file: Path | None = None) -> LabelPool:
    """Return the prompts for hard negatives."""
    return _file("negative").read(LabelPool, file)


def sentence_pool(file: Path | None = None) -> SentencePool:
    """Return the prompts for new sentences, their genres and topics."""
    shipped = _file("sentences")
    pool = shipped.read(SentencePool, file)
    unknown = [name for name in pool.caption_genres if name not in pool.genres]
    if unknown:
        index = pool.caption_genres.index(unknown[0])
        location, key = located_key(shipped.text(file), file or shipped.name, ("caption_genres", index))
        raise UserError(f"{location}: {key}: no genre '{unknown[0]}'{did_you_mean(unknown[0], pool.genres)}")
    return pool


def fingerprint(file: Path | None, shipped: str) -> str:
    """Return the content hash of a file, by default the shipped one: positive, negative or sentences."""
    return _file(shipped).fingerprint(file)
