"""The method: an LLM or a sequence-to-sequence model writes queries for each passage of a corpus."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.api import (
    EXEMPLARS,
    ChatAmount,
    ChatRequest,
    Constant,
    Exemplar,
    Expected,
    Failure,
    GenerationContext,
    Pair,
    PromptChat,
    Record,
    RecordKind,
    Sentence,
    Seq2SeqLanguageModel,
    Seq2SeqModel,
    ShippedPrompts,
    SyntheticDataset,
    TokenLogprob,
    Unit,
    WithExemplars,
    WithPrompts,
    added_field,
    answered_items,
    drawn_chat,
    estimated_amount,
    written_items,
)
from synthbench_gpl.answers import REPEATED, fault_of, likelihood, query_in
from synthbench_gpl.prompts import QUERIES, SHIPPED, QueryPrompts

PASSAGES, NAME, SEQ2SEQ = "passages", "gpl-queries", "seq2seq"
LEAST_QUERIES = 3
"""Minimum number of queries per passage: GPL's number for a large corpus."""
TOKENS_PER_QUERY = 14
_CHARACTERS_PER_TOKEN = 4.5
AT_ONCE, CHUNK = 256, 8
"""Batch sizes of the sequence-to-sequence model: queries in all, and per passage."""
_NUM_PRICED = 50
_OF_THE_LLM = {"prompt", "prompts", "num_exemplars", "sampling", "likelihoods"}
_TYPICAL_QUERY = "what is the passage about?"
TYPICAL_PASSAGE = "A passage of about fifty words, as those of MS MARCO are. " * 5


class QuerySampling(BaseModel):
    """Sampling of queries: nucleus sampling as in GPL, but without top-k (GPL: 25), which the API lacks."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature")
    top_p: float = Field(0.95, gt=0, le=1, description="top-p")
    max_tokens: int = Field(64, ge=1, description="maximum length of a query in tokens")


class GPLQueries(WithPrompts[QueryPrompts], WithExemplars):
    """Queries written by an LLM, or by `seq2seq`, for each passage; a pair is a query and its passage.

    GPL continues with `mine-negatives`, `draw-negatives`, `score-triplets` and the loss `margin-mse`; InPars
    keeps the best queries (`keep-consistent`) and trains on them.
    """

    version = 3
    record_kind = RecordKind.PAIR
    shipped: ClassVar[ShippedPrompts[QueryPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "queries"
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {PASSAGES: RecordKind.SENTENCE}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {EXEMPLARS: RecordKind.PAIR}

    queries_per_passage: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="queries per passage. Default: `total_queries` divided by the number of passages, at "
        "least 3, as in GPL's code",
    )
    total_queries: int = Field(
        250_000,
        ge=1,
        description="queries for the whole corpus, divided among its passages; each passage gets at least 3. "
        "Unused if `queries_per_passage` is set",
    )
    prompt: Literal["instruction", "few-shot"] = Field(
        "instruction",
        description="the shipped instruction alone; few-shot: with three exemplars, as in InPars",
    )
    sampling: QuerySampling = Field(QuerySampling(), description="sampling of the LLM")
    seq2seq: Seq2SeqLanguageModel | None = added_field(
        None,
        description="write the queries by this model instead of the LLM, such as GPL's T5",
    )
    likelihoods: bool = added_field(
        False,
        description="store each query's likelihood for `keep-best`; the LLM must give log-probabilities of"
        " tokens",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the queries")

    @model_validator(mode="after")
    def _settings_are_the_writers(self) -> Self:
        unused = sorted(_OF_THE_LLM & self.model_fields_set) if self.seq2seq else []
        if unused:
            raise ValueError(f"{unused[0]} is the LLM's; with `seq2seq` leave it out (seq2seq.top_p ...)")
        if self._has_own_prompt and "prompt" in self.model_fields_set:
            raise ValueError("prompt: `prompts` decides whether there are exemplars; leave `prompt` out")
        return self

    @property
    def _has_own_prompt(self) -> bool:
        return self.prompts is not None and QUERIES in self.prompts.named

    def version_in_use(self) -> int:
        """Return 2, or 3 for a file of prompts that lacks this method's prompt.

        For such a file, version 2 showed exemplars.
        """
        return 2 if self.prompts is None or self._has_own_prompt else self.version

    def prompt_names(self) -> list[str]:
        """Return the name of the prompt; none for `seq2seq`."""
        return [] if self.seq2seq else [QUERIES]

    def table_notes(self) -> tuple[str, ...]:
        """Return a note if the experiment has a prompt of its own."""
        return super().table_notes() if self._has_own_prompt else ()

    def needs_llm(self) -> bool:
        """Return whether an LLM writes, not `seq2seq`."""
        return self.seq2seq is None

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash or commit of the sequence-to-sequence model, if there is one."""
        return {} if self.seq2seq is None else self.seq2seq.fingerprint()

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens; None for `seq2seq` or if the number is unknown."""
        if PASSAGES not in num_records or self.seq2seq is not None:
            return None
        num_requests = num_records[PASSAGES] * self.number(num_records[PASSAGES])
        shown = [{"passage": TYPICAL_PASSAGE, "answer": _TYPICAL_QUERY}] * (self.num_exemplars or 0)
        chats = (self._chat(TYPICAL_PASSAGE, shown or None, index).messages for index in range(_NUM_PRICED))
        return estimated_amount(num_requests, chats, TOKENS_PER_QUERY)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the maximum number of pairs, and the computation of a sequence-to-sequence model."""
        num_passages = num_records.get(PASSAGES)
        if num_passages is None:
            return Expected()
        number = self.number(num_passages)
        if self.seq2seq is None:
            return Expected(num_passages * number)
        passage_tokens = round(len(TYPICAL_PASSAGE) / _CHARACTERS_PER_TOKEN)
        times_read = math.ceil(number / CHUNK)
        work = self.seq2seq.work(num_passages, passage_tokens * times_read, number, TOKENS_PER_QUERY)
        return Expected(num_passages * number, work, num_passages * number * TOKENS_PER_QUERY)

    def constants(self) -> Mapping[str, Constant]:
        """Return the shipped prompts, and the minimum of 3 queries unless `queries_per_passage` is set."""
        prompts = super().constants()
        return (
            prompts if self.queries_per_passage else {**prompts, "least_queries": Constant(LEAST_QUERIES, 3)}
        )

    def number(self, num_passages: int) -> int:
        """Return the number of queries per passage."""
        if self.queries_per_passage is not None:
            return self.queries_per_passage
        return max(LEAST_QUERIES, math.ceil(self.total_queries / max(num_passages, 1)))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per passage: its queries, or the failures."""
        passages: list[Sentence] = list(sources[PASSAGES])
        if self.seq2seq is None:
            return self._asked(passages, sources, context)
        return self._written(passages, self.seq2seq, context)

    def _written(
        self, passages: list[Sentence], writer: Seq2SeqLanguageModel, context: GenerationContext
    ) -> Iterator[Unit]:
        number = self.number(len(passages))
        size = max(1, AT_ONCE // min(number, CHUNK))
        texts = {passage.id: passage.sentence for passage in passages}

        def write(batch: Sequence[int], model: Seq2SeqModel) -> list[list[tuple[str, str]]]:
            return self._queries([passages[index] for index in batch], number, model)

        for index, queries in written_items("writing queries", texts, size, writer, context, write):
            yield self._unit(passages[index], index, queries, writer.model)

    def _queries(
        self, passages: list[Sentence], number: int, model: Seq2SeqModel
    ) -> "list[list[tuple[str, str]]]":
        """Return each passage's queries as (text, ""), "" for no failure; chunks limit the kv-cache."""
        queries: list[list[tuple[str, str]]] = [[] for _ in passages]
        texts = [" ".join(passage.sentence.split()) for passage in passages]
        for start in range(0, number, CHUNK):
            numbers = range(start, min(start + CHUNK, number))
            keys = [[f"{passage.id}|{index}" for index in numbers] for passage in passages]
            for known, written in zip(queries, model.texts(texts, keys, self.seed), strict=True):
                known.extend((text, "") for text in written)
        return queries

    def _chat(self, passage: str, exemplars: Sequence[Exemplar] | None, *of: object) -> PromptChat:
        prompts = self.all_prompts.queries
        assert prompts is not None
        if exemplars is None and not self._has_own_prompt and self.prompt == "instruction":
            exemplars = ()
        return drawn_chat(prompts, {"passage": passage}, self.seed, *of, exemplars=exemplars)

    def _asked(
        self,
        passages: list[Sentence],
        sources: Mapping[str, SyntheticDataset],
        context: GenerationContext,
    ) -> Iterator[Unit]:
        number = self.number(len(passages))
        exemplars = self.source_exemplars(sources, self.seed, {"passage": "positive", "answer": "anchor"})

        def requests(_: int, passage: Sentence) -> Mapping[str, ChatRequest]:
            sampling = self.sampling.model_dump()
            return {
                str(index): ChatRequest(
                    f"{index}|{passage.id}",
                    self._chat(passage.sentence, exemplars, passage.id, index).messages,
                    sampling,
                    _number(self.seed, index),
                    logprobs=0 if self.likelihoods else None,
                )
                for index in range(number)
            }

        named = ((passage.id, passage) for passage in passages)
        for about in answered_items("asking for queries", len(passages), named, requests, context):
            answers = [about.answers[str(index)] for index in range(number)]
            texts = [(answer.text, "" if answer.text is not None else answer.failure) for answer in answers]
            # An endpoint may report log-probabilities unasked.
            logprobs = [answer.logprobs if self.likelihoods else () for answer in answers]
            yield self._unit(about.item, about.position, texts, context.llm.model, logprobs)

    def _unit(
        self,
        passage: Sentence,
        position: int,
        texts: Sequence[tuple[str | None, str]],
        generator: str,
        logprobs: Sequence[Sequence[TokenLogprob]] = (),
    ) -> Unit:
        """Return the unit of a passage.

        `texts` has for each query the answer and "", or None and the reason for its failure; `logprobs` has
        the log-probabilities of the answer's tokens.
        """
        columns: dict[str, Any] = {
            "method": NAME,
            "generator": generator,
            "seed": self.seed,
            "label": passage.label,
            "source_id": passage.id,
            "instruction": SEQ2SEQ if self.seq2seq else "own prompt" if self._has_own_prompt else self.prompt,
        }
        records: list[Record] = []
        dropped: Counter[str] = Counter()
        known: set[str] = set()
        for (text, failure), tokens in zip(texts, logprobs or [()] * len(texts), strict=True):
            if text is None:
                records.append(Failure(reason=failure, **columns))
                continue
            query = query_in(text)
            fault = fault_of(query, passage.sentence)
            if fault:
                records.append(Failure(reason=fault, raw_text=text, **columns))
            elif query.lower() in known:
                dropped[REPEATED] += 1
            else:
                known.add(query.lower())
                likely = likelihood(text, tokens)
                records.append(Pair(anchor=query, positive=passage.sentence, likelihood=likely, **columns))
        return Unit(passage.id, position, tuple(records), dropped)


def _number(seed: int, index: int) -> int:
    """Return `ChatRequest.sample` for the `index`-th query of every passage, a 31-bit hash."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:4]) >> 1
