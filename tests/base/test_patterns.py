"""Every pattern that reads text from outside takes time linear in its length, by its structure."""

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from linear_patterns import faults

from synthbench.base.patterns import LINEAR

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    file for package in ("synthbench", "methods", "evaluators") for file in (ROOT / package).rglob("*.py")
)
OF_OURS = {
    "synthbench/base/patterns.py": "compiles the listed patterns",
    "synthbench/cli/shipped_experiments.py": "reads experiment files that ship with synthbench",
    "synthbench/llm/connection.py": "looks for a literal name between word boundaries",
    "synthbench/llm/prices.py": "asks the price package's patterns about the user's own addresses",
    "synthbench/base/redaction.py": "replaces literal values of environment variables",
}
"""Where patterns are compiled past the list, and why they may be."""
COMPILING = {"compile", "match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn"}


_USES_RE = re.compile(r"^\s*(?:import|from)\s+(?:re|regex)\b", re.MULTILINE)
USING = [file for file in MODULES if _USES_RE.search(file.read_text(encoding="utf-8"))]


def _compiles(file: Path) -> bool:
    """Tell whether a module compiles a pattern without listing it."""
    calls = (
        node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    )
    return any(
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("re", "regex")
        and call.func.attr in COMPILING
        for call in calls
    )


def _is_of_sandbox(file: Path) -> bool:
    """Tell whether a file is the generated world's: its models read prompts that this project wrote."""
    return "sandbox" in file.relative_to(ROOT).parts


def test_only_the_list_of_patterns_compiles_patterns() -> None:
    found = {
        file.relative_to(ROOT).as_posix() for file in USING if not _is_of_sandbox(file) and _compiles(file)
    }
    assert found == set(OF_OURS)


def test_no_module_imports_functions_from_re() -> None:
    for file in USING:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("re", "regex"), file
            if isinstance(node, ast.Import):
                names = [(name.name, name.asname) for name in node.names]
                assert not [name for name in names if name[0] in ("re", "regex") and name != ("re", None)], (
                    file
                )


def _compile_later_ones(file: Path, module: ModuleType) -> None:
    """Call a module's functions that compile a pattern when it is first needed."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.FunctionDef)
            and not node.args.args
            and "linear_pattern(" in ast.unparse(node)
        ):
            getattr(module, node.name)()


def _listed() -> list[re.Pattern[str]]:
    for file in MODULES:
        if "linear_pattern(" in file.read_text(encoding="utf-8"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if parts[0] == "synthbench" else parts[1:]).removesuffix(".__init__")
            _compile_later_ones(file, importlib.import_module(name))
    return list(dict.fromkeys(LINEAR))


@pytest.mark.parametrize("pattern", _listed(), ids=lambda pattern: str(pattern.pattern)[:60])
def test_a_listed_pattern_is_linear(pattern: re.Pattern[str]) -> None:
    assert faults(pattern) == []


@pytest.mark.parametrize(
    "regex",
    [
        r"\w+@",
        r"(\w+\s*)+x",
        r"^\s*:?\s*x",
        r"^(a|a)*b",
        r"^(a+)+b",
        r"\bi cannot\b.*\bsentence",
        r"^\d+\.?\d*x",
        r"x\w+y",
        r"(\w[\w+.-]*://[^/\s:@]*):",
        r"score(?:\s+(?:is|score))*\s*[:=]*\s*\d",
        r"(?ms)^\s*1[.)].*^\s*2",
        r"\s+$",
        r"^(.*,)*x",
        r".*x",
        r"(?:a+)*b",
        r"^a*?a*?b",
        r"a{0,500}a{0,500}b",
        r"(?:^|,)\s*\w*\s*=",
        r"(?<!a)\w+@",
        r"^(?:\s*,)*\s*x",
        r"(?i)k[k]+b",
        r"[^,]*,[^,]*$",
        r"^a(?:\.[a-z]+)*+\.[A-Z]",
        r"^(?>(?:a b)*+)",
    ],
)
def test_patterns_with_long_backtracking_are_found(regex: str) -> None:
    assert faults(re.compile(regex)) != []


@pytest.mark.parametrize(
    "regex",
    [
        r"\w+",
        r"<\w+>",
        r"^\s*x\s*$",
        r"^\s*+:?\s*+x",
        r"(?<!\w)\w++@",
        r"\b[a-z]++(?!\w)(?>(?:-[a-z]++(?!\w))*)",
        r"^.*[.!?]\"*+\s*+[(][^()]+[)]",
        r"^\w++(?>(?:\.\w++)*)$",
        r"\bx(?>(?:\s(?:is|a|the)(?=\s|\d))*)\s?[:=]*+\s?(?>(?:\d{1,4}+)?)",
        r"(?m)^\w+$",
    ],
)
def test_linear_patterns_are_accepted(regex: str) -> None:
    assert faults(re.compile(regex)) == []
