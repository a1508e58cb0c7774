"""Pairs of a sentence and an LLM's completion of it after masking some words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from synthbench.api import (
    AnsweredItem,
    AnswerError,
    ChatAmount,
    ChatRequest,
    Expected,
    GenerationContext,
    Method,
    PromptChat,
    RecordKind,
    ScoredPair,
    ShippedPrompts,
    SyntheticDataset,
    Unit,
    WithPrompts,
    answered_items,
    check_words,
    drawn_chat,
    estimated_amount,
    hashed_number,
    sentence_in,
    why_unusable,
)
from synthbench_claif.masking import MASK, masked
from synthbench_claif.prompts import FILL, PARAPHRASE, SHIPPED, PairPrompts

SENTENCES = "sentences"
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_SENTENCE_LENGTH = 60
_TOKENS_PER_SENTENCE = 18
_NUM_PRICED = 20


class Filling(WithPrompts[PairPrompts], Method):
    """Settings for masking words of sentences, and for the LLM that fills the masks."""

    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}
    shipped: ClassVar[ShippedPrompts[PairPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "filling masks"
    is_shardable = True

    mask_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        RATES,
        min_length=1,
        description="shares of a sentence's words to mask, one request for each; 0: a paraphrase",
    )
    generations: int = Field(1, ge=1, le=100, description="completions per rate; each masks different words")
    merge: float = Field(0.5, ge=0, le=1, description="probability that consecutive masks become one")
    temperature: float = Field(0.7, ge=0, le=2, description="sampling temperature of the filling LLM")
    top_p: float = Field(0.9, gt=0, le=1, description="top-p of the filling LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the masks, and of the LLM's answers")

    @field_validator("mask_rates")
    @classmethod
    def _are_different(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(rates)) < len(rates):
            raise ValueError(f"each rate once, is {list(rates)}; `generations` asks for several of each")
        return rates

    def prompt_names(self) -> list[str]:
        """Return the names of the prompts that the mask rates need."""
        used = {FILL: any(self.mask_rates), PARAPHRASE: 0 in self.mask_rates}
        return [name for name, is_used in used.items() if is_used]

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if words are to be masked in sentences that have no spaces between words."""
        if any(self.mask_rates):
            remedy = "sentences with spaces between words, or `mask_rates: [0]`"
            check_words(sources[SENTENCES].column("sentence"), "claif", remedy)

    def num_pairs(self, num_records: Mapping[str, int]) -> int | None:
        """Return the number of requested pairs, None if the number of sentences is unknown."""
        number = num_records.get(SENTENCES)
        return None if number is None else number * len(self.mask_rates) * self.generations


class CLAIFPairs(Filling):
    """Pairs made by filling masked sentences; until graded, the score is 1 minus the mask rate."""

    version = 2

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens."""
        number = self.num_pairs(num_records)
        if number is None:
            return None
        priced = (
            _MaskedRequest(str(index), "x" * _SENTENCE_LENGTH, rate, 0)
            for index in range(_NUM_PRICED)
            for rate in self.mask_rates
        )
        chats = (self._chat(request).messages for request in priced)
        return estimated_amount(number, chats, _TOKENS_PER_SENTENCE)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one pair per request."""
        return Expected(self.num_pairs(num_records))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request."""
        requests = list(self._masked_requests(sources[SENTENCES]))
        asked = ((request.key, request) for request in requests)
        for about in answered_items("asking to fill masks", len(requests), asked, self._request, context):
            yield self._unit(about, context.llm.model)

    def _masked_requests(self, sentences: SyntheticDataset) -> Iterator["_MaskedRequest"]:
        rows = zip(sentences.column("id"), sentences.column("sentence"), strict=True)
        for identity, sentence in rows:
            text = " ".join(sentence.split())
            for rate in self.mask_rates:
                for turn in range(self.generations):
                    yield _MaskedRequest(identity, text, rate, turn)

    def _request(self, index: int, request: "_MaskedRequest") -> Mapping[str, ChatRequest]:
        sampling = {"temperature": self.temperature, "top_p": self.top_p}
        sample = hashed_number(*self._of(request), request.rate)
        return {"": ChatRequest(str(index), self._chat(request).messages, sampling, sample)}

    def _of(self, request: "_MaskedRequest") -> tuple[object, ...]:
        return (self.seed, request.source_id, request.turn)

    def _chat(self, request: "_MaskedRequest") -> PromptChat:
        prompts, of = self.all_prompts, self._of(request)
        assert prompts.fill is not None and prompts.paraphrase is not None
        if not request.rate:
            return drawn_chat(prompts.paraphrase, {"sentence": request.sentence}, *of)
        hidden = masked(request.sentence, request.rate, self.merge, *of)
        return drawn_chat(prompts.fill, {"sentence": hidden, "mask": MASK}, *of, request.rate)

    def _unit(self, about: AnsweredItem["_MaskedRequest"], generator: str) -> Unit:
        request = about.item
        columns: dict[str, Any] = {
            "method": "claif-pairs",
            "generator": generator,
            "seed": self.seed,
            "source_id": request.source_id,
            "instruction": f"mask {request.rate:g}" if request.rate else "paraphrase",
        }

        def pair(answer: str) -> ScoredPair:
            filled = sentence_in(answer)
            reason = why_unusable(filled, (request.sentence,)) or ("a mask is left" if MASK in filled else "")
            if reason:
                raise AnswerError(reason)
            score = 1 - request.rate
            return ScoredPair(sentence1=request.sentence, sentence2=filled, score=score, **columns)

        return about.unit(pair, columns)


@dataclass(frozen=True)
class _MaskedRequest:
    """One request: a sentence, the share of words to mask, and its index among the `generations`."""

    source_id: str
    sentence: str
    rate: float
    turn: int

    @property
    def key(self) -> str:
        return f"{self.source_id}/{self.rate:g}/{self.turn}"
