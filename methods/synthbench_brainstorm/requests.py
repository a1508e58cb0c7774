"""Requests of both steps: seed, category and number decide all draws, so that rows share answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synthbench.api import PromptChat, drawn, drawn_chat, hashed_number
from synthbench_brainstorm.prompts import Category, CategoryPrompts

TASKS_PER_REQUEST = 20


@dataclass(frozen=True)
class Chats:
    """The requests of one category."""

    category: Category
    prompts: CategoryPrompts
    seed: int
    languages: Sequence[str] = ("English",)

    def for_tasks(self, number: int) -> PromptChat:
        """Return the `number`-th request for TASKS_PER_REQUEST tasks."""
        assert self.prompts.tasks is not None
        of = (self.seed, self.category, "tasks", number)
        chat = drawn_chat(self.prompts.tasks, {"number": TASKS_PER_REQUEST}, *of)
        return replace(chat, sample=hashed_number(*of))

    def task(self, number: int, tasks: Sequence[str]) -> str:
        """Return the task of the `number`-th record."""
        if self.prompts.task is not None:
            return self.prompts.task
        return tasks[hashed_number(self.seed, self.category, number, "task") % len(tasks)]

    def for_record(self, number: int, task: str) -> PromptChat:
        """Return the request for the `number`-th record, with drawn values."""
        of = (self.seed, self.category, number)
        (language,) = drawn(self.languages, 1, *of, "language")
        chat = drawn_chat(self.prompts.records, {"task": task, "language": language}, *of)
        return replace(chat, sample=hashed_number(self.seed, self.category, "record", number))
