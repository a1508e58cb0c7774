"""What a profile put in the place of an experiment's models, tasks and LLM, in words."""

from collections.abc import Iterator
from typing import Any

from synthbench.config.documents import Document

_SOURCES = ("sandbox", "task", "file")


def replacements(before: Document, after: Document) -> Iterator[tuple[str, str]]:
    """Yield each model and source that differs: ("gpt2-xl", "sandbox/lm"), ("STSb/dev", "sandbox pairs").

    An LLM is told by its model: ("gpt-4o-mini", "the sandbox's LLM").

    A source on the hub is told by its file: ("org/name/nli.csv", "sandbox triplets").
    """
    yield from _differences(before.data, after.data)


def _differences(before: Any, after: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever stands in the file
    if isinstance(before, list) and isinstance(after, list):
        for old, new in zip(before, after, strict=False):
            yield from _differences(old, new)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return
    named = next((key for key in ("task", "hub") if key in before), None)
    if named is not None and after.get(named) != before[named]:
        kind = next((key for key in _SOURCES if key in after), "another source")
        inner = before.get("split", "test") if named == "task" else before.get("file")
        yield f"{before[named]}/{inner}", f"{kind} {after.get(kind, '')}".rstrip()
        return
    if after.get("endpoint") == "sandbox" != before.get("endpoint"):
        yield str(before.get("model") or before.get("local") or "llm"), "the sandbox's LLM"
        return
    if isinstance(before.get("model"), str) and after.get("model") != before["model"]:
        yield before["model"], str(after.get("model"))
    for key, value in before.items():
        yield from _differences(value, after.get(key))
