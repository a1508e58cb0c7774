"""What the sandbox's world is like: premises on which the effect of a method may rest.

Each can be set; its default is chosen so that the world resembles real data in one measure: the table is in
docs/sandbox.md, `benchmarks/premises.py` measures. The language model's premise is the kind of its prompt
(`documents.py`); the LLM's are settings of its own (`llm/__init__.py`).
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Origin = Literal["sandbox", "elsewhere"]


class Premises(BaseModel):
    """How the texts and scores of the sandbox's sets come about."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    # 0, as null takes a key of an experiment file away.
    stories: int = Field(
        20,
        ge=0,
        le=100_000,
        description="stories of each domain, of which its events are variations; the fewer, the more a text "
        "has near neighbours; 0: none, every event is drawn by itself",
    )
    retelling: float = Field(
        0.2, ge=0, le=1, description="chance of each slot of a story to be drawn anew; without stories, idle"
    )
    usual_words: float = Field(
        0.6,
        ge=0,
        le=1,
        description="chance of each slot, and of the form, to be told in the words usual for what is done to "
        "what: with it, shared words say more about near neighbours",
    )
    edits: float = Field(
        0.7,
        ge=0,
        le=1,
        description="share of second sentences of another meaning that keep the first one's words where they "
        "agree: with it, shared words say less about pairs",
    )
    gold_noise: float = Field(
        0.16,
        ge=0,
        le=1,
        description="standard deviation of the error in the scores of pairs of train and dev; those of test "
        "are the truth",
    )
    foreign: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of events that are of any domain, whatever `domains` says: at 1 no domain differs "
        "from another",
    )
    origin: Origin = Field(
        "sandbox",
        description="where texts are from: stories and usual words differ; the shipped encoders have read "
        "texts from elsewhere",
    )

    def without(self, chance: Literal["usual_words", "foreign"]) -> Self:
        """Return the premises with this chance at 0."""
        return self.model_copy(update={chance: 0.0})


DEFAULT = Premises()
