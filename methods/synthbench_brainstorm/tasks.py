"""Step 1: tasks of one category, twenty per request."""

from collections.abc import Iterator, Mapping
from typing import Self

from pydantic import Field, model_validator

from synthbench.api import (
    AnswerError,
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Expected,
    Failure,
    GenerationContext,
    Record,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
    answered_items,
    estimated_amount,
    same_text,
)
from synthbench_brainstorm.answers import tasks_in
from synthbench_brainstorm.prompts import Category, prompts_of
from synthbench_brainstorm.requests import TASKS_PER_REQUEST
from synthbench_brainstorm.settings import BrainstormSettings, provenance

METHOD = "brainstorm-tasks"
DUPLICATE = "duplicate in a list"
MISSING = "missing in a list"
SURPLUS = "more than were asked for"
_TOKENS_PER_TASK = 22


class BrainstormTasks(BrainstormSettings):
    """Tasks of one category, invented by an LLM; `subset` is the category."""

    version = 2
    record_kind = RecordKind.SENTENCE

    category: Category = Field(strict=False, description="short-long, long-short, short-short or long-long")
    size: int = Field(
        ge=1, description="number of requested tasks, 20 per request; dropped ones are not replaced"
    )

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if prompts_of(self.all_prompts, self.category).tasks is None:
            raise ValueError(f"'{self.category}' has one task for all records; choose another category")
        return self

    def prompt_names(self) -> tuple[Category, ...]:
        """Return the name of the used prompts: the category."""
        return (self.category,)

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount:
        """Return the expected LLM requests and tokens."""
        messages = self.chats(self.category).for_tasks(0).messages
        return estimated_amount(self._num_requests, [messages], TASKS_PER_REQUEST * _TOKENS_PER_TASK)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most the requested number of tasks."""
        return Expected(self.size)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each request."""
        chats = self.chats(self.category)

        def request(index: int, _: None) -> Mapping[str, ChatRequest]:
            chat = chats.for_tasks(index)
            sampling = self.task_sampling.parameters()
            return {"": ChatRequest(str(index), chat.messages, sampling, chat.sample)}

        number, title = self._num_requests, f"asking for tasks ({self.category})"
        lists = ((str(index), None) for index in range(number))
        for about in answered_items(title, number, lists, request, context):
            yield self._unit(about.answer, context.llm.model)

    @property
    def _num_requests(self) -> int:
        return -(-self.size // TASKS_PER_REQUEST)

    def _unit(self, answer: ChatAnswer, generator: str) -> Unit:
        key = answer.request.key
        columns = {**provenance(METHOD, generator, self.seed, self.category), "source_id": key}
        if answer.text is None:
            return Unit(key, int(key), (Failure(reason=answer.failure, **columns),))
        try:
            listed = tasks_in(answer.text)
        except AnswerError as error:
            failed = Failure(reason=str(error), raw_text=answer.text, **columns)
            return Unit(key, int(key), (failed,), {str(error): 1})
        num_wanted = min(TASKS_PER_REQUEST, self.size - int(key) * TASKS_PER_REQUEST)
        tasks = list({same_text(task): task for task in reversed(listed[:num_wanted])}.values())[::-1]
        dropped = {
            MISSING: num_wanted - len(listed),
            SURPLUS: len(listed) - num_wanted,
            DUPLICATE: len(listed[:num_wanted]) - len(tasks),
        }
        records: tuple[Record, ...] = tuple(Sentence(sentence=task, **columns) for task in tasks)
        return Unit(key, int(key), records, {why: number for why, number in dropped.items() if number > 0})
