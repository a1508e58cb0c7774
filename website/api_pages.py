"""Tables of a module's names for docs/api.md; on the site, each name gets its full reference instead."""

import importlib
import inspect
import re
import types
import typing

_BLOCK = re.compile(r"(<!-- names of (\S+): (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return the page with a new table between each `<!-- names of MODULE: A, B -->` and `<!-- end -->`."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_table(found[2], _names(found[3]))}{found[4]}", text)


def names_in(text: str, module: str) -> list[str]:
    """Return the names of a module on the page, in the page's order."""
    return [name for found in _BLOCK.finditer(text) if found[2] == module for name in _names(found[3])]


def as_directives(text: str) -> str:
    """Return the page with a mkdocstrings directive for each name instead of the tables."""
    return _BLOCK.sub(lambda found: "".join(_directive(found[2], name) for name in _names(found[3])), text)


def _directive(module: str, name: str) -> str:
    return f"::: {module}.{name}\n\n"


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",")]


def _table(module: str, names: list[str]) -> str:
    rows = [f"| `{name}` | {_summary(getattr(importlib.import_module(module), name))} |" for name in names]
    return "\n".join(["| name | description |", "| --- | --- |", *rows]) + "\n"


def _summary(value: object) -> str:
    """Return a docstring's first line, the types of a union, or the value itself."""
    if isinstance(value, str):
        return f"The text `{value}`."
    if isinstance(value, types.UnionType):
        return " or ".join(f"`{each.__name__}`" for each in typing.get_args(value)) + "."
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "The type of a setting."
    return (inspect.getdoc(value) or "").splitlines()[0].replace("|", "\\|")
