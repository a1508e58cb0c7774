"""The method: an LLM writes a document of every level of relevance for each query, in one answer."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from synthbench.api import (
    AnsweredItem,
    ChatAmount,
    ChatRequest,
    Expected,
    GenerationContext,
    Method,
    OpenSampling,
    PromptChat,
    Ranking,
    RecordKind,
    Sentence,
    ShippedPrompts,
    SyntheticDataset,
    Unit,
    WithPrompts,
    answered_items,
    estimated_amount,
    hashed_number,
)
from synthbench_sycl.answers import documents_in
from synthbench_sycl.prompts import DOCUMENTS, LEVELS, SHIPPED, GradedPrompts

METHOD, QUERIES = "graded-documents", "queries"
_SLOTS = {"query", "levels"}
_TYPICAL = "how long can honey be kept"
_NUM_PRICED = 50
_WORDS_PER_SENTENCE, _TOKENS_PER_WORD, _TOKENS_OF_JSON = 18, 1.4, 6
_SENTENCES_PER_DOCUMENT = 4


class GradedDocuments(WithPrompts[GradedPrompts], Method):
    """Documents of each level of relevance for given queries: a ranking is a query with graded documents.

    The levels are evenly spaced grades from 1 to 0. `instruction` has the texts drawn from pools.
    """

    version = 2
    record_kind = RecordKind.RANKING
    shipped: ClassVar[ShippedPrompts[GradedPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "graded documents"
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {QUERIES: RecordKind.SENTENCE}

    lists_per_query: int = Field(1, ge=1, le=1000, description="lists of documents asked for each query")
    sampling: OpenSampling = Field(OpenSampling(), description="sampling of the LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of the prompt and the levels."""
        return (DOCUMENTS, LEVELS)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record for each request."""
        return Expected(self._num_requests(num_records))

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens."""
        number = self._num_requests(num_records)
        if number is None:
            return None
        chats = [self._chat(_TYPICAL, index) for index in range(_NUM_PRICED)]
        sentences = sum(map(_num_sentences, chats)) / _NUM_PRICED
        per_document = sentences * _WORDS_PER_SENTENCE * _TOKENS_PER_WORD + _TOKENS_OF_JSON
        tokens = round(len(self.all_prompts.keys) * per_document)
        return estimated_amount(number, [chat.messages for chat in chats], tokens)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request: its ranking, or the failure."""
        sampling = self.sampling.parameters()

        def request(_: int, asked: "_Asked") -> Mapping[str, ChatRequest]:
            query, key = asked
            sample = hashed_number(self.seed, METHOD, key)
            return {"": ChatRequest(key, self._chat(query.sentence, key).messages, sampling, sample)}

        queries: list[Sentence] = list(sources[QUERIES])
        keys = ((query, f"{query.id}|{index}") for query in queries for index in range(self.lists_per_query))
        asked = ((key, (query, key)) for query, key in keys)
        number = len(queries) * self.lists_per_query
        for about in answered_items("asking for documents", number, asked, request, context):
            yield self._unit(about, context.llm.model)

    def _num_requests(self, num_records: Mapping[str, int]) -> int | None:
        number = num_records.get(QUERIES)
        return None if number is None else number * self.lists_per_query

    def _chat(self, query: str, *of: object) -> PromptChat:
        return self.all_prompts.chat(query, self.seed, *of)

    def _unit(self, about: AnsweredItem["_Asked"], generator: str) -> Unit:
        query, key = about.item
        drawn = self._chat(query.sentence, key).values.items()
        columns: dict[str, Any] = {
            "method": METHOD,
            "generator": generator,
            "seed": self.seed,
            "source_id": query.id,
            "label": query.label,
            "instruction": "; ".join(text for slot, text in drawn if slot not in _SLOTS),
        }
        levels = self.all_prompts.keys
        grades = tuple(int(level) / (len(levels) - 1) for level in levels)

        def ranking(answer: str) -> Ranking:
            documents = documents_in(answer, levels, query.sentence)
            return Ranking(id=key, query=query.sentence, candidates=documents, grades=grades, **columns)

        return about.unit(ranking, columns)


_Asked = tuple[Sentence, str]
"""A query, and the key of one request for it."""


def _num_sentences(chat: PromptChat) -> float:
    """Return the expected number of sentences of a document.

    This is the first number that begins a text drawn from pools: 3 for "3 sentences". 4 without a number.
    """
    said = [text.split()[0] for slot, text in chat.values.items() if slot not in _SLOTS]
    named = [int(word) for word in said if word.isdecimal()]
    return named[0] if named else _SENTENCES_PER_DOCUMENT
