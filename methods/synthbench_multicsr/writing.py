"""Stage 1: for each sentence an entailed and a contradicting one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from synthbench.api import (
    ChatAmount,
    ChatRequest,
    Component,
    Expected,
    Failure,
    GenerationContext,
    Method,
    RecordKind,
    Seq2SeqLanguageModel,
    Seq2SeqModel,
    SyntheticDataset,
    Triplet,
    Unit,
    answered_items,
    estimated_amount,
    hashed_number,
    sentence_in,
    why_unusable,
    written_items,
)

SENTENCES = "sentences"
POSITIVE, NEGATIVE = "positive", "negative"
INSTRUCTIONS = {
    POSITIVE: "Write a sentence that must be true if the given one is true. Answer with that sentence alone.",
    NEGATIVE: "Write a sentence that contradicts the given sentence. Answer with that sentence alone.",
}
EXEMPLARS = {
    POSITIVE: (
        ("Two boys in raincoats jump over a puddle.", "Some children leap across the water on the ground."),
        (
            "The library will stay closed until the roof is mended.",
            "Nobody can use the library before its roof is repaired.",
        ),
    ),
    NEGATIVE: (
        ("Two boys in raincoats jump over a puddle.", "Two boys in raincoats stand still beside a puddle."),
        (
            "The library will stay closed until the roof is mended.",
            "The library stays open while the roof is mended.",
        ),
    ),
}
_SENTENCE_LENGTH = 60
_TOKENS_PER_SENTENCE = 18
_CHARACTERS_PER_TOKEN = 4.5
OF_THE_LLM = {"temperature", "top_p"}
"""Settings of the LLM that a sequence-to-sequence model has in its own section."""
AT_ONCE = 64
"""Texts that a sequence-to-sequence model writes at once."""
_Answer = tuple[str | None, str]
"""The written text, or None and the reason."""


class TripletWriting(Component):
    """Settings for writing positives and hard negatives."""

    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature of the writing LLM")
    top_p: float = Field(0.9, gt=0, le=1, description="top-p of the writing LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the written texts")
    seq2seq: Seq2SeqLanguageModel | None = Field(
        None,
        exclude_if=lambda model: model is None,
        description="write by this model instead of the LLM: an encoder-decoder model that follows "
        "instructions, such as the paper's Flan-T5",
    )

    @model_validator(mode="after")
    def _settings_are_the_writers(self) -> Self:
        unused = sorted(OF_THE_LLM & self.model_fields_set) if self.seq2seq else []
        if unused:
            raise ValueError(f"{unused[0]} is the LLM's; with `seq2seq` leave it out (seq2seq.top_p ...)")
        return self

    def table_notes(self) -> tuple[str, ...]:
        """Return a note on the origin of the prompts."""
        return ("Prompts for positives and hard negatives: reconstructed prompts, in our own words.",)


class MultiCSRTriplets(TripletWriting, Method):
    """Stage 1 of MultiCSR: sentences with an entailed and a contradicting one, written by the LLM."""

    version = 1
    record_kind = RecordKind.TRIPLET
    uses_llm = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}

    def needs_llm(self) -> bool:
        """Return whether an LLM writes."""
        return self.seq2seq is None

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash or commit of the sequence-to-sequence model, if there is one."""
        return {} if self.seq2seq is None else self.seq2seq.fingerprint()

    def can_be_sharded(self) -> bool:
        """True: sentences are independent."""
        return True

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return requests and tokens: two for each sentence; None without the LLM."""
        if SENTENCES not in num_records or self.seq2seq is not None:
            return None
        number = 2 * num_records[SENTENCES]
        chats = [_messages(kind, "x" * _SENTENCE_LENGTH) for kind in INSTRUCTIONS]
        return estimated_amount(number, chats, _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return at most one triplet per sentence, and the work of a sequence-to-sequence model."""
        number = num_records.get(SENTENCES)
        if number is None or self.seq2seq is None:
            return Expected(number)
        length = max(len(_prompt(kind, "x" * _SENTENCE_LENGTH)) for kind in INSTRUCTIONS)
        tokens = round(length / _CHARACTERS_PER_TOKEN)
        work = self.seq2seq.work(2 * number, tokens, 1, _TOKENS_PER_SENTENCE)
        return Expected(number, work, 2 * number * _TOKENS_PER_SENTENCE)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence."""
        ids = sources[SENTENCES].column("id")
        texts = [" ".join(text.split()) for text in sources[SENTENCES].column("sentence")]
        if self.seq2seq is None:
            return self._asked(ids, texts, context)
        return self._written(ids, texts, self.seq2seq, context)

    def _written(
        self, ids: list[str], texts: list[str], writer: Seq2SeqLanguageModel, context: GenerationContext
    ) -> Iterator[Unit]:
        def write(batch: Sequence[int], model: Seq2SeqModel) -> Iterator[dict[str, _Answer]]:
            of_kinds = [
                self._texts(kind, [(ids[index], texts[index]) for index in batch], model)
                for kind in INSTRUCTIONS
            ]
            return (dict(zip(INSTRUCTIONS, answers, strict=True)) for answers in zip(*of_kinds, strict=True))

        text_of = dict(zip(ids, texts, strict=True))
        for index, answers in written_items(
            "writing positives and negatives", text_of, AT_ONCE, writer, context, write
        ):
            yield self._unit(index, ids[index], texts[index], answers, writer.model)

    def _texts(self, kind: str, batch: Sequence[tuple[str, str]], model: Seq2SeqModel) -> list[_Answer]:
        prompts, keys = [_prompt(kind, text) for _, text in batch], [[f"{kind}|{key}"] for key, _ in batch]
        return [(text, "") for (text,) in model.texts(prompts, keys, self.seed)]

    def _asked(self, ids: list[str], texts: list[str], context: GenerationContext) -> Iterator[Unit]:
        title, items = "asking for positives and negatives", zip(ids, texts, strict=True)
        named = ((key, (key, text)) for key, text in items)
        for about in answered_items(title, len(ids), named, self._requests, context):
            answers = {kind: (answer.text, answer.failure) for kind, answer in about.answers.items()}
            yield self._unit(about.position, about.key, about.item[1], answers, context.llm.model)

    def _requests(self, index: int, item: tuple[str, str]) -> Mapping[str, ChatRequest]:
        (key, text), sampling = item, {"temperature": self.temperature, "top_p": self.top_p}
        return {
            kind: ChatRequest(
                f"{kind}|{index}", _messages(kind, text), sampling, hashed_number(self.seed, kind, key)
            )
            for kind in INSTRUCTIONS
        }

    def _unit(
        self, index: int, identity: str, sentence: str, answers: "Mapping[str, _Answer]", generator: str
    ) -> Unit:
        columns: dict[str, Any] = {
            "method": "multicsr-triplets",
            "generator": generator,
            "seed": self.seed,
            "source_id": identity,
        }
        found: dict[str, str] = {}
        for kind in INSTRUCTIONS:
            text, failure = answers[kind]
            if text is None:
                return Unit(identity, index, (Failure(reason=f"{kind}: {failure}", **columns),))
            written = sentence_in(text)
            reason = why_unusable(written, (sentence, *found.values()))
            if reason:
                failed = Failure(reason=f"{kind}: {reason}", raw_text=text, **columns)
                return Unit(identity, index, (failed,), {f"{kind}: {reason}": 1})
            found[kind] = written
        return Unit(
            identity,
            index,
            (Triplet(anchor=sentence, positive=found[POSITIVE], negative=found[NEGATIVE], **columns),),
        )


def _messages(kind: str, sentence: str) -> tuple[dict[str, str], ...]:
    """Return the instruction, two exemplars as turns, and the sentence."""
    turns = [
        message
        for given, answer in EXEMPLARS[kind]
        for message in (
            {"role": "user", "content": f"Input: {given}"},
            {"role": "assistant", "content": answer},
        )
    ]
    return (
        {"role": "system", "content": INSTRUCTIONS[kind]},
        *turns,
        {"role": "user", "content": f"Input: {sentence}"},
    )


def _prompt(kind: str, sentence: str) -> str:
    """Return the messages as one text, for a model without turns."""
    shown = [f"Input: {given} Output: {answer}" for given, answer in EXEMPLARS[kind]]
    return " ".join((INSTRUCTIONS[kind], *shown, f"Input: {sentence} Output:"))
