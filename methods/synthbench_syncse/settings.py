"""Settings of all methods: seed, filters, pools, and sampling of the LLM."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from synthbench.api import (
    AS_SENT,
    ChatSampling,
    Component,
    GivenName,
    Penalty,
    Temperature,
    TopP,
    own_path,
    readable,
)
from synthbench_syncse.filters import Filters
from synthbench_syncse.pools import POOLS_NAME, fingerprint, negative_pool, positive_pool, sentence_pool


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


PositivePoolFile = Annotated[GivenName | None, readable(positive_pool)]
NegativePoolFile = Annotated[GivenName | None, readable(negative_pool)]
SentencePoolFile = Annotated[GivenName | None, readable(sentence_pool)]


class WithSeed(Component):
    """The seed of all draws, and the filters of all answers."""

    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")
    filters: Filters = Field(Filters(), description="filters for sentences")


class WithLabels(WithSeed):
    """Settings of requests for positives and hard negatives."""

    positive_pool: PositivePoolFile = Field(
        None, description="YAML file of prompts for positives. Default: the reconstructed pools"
    )
    negative_pool: NegativePoolFile = Field(
        None, description="YAML file of prompts for hard negatives. Default: the reconstructed pools"
    )
    positives: PositiveSampling = Field(PositiveSampling(), description="sampling of positives")
    negatives: NegativeSampling = Field(NegativeSampling(), description="sampling of hard negatives")

    def table_notes(self) -> tuple[str, ...]:
        """Return a note for each reconstructed pool."""
        return pool_notes(positive=self.positive_pool, negative=self.negative_pool)

    def revisions(self) -> Mapping[str, str]:
        """Return the content hashes of the pools."""
        return {
            **pool_revision(self.positive_pool, "positive"),
            **pool_revision(self.negative_pool, "negative"),
        }


class WithSentences(Component):
    """Settings of requests for new sentences."""

    size: int = Field(
        ge=1, description="number of requested sentences, 20 per request; dropped ones are not replaced"
    )
    sentence_pool: SentencePoolFile = Field(
        None, description="YAML file of prompts, genres and topics. Default: the reconstructed pools"
    )
    sentences: SentenceSampling = Field(SentenceSampling(), description="sampling of new sentences")


def pool_revision(file: str | None, kind: str) -> dict[str, str]:
    """Return {pool's name: content hash}."""
    name = f"{POOLS_NAME}: {kind}" if file is None else f"{kind} pool"
    return {name: fingerprint(own_path(file), kind)}


def pool_notes(**files: str | None) -> tuple[str, ...]:
    """Return the table notes on the pools, by name; None means the shipped pool."""
    own = ", ".join(f"{name} pool {file}" for name, file in files.items() if file is not None)
    if None not in files.values():
        return (f"Prompts, exemplars and examples for the LLM: {own}.",)
    return (
        f"Prompts, exemplars and examples for the LLM: {POOLS_NAME}, in our own words"
        f"{f'; but {own}' if own else ''}. SynCSE's paper prints its prompts, genres and topics; its"
        " exemplars and examples were not released.",
    )


def provenance(method: str, generator: str, seed: int) -> dict[str, Any]:
    """Return the shared columns of a method's records."""
    return {"method": method, "generator": generator, "seed": seed}
