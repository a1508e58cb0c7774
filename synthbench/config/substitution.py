"""Profiles replace models and data by others, so that a paper's experiment runs on a laptop in minutes."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from synthbench.config.documents import Document, KeyPath
from synthbench.config.problems import Problems

T = TypeVar("T")
KEPT = ("split", "sample")
"""What a source keeps of its own when another takes its place."""


def substitute_models(document: Document, table: Mapping[str, str], problems: Problems) -> Document:
    """Replace every `model:` by what the table's first matching pattern names, and drop its `revision:`.

    `select` is left as it is: its values stand in the candidates' own sections.

    An id that no pattern matches is a problem, unless it is one of the table's replacements. Without a table
    nothing changes.
    """
    if not table:
        return document

    def replaced(value: Any, path: KeyPath) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [replaced(child, (*path, index)) for index, child in enumerate(value)]
        if not isinstance(value, dict):
            return value
        result = {key: replaced(child, (*path, key)) for key, child in value.items()}
        model = result.get("model")
        if isinstance(model, str) and model not in table.values():
            substitute = _first_match(model, table)
            if substitute is None:
                problems.add(document, (*path, "model"), f"the profile has no substitute for '{model}'")
            else:
                result["model"] = substitute
                result.pop("revision", None)
        return result

    data = {key: v if key == "select" else replaced(v, (key,)) for key, v in document.data.items()}
    return Document(data, document.places)


def substitute_tasks(
    document: Document, table: Mapping[str, Mapping[str, Any]], problems: Problems
) -> Document:
    """Replace every source that names a task by what the first pattern matching "TASK/SPLIT" describes.

    The split and the sample are the source's own. A task that no pattern matches is a problem. Without a
    table nothing changes.
    """
    sources = document.data.get("sources")
    if not table or not isinstance(sources, dict):
        return document
    replaced = {
        name: _substitute(document, (name, source), table, problems) for name, source in sources.items()
    }
    return Document({**document.data, "sources": replaced}, document.places)


def _substitute(
    document: Document, named: tuple[str, Any], table: Mapping[str, Mapping[str, Any]], problems: Problems
) -> Any:  # noqa: ANN401 - a source's section, whatever stands in it
    name, source = named
    if not isinstance(source, dict) or "task" not in source:
        return source
    task = f"{source['task']}/{source.get('split', 'test')}"
    substitute = _first_match(task, table)
    if substitute is None:
        problems.add(document, ("sources", name, "task"), f"the profile has no substitute for '{task}'")
        return source
    return {"split": "test", **substitute, **{key: source[key] for key in KEPT if key in source}}


def _first_match(name: str, table: Mapping[str, T]) -> T | None:
    return next((new for pattern, new in table.items() if fnmatchcase(name, pattern)), None)
