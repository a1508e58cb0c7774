"""Step 2: the LLM writes the query of each configuration."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from synthbench.api import (
    AnsweredItem,
    ChatAmount,
    ChatRequest,
    GeneratedData,
    GenerationContext,
    Need,
    OpenSampling,
    Pair,
    PromptChat,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
    answered_items,
    estimated_amount,
    hashed_number,
)
from synthbench_personas.answers import DIFFICULTY, PERSONA, TYPE, query_in
from synthbench_personas.configurations import METHOD as CONFIGURATIONS_METHOD
from synthbench_personas.configurations import (
    PASSAGES,
    PERSONAS,
    TYPICAL,
    PersonaConfigurations,
    PersonaSettings,
)
from synthbench_personas.prompts import OF_CONFIGURATIONS, QUERY

METHOD = "persona-queries"
CONFIGURATIONS = "configurations"
_NUM_PRICED = 50
_TYPICAL_PERSONA = "a person of one kind who does something"
_TOKENS_PER_WORD, _TOKENS_OF_JSON, _WORDS_PER_QUERY = 1.4, 8, 15
_SLOTS = {"passage", PERSONA, TYPE, DIFFICULTY}


class PersonaQueries(PersonaSettings):
    """Queries with which a chosen persona would search for a passage; a pair is a query and its passage.

    `subset` is the type, `label` the difficulty, `instruction` the persona and the texts drawn from pools.
    """

    version = 2
    record_kind = RecordKind.PAIR
    asks_for: ClassVar[str] = "queries of personas"

    query_sampling: OpenSampling = Field(OpenSampling(), description="sampling of queries")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of the prompts and lists of both steps."""
        return (*OF_CONFIGURATIONS, QUERY)

    def needs(self) -> Mapping[str, Need]:
        """Return the data set of configurations, shared by rows that differ only in prompts for queries."""
        settings = self.model_dump(
            mode="json", include=set(PersonaConfigurations.model_fields) - {"prompts"}, exclude_none=True
        )
        settings |= self.own_prompts(OF_CONFIGURATIONS)
        roles = {role: role for role in (PASSAGES, PERSONAS)}
        return {CONFIGURATIONS: GeneratedData(CONFIGURATIONS_METHOD, settings, roles)}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the LLM requests and tokens of step 2; `persona-configurations` counts those of step 1."""
        number = num_records.get(CONFIGURATIONS, self._num_requests(num_records))
        if number is None:
            return None
        prompts = self.all_prompts
        assert prompts.types is not None and prompts.difficulties is not None
        typical = {
            PERSONA: _TYPICAL_PERSONA,
            TYPE: next(iter(prompts.types)),
            DIFFICULTY: next(iter(prompts.difficulties)),
        }
        chats = [prompts.query_chat(TYPICAL, typical, index) for index in range(_NUM_PRICED)]
        tokens = sum(_num_words(chat) for chat in chats) / _NUM_PRICED * _TOKENS_PER_WORD + _TOKENS_OF_JSON
        return estimated_amount(number, [chat.messages for chat in chats], round(tokens))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each configuration: its query, or the failure."""
        sampling = self.query_sampling.parameters()

        def request(_: int, of: Sentence) -> Mapping[str, ChatRequest]:
            sample = hashed_number(self.seed, METHOD, of.id)
            return {"": ChatRequest(of.id, self._chat(of).messages, sampling, sample)}

        records = context.records(CONFIGURATIONS)
        asked = ((record.id, record) for record in records if isinstance(record, Sentence))
        for about in answered_items("asking for queries", len(records), asked, request, context):
            yield self._unit(about, context.llm.model)

    def _chat(self, of: Sentence) -> PromptChat:
        chosen = {PERSONA: of.instruction, TYPE: of.subset, DIFFICULTY: of.label}
        return self.all_prompts.query_chat(of.sentence, chosen, self.seed, of.id)

    def _unit(self, about: AnsweredItem[Sentence], generator: str) -> Unit:
        of = about.item
        columns: dict[str, Any] = {
            "method": METHOD,
            "generator": generator,
            "seed": self.seed,
            "source_id": of.source_id,
            "subset": of.subset,
            "label": of.label,
            "instruction": "; ".join((of.instruction, *_of_pools(self._chat(of)))),
        }

        def pair(answer: str) -> Pair:
            return Pair(anchor=query_in(answer, of.sentence), positive=of.sentence, **columns)

        return about.unit(pair, columns)


def _of_pools(chat: PromptChat) -> list[str]:
    return [text for slot, text in chat.values.items() if slot not in _SLOTS]


def _num_words(chat: PromptChat) -> float:
    """Return the expected number of words of a query.

    This is the mean of the numbers in texts drawn from pools: 10 for "5 to 15 words". 15 without numbers.
    """
    found = [
        int(word) for text in _of_pools(chat) for word in text.replace(",", "").split() if word.isdecimal()
    ]
    return sum(found) / len(found) if found else _WORDS_PER_QUERY
