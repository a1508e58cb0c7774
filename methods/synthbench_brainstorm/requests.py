"""Requests of both steps: they depend only on seed, category and number, so that rows share answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.api import drawn, filled, hashed_number
from synthbench_brainstorm.prompts import Category, CategoryPrompts

TASKS_PER_REQUEST = 20
Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BrainstormRequest:
    """The messages of one request, its sample index, and the values drawn for it."""

    messages: tuple[Message, ...]
    sample: int
    values: Mapping[str, str]


@dataclass(frozen=True)
class Chats:
    """The requests of one category."""

    category: Category
    prompts: CategoryPrompts
    seed: int
    languages: Sequence[str] = ("English",)

    def for_tasks(self, number: int) -> BrainstormRequest:
        """Return the `number`-th request for TASKS_PER_REQUEST tasks; only its sample differs."""
        assert self.prompts.tasks is not None
        prompt = filled(self.prompts.tasks, {"number": str(TASKS_PER_REQUEST)})
        return _chat(prompt, hashed_number(self.seed, self.category, "tasks", number), {})

    def task(self, number: int, tasks: Sequence[str]) -> str:
        """Return the task of the `number`-th record."""
        if self.prompts.instruction is not None:
            return self.prompts.instruction
        return tasks[hashed_number(self.seed, self.category, number, "task") % len(tasks)]

    def for_record(self, number: int, task: str) -> BrainstormRequest:
        """Return the request for the `number`-th record, with drawn placeholders."""
        pools = {**self.prompts.values, "language": self.languages}
        values = {
            name: drawn(pool, 1, self.seed, self.category, number, name)[0] for name, pool in pools.items()
        }
        # The task is filled in last, so that placeholders within it are not replaced.
        prompt = filled(self.prompts.records, values)
        sample = hashed_number(self.seed, self.category, "record", number)
        return _chat(filled(prompt, {"task": task}), sample, values)


def _chat(prompt: str, sample: int, values: Mapping[str, str]) -> BrainstormRequest:
    return BrainstormRequest(({"role": "user", "content": prompt.strip()},), sample, values)
