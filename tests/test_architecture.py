"""The project's structure: import directions, light commands, size limits, rules for readability."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from small_experiment import Project

import synthbench.api

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(ROOT / name for name in ("synthbench", "methods", "evaluators"))
MODULES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
HEAVY = {"torch", "transformers", "sentence_transformers", "mlflow", "openai", "pandas", "sklearn"}
MOST_LINES_OF_A_MODULE, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 500, 60, 6
PROBE = """\
import sys
from synthbench.cli.main import main
sys.argv = ["synthbench", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    heavy = sorted({heavy} & set(sys.modules))
    sys.stderr.write(f"ended {{end.code}} with {{heavy}}")
"""


def test_imports_follow_the_contracts() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("run", "--help"),
        ("validate", "small.yaml"),
        ("plan", "small.yaml"),
        ("list", "methods"),
        ("list", "trainers"),
        ("list", "evaluators"),
    ],
    ids=" ".join,
)
def test_commands_that_compute_nothing_load_nothing_heavy(
    project: Project, arguments: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", PROBE.format(heavy=HEAVY), *arguments]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=True)
    assert done.stderr == "ended 0 with []"


def test_modules_and_functions_respect_the_size_limits() -> None:
    too_large = [each for module in MODULES for each in _over_budget(module)]
    assert too_large == []


def _over_budget(module: Path) -> Iterator[str]:
    """Yield what of a module is too large."""
    name = module.relative_to(ROOT).as_posix()
    if len(module.read_text(encoding="utf-8").splitlines()) > MOST_LINES_OF_A_MODULE:
        yield f"{name}: too long"
    for function in _functions(module):
        where = f"{name}: {function.name} in line {function.lineno}"
        if (function.end_lineno or 0) - function.lineno >= MOST_LINES_OF_A_FUNCTION:
            yield f"{where}: too long"
        if "cli" in module.parts:
            continue
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if len([each for each in named if each.arg not in ("self", "cls")]) > MOST_PARAMETERS:
            yield f"{where}: too many parameters"
        if "bool" in map(_annotation, [*arguments.posonlyargs, *arguments.args]):
            yield f"{where}: a boolean that is not keyword-only"


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{module.relative_to(ROOT).as_posix()}:{node.lineno}"
        for module in MODULES
        if "cli" not in module.relative_to(ROOT).parts
        for node in _nodes(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_half_of_all_functions_are_short() -> None:
    lengths = sorted(
        (function.end_lineno or 0) - function.lineno + 1
        for module in MODULES
        for function in _functions(module)
    )
    assert lengths[len(lengths) // 2] <= 12
    assert lengths[len(lengths) * 95 // 100] <= 40


@pytest.mark.parametrize("name", [name for name in vars(synthbench.api) if not name.startswith("_")])
def test_every_name_that_plugins_may_import_is_documented(name: str) -> None:
    thing = getattr(synthbench.api, name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert inspect.getdoc(thing)
    if inspect.isclass(thing) and thing.__module__.startswith("synthbench"):
        public = {key: member for key, member in vars(thing).items() if not key.startswith("_")}
        functions = {key: member for key, member in public.items() if inspect.isfunction(member)}
        assert [key for key, member in functions.items() if not inspect.getdoc(member)] == []


def test_every_plugin_of_ours_has_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = {value.split(":")[0] for group in project["entry-points"].values() for value in group.values()}
    folders = {
        path.name
        for package in ("methods", "evaluators")
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file()
    }
    assert folders <= offered


def test_the_core_names_no_method() -> None:
    """Docstrings, comments and descriptions may cite a paper, and a message may name its page of the docs."""
    methods = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"][
        "synthbench.methods"
    ]
    packages = {value.partition(":")[0].removeprefix("synthbench_") for value in methods.values()}
    named = re.compile(rf"(?<![a-z])({'|'.join(sorted(packages))})(?![a-z])", re.IGNORECASE)
    found = [
        f"{module.relative_to(ROOT).as_posix()}:{node.lineno}: {text}"
        for module in MODULES
        if module.is_relative_to(ROOT / "synthbench")
        for node, text in _words_of_code(module)
        if named.search(text)
    ]
    assert found == []


def _words_of_code(module: Path) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield names and texts, without docstrings, descriptions of settings and pages of the docs."""
    prose = {
        id(node)
        for statement in _nodes(module)
        for value in (
            statement.value if isinstance(statement, ast.Expr) else None,
            statement.value
            if isinstance(statement, ast.keyword) and statement.arg == "description"
            else None,
        )
        if value is not None
        for node in ast.walk(value)
        if isinstance(node, ast.Constant)
    }
    for node in _nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in prose and not node.value.startswith("docs/"):
                yield node, node.value
        elif isinstance(node, ast.Name):
            yield node, node.id
        elif isinstance(node, ast.Attribute):
            yield node, node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node, node.name


def test_every_package_is_in_a_layer_and_only_the_api_is_open_to_plugins() -> None:
    contracts = {
        each["name"]: each
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
            "importlinter"
        ]["contracts"]
    }
    ours = {
        f"synthbench.{path.stem}"
        for path in (ROOT / "synthbench").iterdir()
        if (path / "__init__.py").is_file()
        or (path.suffix == ".py" and path.stem not in ("__init__", "__main__"))
    }
    layered = {name.strip() for line in contracts["Layers"]["layers"] for name in line.split("|")}
    assert layered == ours
    closed = set(contracts["Plug-ins know only synthbench.api"]["forbidden_modules"])
    assert closed == ours - {"synthbench.api"}


def test_only_one_constant_names_the_generated_world() -> None:
    naming = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8").lower().count("sandbox")
        for path in MODULES
        if not path.is_relative_to(ROOT / "synthbench/worlds/sandbox")
    }
    assert {name: count for name, count in naming.items() if count} == {"synthbench/worlds/__init__.py": 1}


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in _nodes(module):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.relative_to(ROOT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_module_is_in_a_package() -> None:
    loose = {path.stem for path in (ROOT / "synthbench").glob("*.py")}
    assert loose == {"__init__", "__main__", "api"}


def test_imports_are_free_of_cycles_even_within_functions_and_for_types() -> None:
    imported = {_module_name(path): _imports(path) for path in MODULES}
    waiting = {name: names & imported.keys() for name, names in imported.items()}
    while free := {name for name, names in waiting.items() if not names}:
        waiting = {name: names - free for name, names in waiting.items() if name not in free}
    assert _circle(waiting) == []


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_newcomers_reading_list_exists(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) > 10


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[(path.parts[len(ROOT.parts)] != "synthbench") :]
    return ".".join(parts).removesuffix(".__init__")


def _imports(path: Path) -> set[str]:
    """Return the modules that a module imports: at its top, in a function, or for types.

    The packages that it is in are left out: they are loaded before it, whatever it imports.
    """
    found = set[str]()
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.add(node.module)
    name = _module_name(path)
    return {module for module in found if not f"{name}.".startswith(f"{module}.")}


def _circle(waiting: dict[str, set[str]]) -> list[str]:
    """Return an import cycle, () if there is none."""
    path = list(waiting)[:1]
    while path:
        following = next(name for name in sorted(waiting[path[-1]]) if name in waiting)
        if following in path:
            return [*path[path.index(following) :], following]
        path.append(following)
    return []


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def _nodes(module: Path) -> list[ast.AST]:
    return list(ast.walk(_tree(module)))


def _functions(module: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in _nodes(module) if isinstance(node, ast.FunctionDef))


def _annotation(argument: ast.arg) -> str:
    return ast.unparse(argument.annotation) if argument.annotation else ""
