"""The tasks and benchmarks of the installed mteb, read from its files, since importing it takes seconds."""

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from synthbench.api import UserError, did_you_mean, linear_pattern

INSTALL = "pip install 'synthbench[mteb]'"
_NAME = linear_pattern(r'\bname="([^"\n]+)"')
_CONFIGURATIONS = {"corpus", "default", "documents", "qrels", "queries", "query", "questions", "test"}
"""Names in these files that are not tasks."""


def installed_version() -> str:
    """Return mteb's version; raises UserError if it is not installed."""
    _folder()
    return version("mteb")


@cache
def task_names() -> frozenset[str]:
    """Return the names of all tasks, possibly with a few names of other objects."""
    return _names_below(_folder() / "tasks")


@cache
def aggregates() -> frozenset[str]:
    """Return the names of the tasks that are means of other tasks."""
    return _names_below(_folder() / "tasks" / "aggregated_tasks")


def _names_below(folder: Path) -> frozenset[str]:
    files = folder.rglob("*.py")
    found = {name for file in files for name in _NAME.findall(file.read_text(encoding="utf-8"))}
    return frozenset(found - _CONFIGURATIONS)


@cache
def benchmarks() -> Mapping[str, tuple[str, ...] | None]:
    """Return each benchmark's tasks, by name and alias; None if a rule in mteb's code chooses them."""
    files = (_folder() / "benchmarks" / "benchmarks").glob("*.py")
    calls = (call for file in sorted(files) for call in _calls(ast.parse(file.read_text(encoding="utf-8"))))
    found: dict[str, tuple[str, ...] | None] = {}
    for function, call in calls:
        given = {each.arg: each.value for each in call.keywords}
        if function.endswith("Benchmark") and {"name", "tasks"} <= given.keys():
            aliases = ast.literal_eval(given["aliases"]) if "aliases" in given else []
            names = (ast.literal_eval(given["name"]), *aliases)
            found |= dict.fromkeys(names, _listed(given["tasks"]))
    return found


def benchmark_tasks(name: str) -> tuple[str, ...]:
    """Return a benchmark's tasks; raises UserError if it does not exist, or can't be listed."""
    known = benchmarks()
    if name not in known:
        raise UserError(f"mteb has no benchmark '{name}'{did_you_mean(name, known)}")
    tasks = known[name]
    if tasks is None:
        raise UserError(f"mteb's benchmark '{name}' chooses its tasks by a rule; list them under `tasks`")
    return tasks


def check_task(name: str) -> None:
    """Raise UserError if mteb has no task with this name."""
    if name in benchmarks():
        raise UserError(f"'{name}' is a benchmark of mteb: write `benchmark: {name}` and `tasks: [all]`")
    if name not in task_names():
        raise UserError(f"mteb has no task '{name}'{near(name, task_names())}")


def near(name: str, known: frozenset[str]) -> str:
    """Return "; did you mean ...?" for the nearest known name, "" if none is near."""
    folded = {each.casefold(): each for each in known}
    if name.casefold() in folded:
        return f"; did you mean '{folded[name.casefold()]}'?"
    hint = did_you_mean(name, known)
    return hint if "did you mean" in hint else ""


def _folder() -> Path:
    found = importlib.util.find_spec("mteb")
    if found is None or not found.submodule_search_locations:
        raise UserError(f"evaluator 'mteb' needs mteb: {INSTALL}")
    return Path(found.submodule_search_locations[0])


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


_CONSTRUCTORS = ("MTEBTasks", "get_task", "get_tasks")


def _listed(tasks: ast.expr) -> tuple[str, ...] | None:
    """Return the names in a list expression, None for any other expression."""
    names: list[str] = []
    for node in ast.walk(tasks):
        if isinstance(node, ast.Starred | ast.Attribute | ast.comprehension):
            return None
        if isinstance(node, ast.Name) and node.id not in _CONSTRUCTORS:
            return None
    for function, call in _calls(tasks):
        given = {each.arg: each.value for each in call.keywords}
        if function == "MTEBTasks":
            continue
        first = given.get("tasks") or given.get("task_name") or (call.args[0] if call.args else None)
        if first is None or "task_types" in given:
            return None
        listed = ast.literal_eval(first)
        names += [listed] if isinstance(listed, str) else listed
    return tuple(dict.fromkeys(names))
