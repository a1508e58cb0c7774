"""Pairs of a sentence and what an LLM makes of it once some of its words are masked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

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
    ScoredPair,
    SyntheticDataset,
    Unit,
    answered_items,
    estimated_amount,
    hashed_number,
    sentence_in,
    why_unusable,
)
from synthbench_claif.masking import MASK, masked

SENTENCES = "sentences"
FILL = (
    "Some words of a sentence are hidden, each as {mask}. Put one or more words in place of every {mask}, so"
    " that a natural new sentence results. Answer with the whole new sentence and nothing else.\n"
    "Sentence: {sentence}"
)
PARAPHRASE = (
    "Write a sentence that means the same as the given one, in other words. Answer with the new sentence and"
    " nothing else.\nSentence: {sentence}"
)
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_SENTENCE_LENGTH = 60
_TOKENS_PER_SENTENCE = 18


class Filling(Component):
    """How sentences are masked and filled."""

    mask_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        RATES,
        min_length=1,
        description="shares of a sentence's words that are masked, a request each; 0: a paraphrase",
    )
    generations: int = Field(1, ge=1, le=100, description="sentences for each rate, with other words masked")
    merge: float = Field(0.5, ge=0, le=1, description="chance that masks in a row become one")
    temperature: float = Field(0.7, ge=0, le=2, description="of the LLM when it fills, as the API has it")
    top_p: float = Field(0.9, gt=0, le=1, description="of the LLM when it fills, as the API has it")
    seed: int = Field(0, ge=0, lt=2**32, description="of the masks, and of the LLM's answers")

    @field_validator("mask_rates")
    @classmethod
    def _are_different(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(rates)) < len(rates):
            raise ValueError(f"each rate once, is {list(rates)}; `generations` asks for several of each")
        return rates

    def table_notes(self) -> tuple[str, ...]:
        """Say whose prompts were used."""
        return ("Prompts that fill masks: reconstructed prompts, in our own words.",)

    def num_pairs(self, num_records: Mapping[str, int]) -> int | None:
        """Return how many pairs are asked for, None if the number of sentences is unknown."""
        number = num_records.get(SENTENCES)
        return None if number is None else number * len(self.mask_rates) * self.generations


class CLAIFPairs(Filling, Method):
    """Pairs by filling masked sentences; the score is the share of words that stayed, until it is graded."""

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    uses_llm = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}

    def can_be_sharded(self) -> bool:
        """Requests do not depend on each other."""
        return True

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return requests and tokens."""
        number = self.num_pairs(num_records)
        if number is None:
            return None
        typical = ({"content": FILL + "x" * _SENTENCE_LENGTH},)
        return estimated_amount(number, [typical], _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return at most one pair for each request."""
        return Expected(self.num_pairs(num_records))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request."""
        pieces = list(self._pieces(sources[SENTENCES]))
        asked = ((piece.key, piece) for piece in pieces)
        for about in answered_items("asking to fill masks", len(pieces), asked, self._request, context):
            yield self._unit(about.position, about.item, about.answer, context.llm.model)

    def _pieces(self, sentences: SyntheticDataset) -> Iterator["_Piece"]:
        rows = zip(sentences.column("id"), sentences.column("sentence"), strict=True)
        for identity, sentence in rows:
            text = " ".join(sentence.split())
            for rate in self.mask_rates:
                for turn in range(self.generations):
                    yield _Piece(identity, text, rate, turn)

    def _request(self, index: int, piece: "_Piece") -> Mapping[str, ChatRequest]:
        of = (self.seed, piece.source_id, piece.turn)
        if piece.rate:
            hidden = masked(piece.sentence, piece.rate, self.merge, *of)
            content = FILL.replace("{mask}", MASK).replace("{sentence}", hidden)
        else:
            content = PARAPHRASE.replace("{sentence}", piece.sentence)
        sampling = {"temperature": self.temperature, "top_p": self.top_p}
        messages = ({"role": "user", "content": content},)
        return {"": ChatRequest(str(index), messages, sampling, hashed_number(*of, piece.rate))}

    def _unit(self, index: int, piece: "_Piece", answer: ChatAnswer, generator: str) -> Unit:
        columns: dict[str, Any] = {
            "method": "claif-pairs",
            "generator": generator,
            "seed": self.seed,
            "source_id": piece.source_id,
            "instruction": f"mask {piece.rate:g}" if piece.rate else "paraphrase",
        }
        if answer.text is None:
            return Unit(piece.key, index, (Failure(reason=answer.failure, **columns),))
        filled = sentence_in(answer.text)
        reason = _reason(filled, piece.sentence)
        if reason:
            failed = Failure(reason=reason, raw_text=answer.text, **columns)
            return Unit(piece.key, index, (failed,), {reason: 1})
        pair = ScoredPair(sentence1=piece.sentence, sentence2=filled, score=1 - piece.rate, **columns)
        return Unit(piece.key, index, (pair,))


@dataclass(frozen=True)
class _Piece:
    """One request: a sentence, the share of its words that is masked, and the number of the try."""

    source_id: str
    sentence: str
    rate: float
    turn: int

    @property
    def key(self) -> str:
        return f"{self.source_id}/{self.rate:g}/{self.turn}"


def _reason(filled: str, sentence: str) -> str:
    """Return why an answer is dropped, "" if it is not."""
    return why_unusable(filled, (sentence,)) or ("a mask is left" if MASK in filled else "")
