"""The settings that the methods share: seed, filters, pools, and how the LLM samples."""

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
    """How positives are sampled (appendix C of the paper)."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(0.9, description=AS_SENT)


class NegativeSampling(ChatSampling):
    """How hard negatives are sampled (appendix C of the paper)."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(0.95, description=AS_SENT)


class SentenceSampling(ChatSampling):
    """How new sentences are sampled (appendix C of the paper)."""

    temperature: Temperature = Field(1.3, description=AS_SENT)
    top_p: TopP = Field(1.0, description=AS_SENT)
    presence_penalty: Penalty = Field(0.3, description=AS_SENT)
    frequency_penalty: Penalty = Field(0.3, description=AS_SENT)


PositivePoolFile = Annotated[GivenName | None, readable(positive_pool)]
NegativePoolFile = Annotated[GivenName | None, readable(negative_pool)]
SentencePoolFile = Annotated[GivenName | None, readable(sentence_pool)]


class WithSeed(Component):
    """The seed of all draws, and the filters of all answers."""

    seed: int = Field(0, ge=0, lt=2**32, description="of all that is drawn, and of the LLM's answers")
    filters: Filters = Field(Filters(), description="which sentences are dropped")


class WithLabels(WithSeed):
    """How positives and hard negatives are requested."""

    positive_pool: PositivePoolFile = Field(
        None, description="YAML file of prompts for positives; null: the reconstructed pools"
    )
    negative_pool: NegativePoolFile = Field(
        None, description="YAML file of prompts for hard negatives; null: the reconstructed pools"
    )
    positives: PositiveSampling = Field(PositiveSampling(), description="how positives are sampled")
    negatives: NegativeSampling = Field(NegativeSampling(), description="how hard negatives are sampled")

    def table_notes(self) -> tuple[str, ...]:
        """Say that pools are reconstructed, if any is."""
        return pool_notes(positive=self.positive_pool, negative=self.negative_pool)

    def revisions(self) -> Mapping[str, str]:
        """Return the content hashes of the pools."""
        return {
            **pool_revision(self.positive_pool, "positive"),
            **pool_revision(self.negative_pool, "negative"),
        }


class WithSentences(Component):
    """How new sentences are requested."""

    size: int = Field(
        ge=1, description="sentences asked for, 20 in a request; those that are dropped are not made up for"
    )
    sentence_pool: SentencePoolFile = Field(
        None, description="YAML file of prompts, genres and topics; null: the reconstructed pools"
    )
    sentences: SentenceSampling = Field(SentenceSampling(), description="how new sentences are sampled")


def pool_revision(file: str | None, kind: str) -> dict[str, str]:
    """Return {name of the pool: its content hash}."""
    name = f"{POOLS_NAME}: {kind}" if file is None else f"{kind} pool"
    return {name: fingerprint(own_path(file), kind)}


def pool_notes(**files: str | None) -> tuple[str, ...]:
    """Return the notes of tables on the pools, by name; a file that is None stands for the shipped pool."""
    own = ", ".join(f"{name} pool {file}" for name, file in files.items() if file is not None)
    if None not in files.values():
        return (f"Prompts, exemplars and examples for the LLM: {own}.",)
    return (
        f"Prompts, exemplars and examples for the LLM: {POOLS_NAME}, in our own words"
        f"{f'; but {own}' if own else ''}. SynCSE's paper prints its prompts, genres and topics; its"
        " exemplars and examples were not released.",
    )


def provenance(method: str, generator: str, seed: int) -> dict[str, Any]:
    """Return the columns that all records of a method share."""
    return {"method": method, "generator": generator, "seed": seed}
