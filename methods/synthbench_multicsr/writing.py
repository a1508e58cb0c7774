"""Stage 1: for each sentence one that follows from it, and one that contradicts it."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Component,
    Expected,
    Failure,
    GenerationContext,
    Method,
    RecordKind,
    SyntheticDataset,
    Triplet,
    Unit,
    estimated_amount,
    hashed_number,
    sentence_in,
    why_unusable,
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


class Writing(Component):
    """How positives and hard negatives are requested."""

    temperature: float = Field(1.0, ge=0, le=2, description="of the LLM when it writes, as the API has it")
    top_p: float = Field(0.9, gt=0, le=1, description="of the LLM when it writes, as the API has it")
    seed: int = Field(0, ge=0, lt=2**32, description="of the LLM's answers")

    def table_notes(self) -> tuple[str, ...]:
        """Say whose prompts were used."""
        return ("Prompts for positives and hard negatives: reconstructed prompts, in our own words.",)


class MultiCSRTriplets(Writing, Method):
    """Stage 1 of MultiCSR: sentences with an entailed and a contradicting one that the LLM writes."""

    version = 1
    record_kind = RecordKind.TRIPLET
    uses_llm = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}

    def can_be_sharded(self) -> bool:
        """Sentences do not depend on each other."""
        return True

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return requests and tokens: two for each sentence."""
        if SENTENCES not in num_records:
            return None
        number = 2 * num_records[SENTENCES]
        chats = [_messages(kind, "x" * _SENTENCE_LENGTH) for kind in INSTRUCTIONS]
        return estimated_amount(number, chats, _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return at most one triplet for each sentence."""
        return Expected(num_records.get(SENTENCES))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each sentence."""
        ids, texts = sources[SENTENCES].column("id"), sources[SENTENCES].column("sentence")
        waiting: dict[int, dict[str, ChatAnswer]] = {}
        with context.progress.task(
            "asking for positives and negatives", sum(map(context.is_mine, range(len(ids))))
        ) as bar:
            bar.advance(len(context.finished_units))
            due = (
                index
                for index, key in enumerate(ids)
                if context.is_mine(index) and key not in context.finished_units
            )
            requests = (self._request(index, kind, ids, texts) for index in due for kind in INSTRUCTIONS)
            for answer in context.chat().answers(requests):
                kind, _, number = answer.request.key.partition("|")
                found = waiting.setdefault(int(number), {})
                found[kind] = answer
                if len(found) == len(INSTRUCTIONS):
                    index = int(number)
                    del waiting[index]
                    yield self._unit(
                        index, ids[index], " ".join(texts[index].split()), found, context.llm.model
                    )
                    bar.advance()

    def _request(self, index: int, kind: str, ids: list[str], texts: list[str]) -> ChatRequest:
        sample = hashed_number(self.seed, kind, ids[index])
        sampling = {"temperature": self.temperature, "top_p": self.top_p}
        return ChatRequest(
            f"{kind}|{index}", _messages(kind, " ".join(texts[index].split())), sampling, sample
        )

    def _unit(
        self, index: int, identity: str, sentence: str, answers: Mapping[str, ChatAnswer], generator: str
    ) -> Unit:
        columns: dict[str, Any] = {
            "method": "multicsr-triplets",
            "generator": generator,
            "seed": self.seed,
            "source_id": identity,
        }
        found: dict[str, str] = {}
        for kind in INSTRUCTIONS:
            text = answers[kind].text
            if text is None:
                return Unit(identity, index, (Failure(reason=f"{kind}: {answers[kind].failure}", **columns),))
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
