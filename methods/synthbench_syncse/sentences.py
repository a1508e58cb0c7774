"""New sentences, twenty per request: by genre and topics, by domain, or of any kind."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Expected,
    Failure,
    GenerationContext,
    Record,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
    UserError,
    answered_items,
    estimated_amount,
    sentences_in,
)
from synthbench_syncse.prompts import SHIPPED, SentencePrompts, sentences_of
from synthbench_syncse.requests import SENTENCES_PER_REQUEST, SentenceChats
from synthbench_syncse.settings import (
    WithSeed,
    WithSentences,
    provenance,
)

MISSING = "missing in a list"
SURPLUS = "more than were asked for"
_TOKENS_PER_SENTENCE = 20
_NUM_PRICED = 100


class WithSubject(WithSentences):
    """Settings for the subjects of new sentences: genres with topics, or a domain."""

    genres: tuple[str, ...] | None = Field(
        None, description="names of genres, used in turn. Default: all genres of the prompts"
    )
    domain: str | None = Field(
        None,
        min_length=1,
        description="name of a domain (biomedicine, stack-overflow, or another) instead of genres and topics",
    )

    @field_validator("genres")
    @classmethod
    def _are_known(cls, genres: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        # Faulty prompts have their own error.
        if genres is not None and "prompts" in info.data:
            try:
                sentences_of(SHIPPED.under(info.data["prompts"])).check_genres(genres)
            except UserError as error:
                raise ValueError(str(error)) from None
        return genres

    @model_validator(mode="after")
    def _have_one_subject(self) -> Self:
        given = {"genres": self.genres, "domain": self.domain, "naive": getattr(self, "naive", False)}
        check_subject(sentences_of(self.all_prompts), given)
        return self


class SynCSESentences(WithSubject, WithSeed):
    """Sentences written by an LLM; `label` is the genre, the domain, or "naive"."""

    version = 3
    record_kind = RecordKind.SENTENCE

    naive: bool = Field(False, description="always the same prompt and example, without genres and topics")

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount:
        """Return the expected LLM requests and tokens."""
        chats = self._chats()
        priced = (chats.chat(index).messages for index in range(min(_NUM_PRICED, self._num_requests)))
        return estimated_amount(self._num_requests, priced, SENTENCES_PER_REQUEST * _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most the requested number of sentences."""
        return Expected(self.size)

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if `filters.max_words` counts each sentence in the prompts' language as a word."""
        self.filters.check_words(sentences_of(self.all_prompts).topics)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request."""
        chats = self._chats()

        def request(index: int, _: None) -> Mapping[str, ChatRequest]:
            chat = chats.chat(index)
            return {"": ChatRequest(str(index), chat.messages, self.sentences.parameters(), chat.sample)}

        number = self._num_requests
        lists = ((str(index), None) for index in range(number))
        for about in answered_items("asking for sentences", number, lists, request, context):
            yield self._unit(about.answer, context.llm.model, chats)

    @property
    def _num_requests(self) -> int:
        return -(-self.size // SENTENCES_PER_REQUEST)

    def _chats(self) -> SentenceChats:
        return SentenceChats(
            sentences_of(self.all_prompts), self.seed, self.genres or (), self.domain or "", self.naive
        )

    def _unit(self, answer: ChatAnswer, generator: str, chats: SentenceChats) -> Unit:
        key = answer.request.key
        index = int(key)
        subject = chats.chat(index).name
        columns = {
            **provenance("syncse-sentences", generator, self.seed),
            "label": subject,
            "source_id": key,
            "instruction": subject,
        }
        if answer.text is None:
            failed = Failure(reason=answer.failure, **columns)
            return Unit(key, index, (failed,))
        num_wanted = min(SENTENCES_PER_REQUEST, self.size - index * SENTENCES_PER_REQUEST)
        found = sentences_in(answer.text)
        dropped = Counter({MISSING: num_wanted - len(found), SURPLUS: len(found) - num_wanted})
        records: list[Record] = []
        for sentence, reason in self.filters.filtered(found[:num_wanted]):
            dropped[reason] += bool(reason)
            if not reason:
                records.append(Sentence(sentence=sentence, **columns))
        if not records:
            records = [Failure(reason="no usable sentence", raw_text=answer.text, **columns)]
        return Unit(key, index, tuple(records), +dropped)


def check_subject(prompts: SentencePrompts, given: Mapping[str, object]) -> None:
    """Raise ValueError if `genres`, `domain` and `naive` conflict, or `prompts` has no section for them."""
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} exclude each other")
    if "domain" in chosen and not prompts.domain_prompts:
        raise ValueError("the prompts for sentences have no `domain_prompts`, which a domain needs")
    if "naive" in chosen and prompts.naive is None:
        raise ValueError("the prompts for sentences have no `naive` section, which naive generation needs")
