"""What a profile replaces is validated, too: a file is valid on its own, whatever stands in for its parts."""

from collections.abc import Iterator
from typing import Any

from synthbench.config.documents import Document, KeyPath
from synthbench.config.llm import SHORT_FORM, AnyLLM
from synthbench.config.problems import Problems, parse
from synthbench.config.profiles import OF_ONE_MODEL
from synthbench.config.runs import RunParser
from synthbench.config.schema import AnySource


def check_sources(before: Document, after: Document, problems: Problems) -> None:
    """Note the faults of the sources that a profile replaced."""
    replaced = _mapping(after, "sources")
    for name, raw in _mapping(before, "sources").items():
        if raw != replaced.get(name):
            parse(AnySource, raw, before, ("sources", name), problems)


def check_llms(before: Document, after: Document, problems: Problems) -> None:
    """Note the faults of the LLMs that a profile replaced."""
    after_by_path = dict(_llms(after))
    for path, raw in _llms(before):
        if raw != after_by_path.get(path):
            parse(AnyLLM, raw, before, path, problems)


def check_models(before: Document, parser: RunParser, problems: Problems) -> None:
    """Note the faults of settings that go with a replaced model, such as its revision.

    `parser` reads the row as it was; the models themselves need not be on this machine.
    """
    parser.parse(before)
    problems.note(*(fault for fault in parser.problems.faults if fault.key.endswith(OF_ONE_MODEL)))


def _llms(document: Document) -> Iterator[tuple[KeyPath, Any]]:
    if document.data.get(SHORT_FORM) is not None:
        yield (SHORT_FORM,), document.data[SHORT_FORM]
    yield from ((("llms", name), raw) for name, raw in _mapping(document, "llms").items())


def _mapping(document: Document, key: str) -> dict[str, Any]:
    found = document.data.get(key)
    return found if isinstance(found, dict) else {}
