"""A positive and a hard negative for each sentence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

from synthbench.api import (
    AnsweredItem,
    ChatAmount,
    ChatRequest,
    Exemplar,
    GenerationContext,
    Record,
    Sentence,
    Unit,
    answered_items,
    estimated_amount,
    written_triplet,
)
from synthbench_syncse.prompts import LABELS, NEGATIVE, POSITIVE, labels_of
from synthbench_syncse.requests import LabelChats
from synthbench_syncse.settings import WithLabels, provenance

_TOKENS_PER_LABEL = 18
_NUM_PRICED = 200
_TYPICAL = "A sentence as long as those that are usually found in training data."


class Labelling:
    """Requests a positive and a hard negative for each sentence and makes triplets of them.

    `is_fixed`: all sentences get the same prompt and exemplars, as in naive generation. `exemplars`, by kind,
    replace the prompts' own.
    """

    def __init__(
        self,
        settings: WithLabels,
        method: str,
        *,
        is_fixed: bool = False,
        exemplars: Mapping[str, Sequence[Exemplar] | None] | None = None,
    ) -> None:
        self._settings = settings
        self._method = method
        self._chats = {
            kind: LabelChats(
                labels_of(settings.all_prompts, kind),
                kind,
                settings.seed,
                is_fixed,
                None if exemplars is None else exemplars[kind],
            )
            for kind in LABELS
        }
        self._sampling = {
            POSITIVE: settings.positives.parameters(),
            NEGATIVE: settings.negatives.parameters(),
        }

    def asks(self, num_sentences: int) -> ChatAmount:
        """Return the expected LLM requests and tokens."""
        priced = [
            chats.chat(str(position), _TYPICAL).messages
            for chats in self._chats.values()
            for position in range(_NUM_PRICED)
        ]
        return estimated_amount(2 * num_sentences, priced, _TOKENS_PER_LABEL)

    def units(self, records: Iterable[Record], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence that passes the filters; count the others.

        `records` are read twice, since they may not fit into memory.
        """
        usable = self._usable(records, context)
        texts = ((text.id, text) for text in compress(_sentences(records), usable))
        title = "asking for positives and hard negatives"
        for about in answered_items(title, sum(usable), texts, self._requests, context):
            yield self._unit(about, context.llm.model)

    def _usable(self, records: Iterable[Record], context: GenerationContext) -> bytearray:
        """Return 1 for each sentence that passes the filters, else 0, and count the dropped ones."""
        usable = bytearray()
        for _, reason in self._settings.filters.filtered(text.sentence for text in _sentences(records)):
            usable.append(not reason)
            if reason:
                context.count_dropped(f"sentence: {reason}")
        return usable

    def _requests(self, _: int, text: Sentence) -> Mapping[str, ChatRequest]:
        found = {}
        for kind, chats in self._chats.items():
            chat = chats.chat(text.id, text.sentence)
            found[kind] = ChatRequest(f"{kind}|{text.id}", chat.messages, self._sampling[kind], chat.sample)
        return found

    def _unit(self, about: AnsweredItem[Sentence], generator: str) -> Unit:
        text = about.item
        columns: dict[str, Any] = {
            **provenance(self._method, generator, self._settings.seed),
            "label": text.label,
            "source_id": text.id,
            "instruction": " / ".join(
                chats.chat(text.id, text.sentence).name for chats in self._chats.values()
            ),
        }
        answers = {kind: (answer.text, answer.failure) for kind, answer in about.answers.items()}
        written = written_triplet(text.sentence, answers, self._settings.filters.reason, columns)
        return Unit(about.key, about.position, *written)


def _sentences(records: Iterable[Record]) -> Iterator[Sentence]:
    return (record for record in records if isinstance(record, Sentence))
