"""Step 2: a query, a positive and a hard negative for each category's tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

from pydantic import Field

from synthbench.api import (
    AnsweredItem,
    ChatAmount,
    ChatRequest,
    Expected,
    GeneratedData,
    GenerationContext,
    Need,
    OpenSampling,
    PromptChat,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Triplet,
    Unit,
    UserError,
    answered_items,
    estimated_amount,
    same_text,
)
from synthbench_brainstorm.answers import texts_in
from synthbench_brainstorm.prompts import Category
from synthbench_brainstorm.requests import Chats
from synthbench_brainstorm.settings import BrainstormSettings, provenance
from synthbench_brainstorm.tasks import METHOD as TASKS_METHOD

METHOD = "brainstorm"
INSTRUCTED = "Instruct: {task}\nQuery: {query}"
"""Format of a query with its task, as in the paper and in the evaluations' prompts."""
_SHARED_SETTINGS = {"seed", "task_sampling"}
_NUM_PRICED = 50
_TYPICAL_TASK = "Given a short text of one kind, find another text of one kind that belongs to it"
_TOKENS_PER_WORD = 1.4
_NUM_LONG = {Category.SHORT_LONG: 2, Category.LONG_SHORT: 1}
_TOKENS_WITHOUT_LENGTH = {Category.SHORT_SHORT: 80, Category.LONG_LONG: 400, Category.STS: 110}
_TOKENS_OF_SHORT_TEXTS = 50


class Brainstorm(BrainstormSettings):
    """Triplets for tasks invented by an LLM; `subset` is the category, `instruction` the task."""

    version = 2
    record_kind = RecordKind.TRIPLET

    size: int = Field(
        ge=1, description="number of requested records, one per request; dropped ones are not replaced"
    )
    categories: dict[Annotated[Category, Field(strict=False)], Annotated[float, Field(gt=0, le=1e6)]] = Field(
        default_factory=lambda: dict.fromkeys(Category, 1.0),
        min_length=1,
        description="category -> weight of its share of the records; a category that is not listed gets none",
    )
    tasks_per_category: int = Field(200, ge=1, description="requested tasks per category, 20 per request")
    languages: tuple[Annotated[str, Field(pattern=r"\S")], ...] = Field(
        ("English",), min_length=1, description="languages; each record draws one of them"
    )
    instructions: bool = Field(
        True, description='put the task before the query: "Instruct: TASK", a new line, "Query: QUERY"'
    )
    record_sampling: OpenSampling = Field(OpenSampling(), description="sampling of records")

    def prompt_names(self) -> tuple[Category, ...]:
        """Return the names of the used prompts, which are the categories of the records."""
        return tuple(category for category in Category if category in self.categories)

    def table_notes(self) -> tuple[str, ...]:
        """Return the notes on prompts, and one on listed categories without a record, if there are any."""
        shares = self._shares()
        lacking = ", ".join(category for category in self.prompt_names() if category not in shares)
        none = f"Brainstorm's size of {self.size} gives no record to {lacking}, whose shares round to 0."
        return (*super().table_notes(), *([none] if lacking else []))

    def needs(self) -> Mapping[str, Need]:
        """Return a data set of tasks, which rows may share, for each category that has a prompt for tasks."""
        shared = self.model_dump(mode="json", include=_SHARED_SETTINGS, exclude_none=True)
        return {
            f"tasks of {category}": GeneratedData(
                TASKS_METHOD,
                {
                    **shared,
                    **self.own_prompts([category]),
                    "category": category.value,
                    "size": self.tasks_per_category,
                },
                sources={},
            )
            for category in self._shares()
            if self._chats(category).prompts.tasks is not None
        }

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount:
        """Return the LLM requests and tokens for the records; `brainstorm-tasks` counts those for tasks."""
        total = ChatAmount(0, 0, 0)
        for category, number in self._shares().items():
            priced = [self._chats(category).for_record(index, _TYPICAL_TASK) for index in range(_NUM_PRICED)]
            lengths = [float(chat.values["num_words"]) for chat in priced if _has_length(chat.values)]
            tokens = _tokens_per_answer(category, lengths)
            total += estimated_amount(number, (chat.messages for chat in priced), tokens)
        return total

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most the requested number of records."""
        return Expected(self.size)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each record."""
        asked = ((each.key, each) for each in self._all(self._tasks(context)))
        for about in answered_items("asking for records", self.size, asked, self._request, context):
            yield self._unit(about, context.llm.model)

    def _shares(self) -> dict[Category, int]:
        """Return the number of records per category, in the order of `Category`, without zeros."""
        weights = {category: self.categories[category] for category in self.prompt_names()}
        bounds = [round(self.size * upto / sum(weights.values())) for upto in accumulate(weights.values())]
        numbers = [upto - before for before, upto in zip([0, *bounds], bounds, strict=False)]
        return {category: number for category, number in zip(weights, numbers, strict=True) if number}

    def _chats(self, category: Category) -> Chats:
        return self.chats(category, self.languages)

    def _tasks(self, context: GenerationContext) -> dict[Category, list[str]]:
        """Return category -> its distinct tasks; raises UserError if a category has no usable one."""
        found = {}
        for name, need in self.needs().items():
            assert isinstance(need, GeneratedData)
            category = Category(need.config["category"])
            tasks = [record.sentence for record in context.records(name) if isinstance(record, Sentence)]
            found[category] = list({same_text(task): task for task in reversed(tasks)}.values())[::-1]
            if not found[category]:
                raise UserError(
                    f"brainstorm: the LLM gave no usable task for '{category}', so there is nothing to ask"
                    " records for; its failures are in the data set of tasks"
                )
        return found

    def _request(self, _: int, asked: "_AskedRecord") -> Mapping[str, ChatRequest]:
        chat, sampling = asked.chat, self.record_sampling.parameters()
        return {"": ChatRequest(asked.key, chat.messages, sampling, chat.sample)}

    def _all(self, tasks: Mapping[Category, list[str]]) -> Iterator["_AskedRecord"]:
        """Yield the request of every record, in the order of the data set."""
        for category, number in self._shares().items():
            chats = self._chats(category)
            for index in range(number):
                yield _AskedRecord(index, chats.task(index, tasks.get(category, [])), chats)

    def _unit(self, about: AnsweredItem["_AskedRecord"], generator: str) -> Unit:
        asked = about.item
        columns = {
            **provenance(METHOD, generator, self.seed, asked.chats.category),
            "label": _grades(asked.chat.values),
            "source_id": asked.key,
            "instruction": asked.task,
        }

        def triplet(answer: str) -> Triplet:
            query, positive, negative = texts_in(answer, asked.chats.prompts.keys)
            anchor = INSTRUCTED.format(task=asked.task, query=query) if self.instructions else query
            return Triplet(anchor=anchor, positive=positive, negative=negative, **columns)

        return about.unit(triplet, columns)


@dataclass(frozen=True, slots=True)
class _AskedRecord:
    """A requested record: its index in its category, and its task."""

    index: int
    task: str
    chats: Chats

    @property
    def key(self) -> str:
        return f"{self.chats.category}/{self.index}"

    @property
    def chat(self) -> PromptChat:
        return self.chats.for_record(self.index, self.task)


def _grades(values: Mapping[str, str]) -> str:
    """Return the two requested similarity grades of an STS record, "" for other records."""
    names = ("high_score", "low_score")
    return " and ".join(values[name] for name in names) if values.keys() >= set(names) else ""


def _has_length(values: Mapping[str, str]) -> bool:
    return values.get("num_words", "").isdecimal()


def _tokens_per_answer(category: Category, lengths: list[float]) -> int:
    """Return the tokens of one answer, given the drawn lengths of its long texts."""
    if not lengths:
        return _TOKENS_WITHOUT_LENGTH.get(category, 200)
    num_words = sum(lengths) / len(lengths)
    return round(_NUM_LONG.get(category, 2) * num_words * _TOKENS_PER_WORD + _TOKENS_OF_SHORT_TEXTS)
