"""The step in which an LLM writes hard negatives."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from pydantic import Field

from synthbench.data.answer_kinds import kind_in
from synthbench.data.records import Record
from synthbench.llm.answered import passage_in, why_unusable
from synthbench.llm.asking import OpenSampling, estimated_amount, hashed_number
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.plugins.contracts import Records, StepContext
from synthbench.plugins.prompt_settings import ShippedPrompts, WithPrompts
from synthbench.plugins.prompts import Prompt, PromptFile, Prompts, drawn_chat, replaceable_prompts
from synthbench.preparing.mining import TripletStep, with_negatives

NEGATIVE = "negative"
_Pair = tuple[str, str]
"""An anchor and its positive."""
_TYPICAL: _Pair = (
    "what is the passage about?",
    "A passage of about fifty words, as those of MS MARCO are. " * 5,
)
_TOKENS_PER_PASSAGE = 60


class NegativePrompt(Prompt):
    """Asks for a passage that does not answer {query}; {passage} is a passage that answers it."""

    slots: ClassVar[tuple[str, ...]] = ("query",)
    optional_slots: ClassVar[tuple[str, ...]] = ("passage",)
    takes_exemplars: ClassVar[bool] = False


class NegativePrompts(PromptFile):
    """The prompts of `write-negatives`."""

    negative: Prompts[NegativePrompt] | None = replaceable_prompts(
        "ask for a passage that does not answer {query}; {passage}, which answers it, may be left out"
    )


class WriteNegatives(WithPrompts[NegativePrompts], TripletStep):
    """Add hard negatives to each pair: passages that an LLM writes for the pair's anchor and positive.

    Pairs become triplets, with further negatives if `number` is more than 1. In triplets, new negatives
    replace the old ones, or are added to them (`add`). A record without any usable new negative is dropped,
    and counted under the reason why its first negative is unusable.
    """

    version = 2
    after_answers = frozenset({"add"})
    shipped: ClassVar[ShippedPrompts[NegativePrompts]] = ShippedPrompts(
        "synthbench.preparing",
        NegativePrompts,
        {NEGATIVE: "ce48aaedfb3eaab9b4e02cdbe8b0fca184428c6287e5b2dd5b4a9e1c2c001d03"},
    )
    asks_for: ClassVar[str] = "hard negatives"

    number: int = Field(1, ge=1, le=16, description="number of negatives per record; each takes one request")
    add: bool = Field(
        False,
        description="for triplets: true adds the new negatives to the triplet's old ones, such as mined ones;"
        " false replaces the old ones",
    )
    sampling: OpenSampling = Field(OpenSampling(), description="sampling of the LLM")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the LLM's answers")

    def prompt_names(self) -> tuple[str, ...]:
        """Return the name of the prompt."""
        return (NEGATIVE,)

    def asks(self, num_records: int) -> ChatAmount:
        """Return the expected requests and tokens: `number` requests for each record."""
        request = self._request(_TYPICAL, 0, "")
        return estimated_amount(num_records * self.number, [request.messages], _TOKENS_PER_PASSAGE)

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield triplets, in the order of the records."""
        pairs = sorted(set(records.rows_of("anchor", "positive")))
        written, faults = self._written(pairs, context)
        dropped: Counter[str] = Counter()
        for one in records:
            negatives = written[one.anchor, one.positive]
            if negatives:
                yield with_negatives(one, negatives, is_added=self.add)
            else:
                dropped[faults[one.anchor, one.positive]] += 1
        for reason, number in dropped.items():
            context.count_dropped(reason, number)
        lacking = sum(self.number - len(negatives) for negatives in written.values())
        context.measure("write-negatives: negatives fewer than asked for", lacking)

    def _written(
        self, pairs: Sequence[_Pair], context: StepContext
    ) -> tuple[dict[_Pair, list[str]], dict[_Pair, str]]:
        """Return pair -> its distinct usable negatives, and pair -> its first unusable answer's fault."""
        answers: dict[int, ChatAnswer] = {}
        total = len(pairs) * self.number
        with context.progress.task("asking for hard negatives", total) as bar:
            for answer in context.llm.answers(self._requests(pairs)):
                answers[int(answer.request.key)] = answer
                bar.advance(1)
        written: dict[_Pair, list[str]] = defaultdict(list)
        faults: dict[_Pair, str] = {}
        for place in range(total):
            pair, answer = pairs[place // self.number], answers.pop(place)
            text = passage_in(answer.text or "")
            fault = kind_in(answer.failure) or "no answer" if answer.text is None else ""
            fault = fault or why_unusable(text, (*pair, *written[pair]))
            if fault:
                faults.setdefault(pair, fault)
            else:
                written[pair].append(text)
        return written, faults

    def _requests(self, pairs: Sequence[_Pair]) -> Iterator[ChatRequest]:
        for row, pair in enumerate(pairs):
            for index in range(self.number):
                yield self._request(pair, index, str(row * self.number + index))

    def _request(self, pair: _Pair, index: int, key: str) -> ChatRequest:
        prompts = self.all_prompts.negative
        assert prompts is not None
        query, passage = pair
        chat = drawn_chat(prompts, {"query": query, "passage": passage}, self.seed, *pair, index)
        return ChatRequest(
            key, chat.messages, self.sampling.parameters(), hashed_number(self.seed, NEGATIVE, index)
        )
