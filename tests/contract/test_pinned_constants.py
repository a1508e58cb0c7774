"""Constants outside all identities: a changed constant needs a new version of the component that uses it."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINNED = Path(__file__).with_name("constants.json")
DECIDING = (
    "synthbench/bm25", "synthbench/data", "synthbench/generation",
    "synthbench/plugins/labellers.py", "synthbench/plugins/prompts.py",
    "synthbench/plugins/prompt_settings.py",
    "synthbench/llm/answered.py", "synthbench/llm/asking.py",
    "synthbench/llm/judging.py",
    "synthbench/models", "synthbench/preparing",
    "synthbench/worlds/sandbox",
    "synthbench/sources", "synthbench/training", "synthbench/words", "methods", "evaluators",
)  # fmt: skip
"""Modules that determine a component's output."""


def numbers_in(file: Path) -> Iterator[tuple[str, object]]:
    """Yield a module's numeric constants by name, including defaults of dataclasses and functions."""
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    yield from _numbers(ast.parse(file.read_text("utf-8")).body, module)


def _numbers(body: list[ast.stmt], path: str) -> Iterator[tuple[str, object]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _numbers(node.body, f"{path}.{node.name}")
        elif isinstance(node, ast.FunctionDef):
            given = node.args
            with_default = (
                [*given.posonlyargs, *given.args][-len(given.defaults) or None :] if given.defaults else []
            )
            for argument, default in (
                *zip(with_default, given.defaults, strict=True),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ):
                yield from _number(f"{path}.{node.name}({argument.arg})", default)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from _number(f"{path}.{ast.unparse(targets[0])}", node.value)


def _number(name: str, node: ast.expr | None) -> Iterator[tuple[str, object]]:
    if node is None or name.endswith((".version", ".VERSION")):
        return
    try:
        value = eval(compile(ast.Expression(node), name, "eval"), {"__builtins__": {}})
    except (NameError, TypeError, AttributeError):
        return
    values = value if isinstance(value, tuple | list) and value else (value,)
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        yield name, json.loads(json.dumps(value))


def test_a_constant_outside_all_identities_changes_only_with_a_version(
    request: pytest.FixtureRequest,
) -> None:
    """Stores hold results of the former constant: raise the `version` of each component that reads it.

    Then, and after a new constant, `make golden`.
    """
    files = [
        file
        for name in DECIDING
        for file in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
    ]
    found = dict(sorted(each for file in files for each in numbers_in(file)))
    if request.config.getoption("renew"):
        PINNED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    pinned = json.loads(PINNED.read_text("utf-8"))
    changed = {
        name: (pinned.get(name), found.get(name))
        for name in {*pinned, *found}
        if pinned.get(name) != found.get(name)
    }
    assert changed == {}, "(before, now): raise the version of what reads it, then make golden"
