"""The nearest sentences by a bi-encoder that was trained on gold, alone or with BM25's."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import GenerationContext, Need, Record, Records, SyntheticDataset
from synthbench_augsbert.gold import GoldSentences, IndexPair
from synthbench_augsbert.labelling import trained_on_gold
from synthbench_augsbert.samplers import (
    HOW_K_COUNTS,
    WHICH_BM25,
    BM25Sampler,
    Candidates,
    ChoosingSampler,
    SamplerConfig,
    check_k,
    new_pairs,
    unordered,
)

BI_ENCODER = "sampler.bi_encoder"


class SemanticSettings(SamplerConfig):
    """What the samplers with a bi-encoder are told of it."""

    bi_encoder: dict[str, Any] = Field(
        description="what finds them: the settings of the trainer `bi-encoder`, such as `base: {model: ...}`;"
        " `seed_optimization`, as `train` has it, may stand beside them"
    )
    exact_up_to: int = Field(
        100_000,
        ge=1,
        description="up to so many sentences each is compared with all; beyond, with those that an inverted"
        " file has near it, at a recall that is told",
    )


class SemanticSearchSampler(SemanticSettings):
    """The `k` sentences nearest to each sentence by the cosine of a bi-encoder that was trained on gold.

    k counts neighbours without the sentence itself. Neighbours that are gold pairs are dropped, not replaced.
    """

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS,)
    name: Literal["semantic-search"] = "semantic-search"
    k: int = Field(ge=1, description="neighbours of each sentence")

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"semantic-search k={self.k}"

    def needs(self, seed: int) -> Mapping[str, Need]:
        """Return the bi-encoder, trained on gold and, if the role "dev" is given, selected on dev."""
        return {BI_ENCODER: trained_on_gold("bi-encoder", self.bi_encoder, seed)}

    def unit_key(self, position: int, pair: IndexPair) -> str:
        """The pair: another number of threads may, in a rounding, find another neighbour."""
        return f"{pair[0]}-{pair[1]}"

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if there are not more than `k` sentences."""
        check_k(self.name, "k", self.k, gold)

    def sample(self, gold: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Return sentence by sentence its neighbours, nearest first, leaving out pairs that came before.

        Tells the recall. Raises UserError as `check` does.
        """
        from synthbench_augsbert.embeddings import nearest

        self.check(gold)
        vectors = context.encoder(BI_ENCODER).encode(gold.texts)
        threads = context.runtime.threads
        found = nearest(vectors, self.k, exact_up_to=self.exact_up_to, seed=seed, threads=threads)
        context.progress.say(
            f"  semantic search: {self.k} neighbours of {len(gold.texts):,} sentences ({found.how}), "
            f"recall {found.recall:.3f}"
        )
        context.measure("semantic search: recall", found.recall)
        return new_pairs(unordered(found.indices.tolist()), gold)

    def most_pairs(self, num_sentences: int) -> int:
        """Return how many pairs there can be."""
        return self.k * num_sentences


class BM25SemanticSampler(SemanticSettings, ChoosingSampler):
    """The pairs of both BM25 and semantic search, each once, as those two samplers have them labelled."""

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS, WHICH_BM25)
    name: Literal["bm25+semantic-search"] = "bm25+semantic-search"
    k: int = Field(ge=1, description="neighbours of each sentence by BM25, and by the bi-encoder")
    semantic_k: int | None = Field(
        None, ge=1, description="neighbours by the bi-encoder, if not as many as by BM25; null: `k`"
    )

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"bm25+semantic-search k={self.k},{self.semantic_k or self.k}"

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if there are not more sentences than neighbours are asked for."""
        check_k(self.name, "k", self.k, gold)
        check_k(self.name, "semantic_k", self.semantic_k or self.k, gold)

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the two samplers."""
        semantic = SemanticSearchSampler(
            k=self.semantic_k or self.k, bi_encoder=self.bi_encoder, exact_up_to=self.exact_up_to
        )
        both = (BM25Sampler(k=self.k), semantic)
        return {sampler.name: sampler.model_dump(mode="json") for sampler in both}

    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield BM25's pairs, then those that semantic search adds."""
        found: set[tuple[str, ...]] = set()
        num_again = 0
        for records in labelled.values():
            for record in records:
                if record.texts() in found:
                    num_again += 1
                    continue
                found.add(record.texts())
                yield replace(record, id="")
        context.count_dropped("found in both ways, kept once", num_again)
