"""Stage 1: for each sentence an entailed and a contradicting one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from synthbench.api import (
    EXEMPLARS,
    ChatAmount,
    ChatRequest,
    Exemplar,
    Expected,
    GenerationContext,
    PromptChat,
    RecordKind,
    Seq2SeqLanguageModel,
    Seq2SeqModel,
    ShippedPrompts,
    SyntheticDataset,
    Unit,
    WithExemplars,
    WithPrompts,
    added_field,
    answered_items,
    drawn_chat,
    estimated_amount,
    hashed_number,
    why_unusable,
    written_items,
    written_triplet,
)
from synthbench_multicsr.prompts import KINDS, POSITIVE, SHIPPED, TripletPrompts

SENTENCES = "sentences"
_SENTENCE_LENGTH = 60
_TOKENS_PER_SENTENCE = 18
_CHARACTERS_PER_TOKEN = 4.5
_NUM_PRICED = 20
OF_THE_LLM = {"temperature", "top_p"}
"""The LLM's settings; for a sequence-to-sequence model, the section `seq2seq` has such settings."""
AT_ONCE = 64
"""Texts that a sequence-to-sequence model writes at once."""
_Answer = tuple[str | None, str]
"""The written text, or None and the reason."""
_Chats = Callable[[str, str, str], PromptChat]
"""Returns the request of a kind for a sentence, given as id and text."""


class TripletWriting(WithPrompts[TripletPrompts], WithExemplars):
    """Settings for writing positives and hard negatives."""

    record_kind = RecordKind.TRIPLET
    shipped: ClassVar[ShippedPrompts[TripletPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "positives and hard negatives"
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {EXEMPLARS: RecordKind.TRIPLET}

    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature of the writing LLM")
    top_p: float = Field(0.9, gt=0, le=1, description="top-p of the writing LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the written texts")
    seq2seq: Seq2SeqLanguageModel | None = added_field(
        None,
        description="write by this model instead of the LLM: an encoder-decoder model that follows "
        "instructions, such as the paper's Flan-T5",
    )

    @model_validator(mode="after")
    def _settings_are_the_writers(self) -> Self:
        unused = sorted(OF_THE_LLM & self.model_fields_set) if self.seq2seq else []
        if unused:
            raise ValueError(f"{unused[0]} is the LLM's; with `seq2seq` leave it out (seq2seq.top_p ...)")
        return self

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of both prompts."""
        return KINDS


class MultiCSRTriplets(TripletWriting):
    """Stage 1 of MultiCSR: for each sentence an entailed and a contradicting one, by an LLM or `seq2seq`."""

    version = 2

    def needs_llm(self) -> bool:
        """Return whether an LLM writes, not `seq2seq`."""
        return self.seq2seq is None

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash or commit of the sequence-to-sequence model, if there is one."""
        return {} if self.seq2seq is None else self.seq2seq.fingerprint()

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests, two for each sentence, and tokens; None without the LLM."""
        if SENTENCES not in num_records or self.seq2seq is not None:
            return None
        number = 2 * num_records[SENTENCES]
        return estimated_amount(number, (chat.messages for chat in self._typical()), _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size, at most one triplet per sentence, and the computation of `seq2seq`."""
        number = num_records.get(SENTENCES)
        if number is None or self.seq2seq is None:
            return Expected(number)
        length = max(len(chat.text) for chat in self._typical())
        tokens = round(length / _CHARACTERS_PER_TOKEN)
        work = self.seq2seq.work(2 * number, tokens, 1, _TOKENS_PER_SENTENCE)
        return Expected(number, work, 2 * number * _TOKENS_PER_SENTENCE)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence."""
        ids = sources[SENTENCES].column("id")
        texts = [" ".join(text.split()) for text in sources[SENTENCES].column("sentence")]
        exemplars = {
            kind: self.source_exemplars(sources, self.seed, {"sentence": "anchor", "answer": kind})
            for kind in KINDS
        }

        def chats(kind: str, key: str, text: str) -> PromptChat:
            return self._chat(kind, text, exemplars[kind], key)

        if self.seq2seq is None:
            return self._asked(ids, texts, chats, context)
        return self._written(ids, texts, chats, self.seq2seq, context)

    def _chat(
        self, kind: str, sentence: str, exemplars: Sequence[Exemplar] | None, *of: object
    ) -> PromptChat:
        prompts = self.all_prompts
        chosen = prompts.positive if kind == POSITIVE else prompts.negative
        assert chosen is not None
        return drawn_chat(chosen, {"sentence": sentence}, self.seed, kind, *of, exemplars=exemplars)

    def _typical(self) -> Iterator[PromptChat]:
        """Yield requests with texts of a usual length, for estimates."""
        text = "x" * _SENTENCE_LENGTH
        shown = [{"sentence": text, "answer": text}] * (self.num_exemplars or 0)
        for kind in KINDS:
            for index in range(_NUM_PRICED):
                yield self._chat(kind, text, shown or None, index)

    def _written(
        self,
        ids: list[str],
        texts: list[str],
        chats: _Chats,
        writer: Seq2SeqLanguageModel,
        context: GenerationContext,
    ) -> Iterator[Unit]:
        def write(batch: Sequence[int], model: Seq2SeqModel) -> Iterator[dict[str, _Answer]]:
            of_kinds = [
                self._texts(kind, [(ids[index], texts[index]) for index in batch], chats, model)
                for kind in KINDS
            ]
            return (dict(zip(KINDS, answers, strict=True)) for answers in zip(*of_kinds, strict=True))

        text_of = dict(zip(ids, texts, strict=True))
        for index, answers in written_items(
            "writing positives and negatives", text_of, AT_ONCE, writer, context, write
        ):
            yield self._unit(index, ids[index], texts[index], answers, writer.model)

    def _texts(
        self, kind: str, batch: Sequence[tuple[str, str]], chats: _Chats, model: Seq2SeqModel
    ) -> list[_Answer]:
        prompts = [chats(kind, key, text).text for key, text in batch]
        keys = [[f"{kind}|{key}"] for key, _ in batch]
        return [(text, "") for (text,) in model.texts(prompts, keys, self.seed)]

    def _asked(
        self, ids: list[str], texts: list[str], chats: _Chats, context: GenerationContext
    ) -> Iterator[Unit]:
        sampling = {"temperature": self.temperature, "top_p": self.top_p}

        def requests(index: int, item: tuple[str, str]) -> Mapping[str, ChatRequest]:
            key, text = item
            return {
                kind: ChatRequest(
                    f"{kind}|{index}",
                    chats(kind, key, text).messages,
                    sampling,
                    hashed_number(self.seed, kind, key),
                )
                for kind in KINDS
            }

        title, items = "asking for positives and negatives", zip(ids, texts, strict=True)
        named = ((key, (key, text)) for key, text in items)
        for about in answered_items(title, len(ids), named, requests, context):
            answers = {kind: (answer.text, answer.failure) for kind, answer in about.answers.items()}
            yield self._unit(about.position, about.key, about.item[1], answers, context.llm.model)

    def _unit(
        self, index: int, identity: str, sentence: str, answers: Mapping[str, _Answer], generator: str
    ) -> Unit:
        columns: dict[str, Any] = {
            "method": "multicsr-triplets",
            "generator": generator,
            "seed": self.seed,
            "source_id": identity,
        }
        return Unit(identity, index, *written_triplet(sentence, answers, why_unusable, columns))
