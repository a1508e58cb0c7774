"""A positive and a hard negative for each sentence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Failure,
    GenerationContext,
    Record,
    Sentence,
    Triplet,
    Unit,
    sentence_in,
)
from synthbench_syncse.pools import negative_pool, positive_pool
from synthbench_syncse.requests import LabelChats, amount
from synthbench_syncse.settings import WithLabels, pool_path, provenance

POSITIVE = "positive"
NEGATIVE = "negative"
_TOKENS_PER_LABEL = 18
_NUM_PRICED = 200
_TYPICAL = "A sentence as long as those that are usually found in training data."


@dataclass(frozen=True, slots=True)
class _AskedSentence:
    """A sentence with requested labels, and the answers so far."""

    position: int
    text: Sentence
    answers: dict[str, ChatAnswer] = field(default_factory=dict)


class Labelling:
    """Requests a positive and a hard negative for each sentence and makes triplets of them.

    `is_fixed`: all sentences get the same prompt and exemplars, as in naive generation.
    """

    def __init__(self, settings: WithLabels, method: str, *, is_fixed: bool = False) -> None:
        self._settings = settings
        self._method = method
        pools = {
            POSITIVE: positive_pool(pool_path(settings.positive_pool)),
            NEGATIVE: negative_pool(pool_path(settings.negative_pool)),
        }
        self._chats = {kind: LabelChats(pool, kind, settings.seed, is_fixed) for kind, pool in pools.items()}
        self._sampling = {
            POSITIVE: settings.positives.parameters(),
            NEGATIVE: settings.negatives.parameters(),
        }

    def asks(self, num_sentences: int) -> ChatAmount:
        """Return the expected LLM requests and tokens."""
        priced = [
            chats.chat(str(position), _TYPICAL)
            for chats in self._chats.values()
            for position in range(_NUM_PRICED)
        ]
        return amount(2 * num_sentences, priced, _TOKENS_PER_LABEL)

    def units(self, records: Iterable[Record], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence that passes the filters; count the others.

        `records` are read twice, since they may not fit into memory.
        """
        usable = self._usable(records, context)
        generator = context.llm.model
        asked: dict[str, _AskedSentence] = {}
        num_mine = sum(map(context.is_mine, range(sum(usable))))
        with context.progress.task("asking for positives and hard negatives", num_mine) as bar:
            bar.advance(len(context.finished_units))
            texts = compress(_sentences(records), usable)
            for answer in context.chat().answers(self._requests(texts, asked, context)):
                kind, _, text_id = answer.request.key.partition("|")
                about = asked[text_id]
                about.answers[kind] = answer
                if len(about.answers) == len(self._chats):
                    del asked[text_id]
                    yield Unit(text_id, about.position, *self._outcome(about.text, about.answers, generator))
                    bar.advance()

    def _usable(self, records: Iterable[Record], context: GenerationContext) -> bytearray:
        """Return 1 for each sentence that passes the filters, else 0."""
        usable = bytearray()
        for _, reason in self._settings.filters.filtered(text.sentence for text in _sentences(records)):
            usable.append(not reason)
            if reason:
                context.count_dropped(f"sentence: {reason}")
        return usable

    def _requests(
        self, texts: Iterable[Sentence], asked: dict[str, "_AskedSentence"], context: GenerationContext
    ) -> Iterator[ChatRequest]:
        for position, text in enumerate(texts):
            if not context.is_mine(position) or text.id in context.finished_units:
                continue
            asked[text.id] = _AskedSentence(position, text)
            for kind, chats in self._chats.items():
                chat = chats.chat(text.id, text.sentence)
                yield ChatRequest(f"{kind}|{text.id}", chat.messages, self._sampling[kind], chat.sample)

    def _outcome(
        self, text: Sentence, answers: Mapping[str, ChatAnswer], generator: str
    ) -> tuple[tuple[Record, ...], Mapping[str, int]]:
        """Return the triplet or a failure, and the drops by reason."""
        columns: dict[str, Any] = {
            **provenance(self._method, generator, self._settings.seed),
            "label": text.label,
            "source_id": text.id,
            "instruction": " / ".join(
                chats.chat(text.id, text.sentence).instruction for chats in self._chats.values()
            ),
        }
        found: dict[str, str] = {}
        for kind in self._chats:
            answer = answers[kind]
            if answer.text is None:
                return (Failure(reason=f"{kind}: {answer.failure}", **columns),), {}
            sentence = sentence_in(answer.text)
            reason = self._settings.filters.reason(sentence, (text.sentence, *found.values()))
            if reason:
                reason = f"{kind}: {reason}"
                return (Failure(reason=reason, raw_text=answer.text, **columns),), {reason: 1}
            found[kind] = sentence
        return (
            Triplet(anchor=text.sentence, positive=found[POSITIVE], negative=found[NEGATIVE], **columns),
        ), {}


def _sentences(records: Iterable[Record]) -> Iterator[Sentence]:
    return (record for record in records if isinstance(record, Sentence))
