"""The method for queries over two passages: an LLM asks what only both passages together answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Expected,
    Failure,
    GenerationContext,
    Method,
    Pair,
    PromptChat,
    RecordKind,
    Sentence,
    ShippedPrompts,
    SyntheticDataset,
    Unit,
    UserError,
    WithPrompts,
    answered_items,
    drawn_chat,
    estimated_amount,
    hashed_number,
    nearest_by_words,
)
from synthbench_gpl.answers import REPEATED, fault_of, query_in
from synthbench_gpl.method import PASSAGES, TOKENS_PER_QUERY, TYPICAL_PASSAGE, QuerySampling
from synthbench_gpl.prompts import QUERIES_OF_TWO, SHIPPED, QueryPrompts

NAME = "two-passage-queries"
ALONE = "no other passage shares a word"
_NUM_PRICED = 50


class TwoPassageQueries(WithPrompts[QueryPrompts], Method):
    """Queries that need two passages: each passage, and the one nearest to it by BM25.

    A query gives two pairs, one with each passage: both are relevant. The method does not check whether a
    query needs both; `keep-consistent` and `judge` do. For a passage that shares no word with any other, no
    query is written: `queries_per_passage` drops are counted. Copies of a passage are never paired with each
    other.
    """

    version = 3
    record_kind = RecordKind.PAIR
    shipped: ClassVar[ShippedPrompts[QueryPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "queries over two passages"
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {PASSAGES: RecordKind.SENTENCE}

    queries_per_passage: int = Field(
        1, ge=1, le=1000, description="queries to write about each passage and its nearest one"
    )
    sampling: QuerySampling = Field(QuerySampling(), description="sampling of the LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the queries")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the name of the prompt."""
        return (QUERIES_OF_TWO,)

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if there are fewer than two distinct passages."""
        number = len({*sources[PASSAGES].column("sentence")})
        if number < 2:
            raise UserError(f"a query needs two different passages; the source for '{PASSAGES}' has {number}")

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the maximum number of pairs: two for each query."""
        number = num_records.get(PASSAGES)
        return Expected(None if number is None else 2 * number * self.queries_per_passage)

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens."""
        if PASSAGES not in num_records:
            return None
        chats = (self._chat((TYPICAL_PASSAGE,) * 2, index).messages for index in range(_NUM_PRICED))
        return estimated_amount(num_records[PASSAGES] * self.queries_per_passage, chats, TOKENS_PER_QUERY)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per passage: the pairs of its queries, or the failures."""
        passages: list[Sentence] = list(sources[PASSAGES])
        first: dict[str, Sentence] = {}
        for passage in passages:
            first.setdefault(passage.sentence, passage)
        distinct = list(first.values())
        neighbours = nearest_by_words(list(first), 1).indices
        nearest = {
            text: [distinct[index] for index in row] for text, row in zip(first, neighbours, strict=True)
        }
        sampling = self.sampling.model_dump()

        def both(position: int) -> tuple[Sentence, ...]:
            return (passages[position], *nearest[passages[position].sentence])

        def requests(position: int, passage: Sentence) -> Mapping[str, ChatRequest]:
            texts = [each.sentence for each in both(position)]
            keys = (f"{passage.id}|{index}" for index in range(self.queries_per_passage if texts[1:] else 0))
            return {
                key: ChatRequest(
                    key,
                    self._chat(texts, key).messages,
                    sampling,
                    hashed_number(self.seed, NAME, key),
                )
                for key in keys
            }

        named = ((passage.id, passage) for passage in passages)
        for about in answered_items("asking for queries", len(passages), named, requests, context):
            answers = [about.answers[f"{about.key}|{index}"] for index in range(self.queries_per_passage)]
            yield self._unit(both(about.position), about.position, answers, context.llm.model)
        for position, passage in enumerate(passages):
            is_due = context.is_mine(position) and passage.id not in context.finished_units
            if is_due and not nearest[passage.sentence]:
                yield Unit(passage.id, position, (), {ALONE: self.queries_per_passage})

    def _chat(self, texts: Sequence[str], *of: object) -> PromptChat:
        prompts = self.all_prompts.queries_of_two
        assert prompts is not None
        return drawn_chat(prompts, {"passage": texts[0], "second": texts[1]}, self.seed, *of)

    def _unit(
        self, both: Sequence[Sentence], position: int, answers: Sequence[ChatAnswer], generator: str
    ) -> Unit:
        columns: dict[str, Any] = {
            "method": NAME,
            "generator": generator,
            "seed": self.seed,
            "label": both[0].label,
            "instruction": "own prompt" if self.own_prompts([QUERIES_OF_TWO]) else "both passages",
        }
        records: list[Pair | Failure] = []
        dropped: dict[str, int] = {}
        known: set[str] = set()
        for answer in answers:
            query = query_in(answer.text or "")
            faults = (fault_of(query, passage.sentence) for passage in both)
            fault = answer.failure if answer.text is None else next(filter(None, faults), "")
            if fault:
                failed = Failure(reason=fault, raw_text=answer.text or "", source_id=both[0].id, **columns)
                records.append(failed)
            elif query.lower() in known:
                dropped[REPEATED] = dropped.get(REPEATED, 0) + 1
            else:
                known.add(query.lower())
                records += (
                    Pair(anchor=query, positive=passage.sentence, source_id=passage.id, **columns)
                    for passage in both
                )
        return Unit(both[0].id, position, tuple(records), dropped)
