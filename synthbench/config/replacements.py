"""What a profile put in the place of an experiment's models and tasks, in words."""

from collections.abc import Iterator
from typing import Any

from synthbench.config.documents import Document

_SOURCES = ("sandbox", "task", "file")


def replacements(before: Document, after: Document) -> Iterator[tuple[str, str]]:
    """Yield each model and source that differs: ("gpt2-xl", "sandbox/lm"), ("STSb/dev", "sandbox pairs")."""
    yield from _differences(before.data, after.data)


def _differences(before: Any, after: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever stands in the file
    if isinstance(before, list) and isinstance(after, list):
        for old, new in zip(before, after, strict=False):
            yield from _differences(old, new)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return
    if "task" in before and after.get("task") != before["task"]:
        kind = next((key for key in _SOURCES if key in after), "another source")
        yield f"{before['task']}/{before.get('split', 'test')}", f"{kind} {after.get(kind, '')}".rstrip()
        return
    if isinstance(before.get("model"), str) and after.get("model") != before["model"]:
        yield before["model"], str(after.get("model"))
    for key, value in before.items():
        yield from _differences(value, after.get(key))
