"""Settings of SynCSE's methods: seed, filters, prompts, and sampling of the LLM."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from synthbench.api import (
    AS_SENT,
    ChatSampling,
    Method,
    Penalty,
    ShippedPrompts,
    Temperature,
    TopP,
    WithPrompts,
)
from synthbench_syncse.filters import Filters
from synthbench_syncse.prompts import LABELS, NEGATIVE, POSITIVE, SENTENCES, SHIPPED, SynCSEPrompts

_FIRST_FILES = {
    POSITIVE: "54d2ec1f02e1899c840f22cf911bd6525a14b1cd7cdcc56ccd5d6f87c36b42e4",
    NEGATIVE: "87e69b37c9a3af710ddf931174c4835527ed51677646b14be176cc60b83a968b",
    SENTENCES: "dc7b2b24f3d7454424ee9f1a002e97528c217d1c40dff601b6a5d6cf960b2c97",
}
"""Hashes of the shipped prompts in identities: those of the first files, so that identities don't change."""


def _is_gone(given: object) -> None:
    if given is not None:
        raise ValueError(
            "is gone; write one file with `positive`, `negative` and `sentences`: {prompts: FILE}"
        )


_RemovedPool = Annotated[None, BeforeValidator(_is_gone)]


class PositiveSampling(ChatSampling):
    """Sampling of positives (appendix C of the paper)."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(0.9, description=AS_SENT)


class NegativeSampling(ChatSampling):
    """Sampling of hard negatives (appendix C of the paper)."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(0.95, description=AS_SENT)


class SentenceSampling(ChatSampling):
    """Sampling of new sentences (appendix C of the paper)."""

    temperature: Temperature = Field(1.3, description=AS_SENT)
    top_p: TopP = Field(1.0, description=AS_SENT)
    presence_penalty: Penalty = Field(0.3, description=AS_SENT)
    frequency_penalty: Penalty = Field(0.3, description=AS_SENT)


class WithSeed(Method):
    """The seed of all draws, and the filters of all answers."""

    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")
    filters: Filters = Field(Filters(), description="filters for sentences")


class WithSynCSEPrompts(WithPrompts[SynCSEPrompts], Method):
    """A method that uses SynCSE's prompts."""

    shipped: ClassVar[ShippedPrompts[SynCSEPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "positives, hard negatives and new sentences"
    is_shardable = True

    def table_notes(self) -> tuple[str, ...]:
        """Return a note on the origin of the prompts."""
        (note,) = super().table_notes()
        unreleased = (
            " SynCSE's paper prints its prompts, genres and topics; its exemplars and examples were not"
            " released."
        )
        return (note + unreleased if self._from_us() else note,)

    def revisions(self) -> Mapping[str, str]:
        """Return the fixed hash of each shipped prompt in use, for the stage's identity."""
        return {f"reconstructed pools: {name}": _FIRST_FILES[name] for name in self._from_us()}

    def _from_us(self) -> list[str]:
        return self.shipped.shipped_among(self.prompts, self.prompt_names())


class WithLabels(WithSynCSEPrompts, WithSeed):
    """Settings of requests for positives and hard negatives."""

    positive_pool: _RemovedPool = Field(None, description="removed: use `prompts`")
    negative_pool: _RemovedPool = Field(None, description="removed: use `prompts`")
    positives: PositiveSampling = Field(PositiveSampling(), description="sampling of positives")
    negatives: NegativeSampling = Field(NegativeSampling(), description="sampling of hard negatives")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of the prompts for positives and hard negatives."""
        return LABELS


class WithSentences(WithSynCSEPrompts):
    """Settings of requests for new sentences."""

    size: int = Field(
        ge=1, description="number of requested sentences, 20 per request; dropped ones are not replaced"
    )
    sentence_pool: _RemovedPool = Field(None, description="removed: use `prompts`")
    sentences: SentenceSampling = Field(SentenceSampling(), description="sampling of new sentences")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the name of the prompts for sentences."""
        return (SENTENCES,)


def provenance(method: str, generator: str, seed: int) -> dict[str, Any]:
    """Return the shared columns of a method's records."""
    return {"method": method, "generator": generator, "seed": seed}
