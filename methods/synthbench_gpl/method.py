"""The method: an LLM writes queries for each passage of a corpus."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Expected,
    Failure,
    GenerationContext,
    Method,
    Pair,
    Record,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
)
from synthbench_gpl.answers import REPEATED, fault_of, query_in
from synthbench_gpl.prompts import PromptName, messages

PASSAGES, NAME = "passages", "gpl-queries"
LEAST_QUERIES = 3
"""GPL's queries for each passage of a large corpus."""
_CHARACTERS_PER_TOKEN, _TOKENS_PER_QUERY = 4.5, 14
_TYPICAL = "A passage of about fifty words, as those of MS MARCO are. " * 5


class QuerySampling(BaseModel):
    """How queries are sampled: nucleus sampling as GPL's generator, whose top-k 25 the API does not have."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(1.0, ge=0, le=2, description="as the API has it")
    top_p: float = Field(0.95, gt=0, le=1, description="as the API has it")
    max_tokens: int = Field(64, ge=1, description="longest query in tokens")


class GPLQueries(Method):
    """Queries that an LLM writes for each passage; a pair is a query and its passage.

    GPL goes on with `mine-negatives`, `draw-negatives`, `score-triplets` and the loss `margin-mse`; InPars
    keeps the best queries (`keep-consistent`) and trains on them.
    """

    version = 1
    record_kind = RecordKind.PAIR
    uses_llm = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {PASSAGES: RecordKind.SENTENCE}

    queries_per_passage: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="null: as many as make `total_queries` together, at least 3, as in GPL's code",
    )
    total_queries: int = Field(
        250_000, ge=1, description="queries for the whole corpus, where it is small enough"
    )
    prompt: PromptName = Field(
        "instruction", description="an instruction alone; few-shot: after three exemplars, as InPars"
    )
    sampling: QuerySampling = Field(QuerySampling(), description="how the LLM samples")
    seed: int = Field(0, ge=0, lt=2**32, description="another seed asks for other queries")

    def can_be_sharded(self) -> bool:
        """Requests do not depend on each other."""
        return True

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return requests and tokens."""
        if PASSAGES not in num_records:
            return None
        num_requests = num_records[PASSAGES] * self.number(num_records[PASSAGES])
        characters = sum(len(message["content"]) for message in messages(self.prompt, _TYPICAL))
        tokens = round(num_requests * characters / _CHARACTERS_PER_TOKEN)
        return ChatAmount(num_requests, tokens, num_requests * _TOKENS_PER_QUERY)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return at most so many pairs."""
        num_passages = num_records.get(PASSAGES)
        return Expected(None if num_passages is None else num_passages * self.number(num_passages))

    def number(self, num_passages: int) -> int:
        """Return the queries for each passage."""
        if self.queries_per_passage is not None:
            return self.queries_per_passage
        return max(LEAST_QUERIES, math.ceil(self.total_queries / max(num_passages, 1)))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each passage: its queries, or the failures instead."""
        passages: list[Sentence] = list(sources[PASSAGES])
        number, generator = self.number(len(passages)), context.llm.model
        asked: dict[str, _Asked] = {}
        with context.progress.task(
            "asking for queries", sum(map(context.is_mine, range(len(passages))))
        ) as bar:
            bar.advance(len(context.finished_units))
            for answer in context.chat().answers(self._requests(passages, number, asked, context)):
                index, _, key = answer.request.key.partition("|")
                about = asked[key]
                about.answers[int(index)] = answer
                if len(about.answers) == number:
                    del asked[key]
                    yield self._unit(about, generator)
                    bar.advance()

    def _requests(
        self,
        passages: list[Sentence],
        number: int,
        asked: "dict[str, _Asked]",
        context: GenerationContext,
    ) -> Iterator[ChatRequest]:
        for position, passage in enumerate(passages):
            if not context.is_mine(position) or passage.id in context.finished_units:
                continue
            asked[passage.id] = _Asked(position, passage)
            texts = messages(self.prompt, passage.sentence)
            for index in range(number):
                sample = _number(self.seed, index)
                yield ChatRequest(f"{index}|{passage.id}", texts, self.sampling.model_dump(), sample)

    def _unit(self, about: "_Asked", generator: str) -> Unit:
        passage = about.passage
        columns: dict[str, Any] = {
            "method": NAME,
            "generator": generator,
            "seed": self.seed,
            "label": passage.label,
            "source_id": passage.id,
            "instruction": self.prompt,
        }
        records: list[Record] = []
        dropped: Counter[str] = Counter()
        known: set[str] = set()
        for index in sorted(about.answers):
            answer = about.answers[index]
            if answer.text is None:
                records.append(Failure(reason=answer.failure, **columns))
                continue
            query = query_in(answer.text)
            fault = fault_of(query, passage.sentence)
            if fault:
                records.append(Failure(reason=fault, raw_text=answer.text, **columns))
            elif query.lower() in known:
                dropped[REPEATED] += 1
            else:
                known.add(query.lower())
                records.append(Pair(anchor=query, positive=passage.sentence, **columns))
        return Unit(passage.id, about.position, tuple(records), dropped)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A passage whose queries are requested, and the answers so far by their index."""

    position: int
    passage: Sentence
    answers: dict[int, ChatAnswer] = field(default_factory=dict)


def _number(seed: int, index: int) -> int:
    """Return a number of 31 bits that tells one query of a passage from the others."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:4]) >> 1
