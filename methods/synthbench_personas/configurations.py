"""Step 1: the LLM chooses who would search for a passage, and with what kind of query."""

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
    Need,
    OpenSampling,
    RecordKind,
    Sentence,
    ShippedPrompts,
    SyntheticDataset,
    TrainedModel,
    Unit,
    UserError,
    WithPrompts,
    answered_items,
    drawn,
    estimated_amount,
    hashed_number,
)
from synthbench_personas.answers import DIFFICULTY, PERSONA, TYPE, configuration_in
from synthbench_personas.candidates import nearest_personas
from synthbench_personas.prompts import OF_CONFIGURATIONS, SHIPPED, PersonaPrompts

METHOD = "persona-configurations"
PASSAGES, PERSONAS, ENCODER = "passages", "personas", "encoder"
TYPICAL = "A passage of forty words, as search engines hold them in part. " * 4
_TYPICAL_PERSONA = "a person of one kind who does something that says what they would search for"
_TOKENS_PER_CONFIGURATION = 25


class PersonaSettings(WithPrompts[PersonaPrompts], Method):
    """Settings of both steps: those that determine the configurations."""

    shipped: ClassVar[ShippedPrompts[PersonaPrompts]] = SHIPPED
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {PASSAGES: RecordKind.SENTENCE}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {PERSONAS: RecordKind.SENTENCE}

    queries_per_passage: int = Field(1, ge=1, le=1000, description="queries asked for each passage")
    candidates: int = Field(5, ge=1, le=100, description="number of personas that the LLM chooses from")
    encoder: dict[str, Any] | None = Field(
        None,
        description="the encoder that finds the personas nearest to a passage: settings of the trainer "
        "`none`, such as `base: {model: ...}`; null: draw them at random",
    )
    configuration_sampling: OpenSampling = Field(OpenSampling(), description="sampling of configurations")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if the source of personas has no records."""
        if PERSONAS in sources and not len(sources[PERSONAS]):
            raise UserError(f"the source for '{PERSONAS}' has no records; leave it out for the shipped ones")

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record for each request."""
        return Expected(self._num_requests(num_records))

    def _num_requests(self, num_records: Mapping[str, int]) -> int | None:
        number = num_records.get(PASSAGES)
        return None if number is None else number * self.queries_per_passage


class PersonaConfigurations(PersonaSettings):
    """Passages with a persona, a type and a difficulty that an LLM chose for a query.

    `subset` is the type, `label` the difficulty, `instruction` the persona.
    """

    version = 2
    record_kind = RecordKind.SENTENCE
    asks_for: ClassVar[str] = "configurations"

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of the prompts and lists that step 1 reads."""
        return OF_CONFIGURATIONS

    def needs(self) -> Mapping[str, Need]:
        """Return the encoder that finds personas, if there is one."""
        return {} if self.encoder is None else {ENCODER: TrainedModel("none", self.encoder, (), 0)}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens."""
        number = self._num_requests(num_records)
        if number is None:
            return None
        chat = self.all_prompts.configuration_chat(TYPICAL, (_TYPICAL_PERSONA,) * self.candidates)
        return estimated_amount(number, [chat.messages], _TOKENS_PER_CONFIGURATION)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request: its configuration, or the failure."""
        prompts, sampling = self.all_prompts, self.configuration_sampling.parameters()

        def request(_: int, asked: "_Asked") -> Mapping[str, ChatRequest]:
            passage, key, personas = asked
            chat = prompts.configuration_chat(passage.sentence, personas, self.seed, key)
            return {"": ChatRequest(key, chat.messages, sampling, hashed_number(self.seed, METHOD, key))}

        passages: list[Sentence] = list(sources[PASSAGES])
        number = len(passages) * self.queries_per_passage
        asked = (
            (key, (passage, key, personas))
            for passage, key, personas in self._all(passages, sources, context)
        )
        for about in answered_items("asking for configurations", number, asked, request, context):
            yield self._unit(about, context.llm.model)

    def _all(
        self, passages: list[Sentence], sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator["_Asked"]:
        """Yield passage, key and candidates for each request; candidates are shuffled (position bias)."""
        given = sources.get(PERSONAS)
        personas = self.all_prompts.personas if given is None else given.column("sentence")
        assert personas is not None
        personas = list(dict.fromkeys(personas))
        found: Iterator[tuple[str, ...]]
        if self.encoder is None:
            found = (drawn(personas, self.candidates, self.seed, each.id, "personas") for each in passages)
        else:
            texts = [each.sentence for each in passages]
            found = nearest_personas(texts, personas, self.candidates, context.encoder(ENCODER))
        for passage, candidates in zip(passages, found, strict=True):
            for index in range(self.queries_per_passage):
                key = f"{passage.id}|{index}"
                yield passage, key, drawn(candidates, len(candidates), self.seed, key, "order")

    def _unit(self, about: AnsweredItem["_Asked"], generator: str) -> Unit:
        passage, key, personas = about.item
        columns: dict[str, Any] = {
            "method": METHOD,
            "generator": generator,
            "seed": self.seed,
            "source_id": passage.id,
        }
        prompts = self.all_prompts

        def configuration(answer: str) -> Sentence:
            chosen = configuration_in(answer, personas, prompts.types or {}, prompts.difficulties or {})
            own = {"subset": chosen[TYPE], "label": chosen[DIFFICULTY], "instruction": chosen[PERSONA]}
            return Sentence(id=key, sentence=passage.sentence, **columns | own)

        return about.unit(configuration, columns)


_Asked = tuple[Sentence, str, tuple[str, ...]]
"""A passage, the key of one request for it, and its candidates."""
