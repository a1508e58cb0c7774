"""A positive and a hard negative for each sentence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
)
from synthbench_syncse.amounts import amount
from synthbench_syncse.answers import sentence_in
from synthbench_syncse.pool_files import negative_pool, positive_pool
from synthbench_syncse.requests import LabelChats
from synthbench_syncse.settings import WithLabels, pool_path, provenance

POSITIVE = "positive"
NEGATIVE = "negative"
_TOKENS_PER_LABEL = 18
_NUM_PRICED = 200
_TYPICAL = "A sentence as long as those that are usually found in training data."


class Labelling:
    """Asks for both labels of each sentence and makes triplets of them.

    `is_fixed` takes one prompt and its exemplars for all sentences, as in naive generation.
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
        """Tell requests and tokens."""
        priced = [
            chats.chat(str(place), _TYPICAL) for chats in self._chats.values() for place in range(_NUM_PRICED)
        ]
        return amount(2 * num_sentences, priced, _TOKENS_PER_LABEL)

    def units(self, records: Iterable[Record], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each sentence that the filters let through; counts those that they don't."""
        texts = self._usable(records, context)
        places = {text.id: place for place, text in enumerate(texts)}
        generator = context.llm.model
        halves: dict[str, dict[str, ChatAnswer]] = {}
        with context.progress.task("asking for positives and hard negatives", len(texts)) as bar:
            bar.advance(len(context.finished_units))
            for answer in context.chat().answers(self._requests(texts, context)):
                kind, _, text_id = answer.request.key.partition("|")
                answers = halves.setdefault(text_id, {})
                answers[kind] = answer
                if len(answers) == len(self._chats):
                    del halves[text_id]
                    place = places[text_id]
                    yield Unit(text_id, place, *self._outcome(texts[place], answers, generator))
                    bar.advance()

    def _usable(self, records: Iterable[Record], context: GenerationContext) -> Sequence[Sentence]:
        texts = [record for record in records if isinstance(record, Sentence)]
        reasons = [reason for _, reason in self._settings.filters.sifted(text.sentence for text in texts)]
        for reason in filter(None, reasons):
            context.count_dropped(f"sentence: {reason}")
        return [text for text, reason in zip(texts, reasons, strict=True) if not reason]

    def _requests(self, texts: Iterable[Sentence], context: GenerationContext) -> Iterator[ChatRequest]:
        for text in texts:
            if text.id in context.finished_units:
                continue
            for kind, chats in self._chats.items():
                chat = chats.chat(text.id, text.sentence)
                yield ChatRequest(f"{kind}|{text.id}", chat.messages, self._sampling[kind], chat.sample)

    def _outcome(
        self, text: Sentence, answers: Mapping[str, ChatAnswer], generator: str
    ) -> tuple[tuple[Record, ...], Mapping[str, int]]:
        """Return the triplet, or what there was in its place, and what was dropped by reason."""
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
