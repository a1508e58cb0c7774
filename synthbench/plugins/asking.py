"""Helpers for methods: query an LLM, or a sequence-to-sequence model, about many items."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from synthbench.data.records import Failure, Record, Triplet
from synthbench.generation.seq2seq import Seq2SeqLanguageModel, Seq2SeqModel
from synthbench.llm.answered import sentence_in
from synthbench.llm.json_answers import AnswerError
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.models.batching import length_sorted_units
from synthbench.plugins.contracts import GenerationContext, Unit

Item = TypeVar("Item")
Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class AnsweredItem(Generic[Item]):
    """An item, its index, the key of its unit, and the answers to its requests by name."""

    position: int
    key: str
    item: Item
    num_requests: int
    answers: dict[str, ChatAnswer] = field(default_factory=dict)

    @property
    def answer(self) -> ChatAnswer:
        """The answer of an item with one request."""
        (answer,) = self.answers.values()
        return answer

    def unit(self, read: Callable[[str], Record], columns: Mapping[str, Any]) -> Unit:
        """Return the item's unit: the record that `read` makes of the item's only answer, or a failure.

        The failure gets `columns`. If `read` raises AnswerError, the message is the failure's reason, and the
        item counts as dropped for this reason.
        """
        text = self.answer.text
        if text is None:
            return Unit(self.key, self.position, (Failure(reason=self.answer.failure, **columns),))
        try:
            return Unit(self.key, self.position, (read(text),))
        except AnswerError as error:
            failed = Failure(reason=str(error), raw_text=text, **columns)
            return Unit(self.key, self.position, (failed,), {str(error): 1})


def answered_items(
    title: str,
    num_items: int,
    items: Iterable[tuple[str, Item]],
    requests: Callable[[int, Item], Mapping[str, ChatRequest]],
    context: GenerationContext,
) -> Iterator[AnsweredItem[Item]]:
    """Yield each unfinished item of this process with its answers.

    Items come in the order of their answers; `items` holds (unit key, item) and is read lazily. `requests`
    takes an item's index and the item, and returns name -> request. Request keys must be unique. An item
    without requests is never yielded; the method has to count it itself.
    """
    waiting: dict[str, tuple[AnsweredItem[Item], str]] = {}

    def due() -> Iterator[ChatRequest]:
        for position, (key, item) in enumerate(items):
            if context.is_mine(position) and key not in context.finished_units:
                asked = requests(position, item)
                about = AnsweredItem(position, key, item, len(asked))
                waiting.update((request.key, (about, name)) for name, request in asked.items())
                yield from asked.values()

    with context.progress.task(title, sum(map(context.is_mine, range(num_items)))) as bar:
        bar.advance(len(context.finished_units))
        for answer in context.llm.answers(due()):
            about, name = waiting.pop(answer.request.key)
            about.answers[name] = answer
            if len(about.answers) == about.num_requests:
                yield about
                bar.advance()


def written_triplet(
    anchor: str,
    answers: Mapping[str, tuple[str | None, str]],
    fault: Callable[[str, Sequence[str]], str],
    columns: Mapping[str, Any],
) -> tuple[tuple[Record, ...], Mapping[str, int]]:
    """Return a triplet of two answers, or a failure, and how many answers were dropped for which reason.

    `answers`: "positive" and "negative" -> (text, why there is none). `fault` gets a sentence and the earlier
    sentences of the triplet; it returns why the sentence can't be used, "" if it can. Triplet and failure get
    `columns`.
    """
    texts = [anchor]
    for kind in ("positive", "negative"):
        text, failure = answers[kind]
        if text is None:
            return (Failure(reason=f"{kind}: {failure}", **columns),), {}
        sentence = sentence_in(text)
        if why := fault(sentence, texts):
            reason = f"{kind}: {why}"
            return (Failure(reason=reason, raw_text=text, **columns),), {reason: 1}
        texts.append(sentence)
    return (Triplet(anchor=anchor, positive=texts[1], negative=texts[2], **columns),), {}


def written_items(
    title: str,
    texts: Mapping[str, str],
    size: int,
    writer: Seq2SeqLanguageModel,
    context: GenerationContext,
    write: Callable[[Sequence[int], Seq2SeqModel], Iterable[Written]],
) -> Iterator[tuple[int, Written]]:
    """Yield the index of each unfinished text of this process with the model's output.

    `texts` maps unit keys to texts. `write` gets the indices of a batch of texts of similar length, and
    yields an output for each. A partly finished batch is recomputed whole, so that resuming does not change
    the result.
    """
    model: Seq2SeqModel | None = None
    is_left = [key not in context.finished_units for key in texts]
    with context.progress.task(title, len(texts)) as bar:
        bar.advance(len(context.finished_units))
        for piece, batch in enumerate(length_sorted_units([len(text) for text in texts.values()], size)):
            left = [index for index in batch if is_left[index]]
            if left and context.is_mine(piece):
                model = model or writer.load(context.runtime)
                for index, written in zip(batch, write(batch, model), strict=True):
                    if is_left[index]:
                        yield index, written
                bar.advance(len(left))
