"""Parse the JSON in an LLM's answer: a list of tasks, or the three texts of a record."""

from typing import Any

from synthbench.api import AnswerError, has_content, json_object, json_values, same_text, text_under
from synthbench_brainstorm.prompts import Keys

NO_TASKS = "no list of tasks"


def tasks_in(answer: str) -> list[str]:
    """Return the tasks in an answer, each on one line.

    The list may be the whole answer or a value in a JSON object. An item of the list is a text, or an object
    with a text as its only value. Raises AnswerError if there is no such list.
    """
    for value in json_values(answer):
        lists = [value] if isinstance(value, list) else list(value.values())
        for found in lists:
            tasks = [_only_value(item) for item in found] if isinstance(found, list) else []
            if tasks and all(isinstance(task, str) for task in tasks):
                return [" ".join(task.split()) for task in tasks if has_content(task)]
    raise AnswerError(NO_TASKS)


def _only_value(item: Any) -> Any:  # noqa: ANN401 - any JSON
    return next(iter(item.values())) if isinstance(item, dict) and len(item) == 1 else item


def texts_in(answer: str, keys: Keys) -> list[str]:
    """Return anchor, positive and negative in an answer.

    Raises AnswerError if one is missing, empty or repeated.
    """
    names = (keys.anchor, keys.positive, keys.negative)
    found = json_object(answer, names)
    texts = [text_under(found, name) for name in names]
    for position, name in enumerate(names):
        earlier = [same_text(text) for text in texts[:position]]
        if same_text(texts[position]) in earlier:
            raise AnswerError(f"{name}: equal to {names[earlier.index(same_text(texts[position]))]}")
    return texts
