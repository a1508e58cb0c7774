"""Premises: properties of the sandbox's world that the effect of a method may depend on.

Each has a default at which the world resembles real data in one measure (table in docs/sandbox.md, measured
by `benchmarks/premises.py`). How well the language model follows instructions depends
on the first word of its prompt (`documents.py`); the LLM has settings of its own (`llm/__init__.py`).
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Origin = Literal["sandbox", "elsewhere"]


class Premises(BaseModel):
    """How texts and scores of the sandbox's sets are generated."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    # 0 turns it off, since null removes a key of an experiment file.
    stories: int = Field(
        20,
        ge=0,
        le=100_000,
        description="stories per domain; each event is a variation of a story, so fewer stories give texts "
        "more near neighbours; 0: every event is drawn independently",
    )
    retelling: float = Field(
        0.2,
        ge=0,
        le=1,
        description="probability that a variation draws a slot of its story (agent, action, place, ...) anew",
    )
    usual_words: float = Field(
        0.6,
        ge=0,
        le=1,
        description="probability that a slot's words, or the sentence form, are the usual ones for the "
        "event's action and object; higher: shared words say more about near neighbours",
    )
    edits: float = Field(
        0.7,
        ge=0,
        le=1,
        description="share of pairs with different meanings whose second sentence keeps the first one's "
        "words where the meanings agree; higher: shared words say less about similarity",
    )
    gold_noise: float = Field(
        0.16,
        ge=0,
        le=1,
        description="standard deviation of annotators' errors in the scores of train and dev pairs; test "
        "scores are exact",
    )
    foreign: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of events from any domain, whatever `domains` says; at 1, domains do not differ",
    )
    origin: Origin = Field(
        "sandbox",
        description="origin of the texts, which determines stories and usual words; the shipped encoders "
        "were trained on texts from `elsewhere`",
    )

    def without(self, chance: Literal["usual_words", "foreign"]) -> Self:
        """Return the premises with this probability set to 0."""
        return self.model_copy(update={chance: 0.0})


DEFAULT = Premises()
