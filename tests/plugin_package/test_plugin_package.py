"""A third-party method: a distribution installed by pip, used by its name in a YAML file."""

import ast
import importlib
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from installed_packages import forget
from small_experiment import Called, Project, artifact, finished, new_project, tables

from synthbench.engine.artifacts import read_dataset

PACKAGE = Path(__file__).parent / "package"
MODULES = [file.stem for file in PACKAGE.glob("*.py")]
EDITABLE = "__editable__"
"""Prefix of the finder modules of pip's editable installations."""
VARIANT = """\
variants:
  echo:
    data.echo: {method: echo, sources: {texts: texts}, score: 0.75}
"""


PREPARED = """\
experiment: small
sources: {gold: {file: gold.tsv, kind: scored_pair}, texts: {file: texts.txt}}
baseline: agreeing
llm: sandbox
defaults:
  data.gold: {source: gold, prepare: [{step: agreeing}]}
  data.pairs: {method: reworded, sources: {texts: texts}}
"""
DATA_ALONE = """\
experiment: small
sources: {texts: {file: texts.txt}}
baseline: echo
defaults:
  data.echo: {method: echo, sources: {texts: texts}}
"""


def pip(command: str, *arguments: str | Path) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", command, *options, *arguments], check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package as it installs a release: a wheel, by its name."""
    copy, target = tmp_path_factory.mktemp("source") / "package", tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, copy)
    pip("wheel", "--no-build-isolation", "--wheel-dir", copy.parent, copy)
    pip("install", "--find-links", copy.parent, "--target", target, "synthbench-echo")
    return target


@pytest.fixture
def editable(tmp_path: Path) -> Path:
    """The folder of an editable installation; the package lies in `source` beside it."""
    shutil.copytree(PACKAGE, tmp_path / "source")
    pip("install", "--no-build-isolation", "--target", tmp_path / "site", "--editable", tmp_path / "source")
    return tmp_path / "site"


@pytest.fixture
def project(tmp_path: Path, bert: Path, installed: Path) -> Project:
    """A small experiment with a variant of the installed method, where that is on Python's path."""
    made = new_project(tmp_path, bert)
    (made.folder / "texts.txt").write_text("\n".join(SENTENCES[:12]) + "\n", encoding="utf-8")
    text = made.file.read_text(encoding="utf-8")
    head, tail = text[: text.index("variants:\n")], text[text.index("runtime:") :]
    head = head.replace("sources:\n", "sources:\n  texts: {file: texts.txt}\n", 1)
    made.file.write_text(head + VARIANT + tail, encoding="utf-8")
    return Project(made.folder, made.home, {"PYTHONPATH": str(installed)})


Calls = Callable[..., Called]


@pytest.fixture
def call(project: Project, installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Run a command with the package in this process, since a new process imports libraries for seconds."""

    def called(*arguments: str | Path, package: Path = installed) -> Called:
        forget(*MODULES)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path])
            site.addsitedir(str(package))
            importlib.invalidate_caches()
            try:
                return project.call(*arguments)
            finally:
                # An editable installation adds its own finder.
                sys.meta_path[:] = [each for each in sys.meta_path if EDITABLE not in _module(each)]

    yield called
    forget(*MODULES, *(name for name in [*sys.modules] if EDITABLE in name))


def _module(finder: object) -> str:
    return finder.__module__ if isinstance(finder, type) else type(finder).__module__


@pytest.mark.parametrize(
    ("module", "lines"), [("synthbench_echo", 15), ("synthbench_agreeing", 20), ("synthbench_reworded", 20)]
)
def test_the_package_is_small_and_imports_only_the_public_module(module: str, lines: int) -> None:
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    assert len([line for line in source.splitlines() if line.strip()]) <= lines
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom | ast.Import)]
    modules = {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    assert "synthbench.api" in modules
    assert modules <= {"collections.abc", "typing", "synthbench.api"}


def test_the_plug_in_is_listed_with_its_settings(project: Project) -> None:
    called = finished(project.start("list", "methods"))
    assert (called.code, called.err) == (0, "")
    assert "echo  version 1  [synthbench_echo:Echo]\n    Pairs each sentence with itself." in called.out
    assert "score: number; default 1.0" in called.out
    assert "augsbert  version 2" in called.out


def test_an_installed_step_and_method_use_the_experiments_llm(project: Project, call: Calls) -> None:
    project.file.write_text(PREPARED, encoding="utf-8")
    called = call("run", project.file)
    assert (called.code, called.errors) == (0, [])
    assert "prepare agreeing of gold for agreeing seed 0" in called.executed
    made = "generate reworded for agreeing seed 0"
    assert made in called.executed
    assert len(read_dataset(artifact(project, made))) == 12
    planned = call("plan", project.file).out
    assert "0 to run" in " ".join(planned.split()) or "nothing" in planned


def test_every_fault_of_the_configuration_is_reported_at_once(project: Project, call: Calls) -> None:
    project.change("sources: {texts: texts}, score: 0.75", "sources: {texts: texts}, scor: 1, score: high")
    called = call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    where = f"{project.file}:25: data.echo"
    assert set(called.errors) == {
        f'{where}.score: must be a number, is "high"',
        f"{where}.scor: unknown key; did you mean 'score'?",
    }


def test_the_plug_in_runs_like_a_built_in_one_and_again_after_a_release(
    project: Project, call: Calls, installed: Path, tmp_path: Path
) -> None:
    only = ("--variant", "echo", "--seeds", "0")
    called = call("run", project.file, *only)
    assert (called.code, called.errors) == (0, [])
    assert "generate echo for echo seed 0" in called.executed
    assert "| echo |" in tables(project, part="variant-echo+seeds-0")["table.md"].decode()

    shutil.copytree(installed, tmp_path / "newer")
    (info,) = (tmp_path / "newer").glob("*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    (info / "METADATA").write_text(metadata.replace("Version: 0.1.0", "Version: 0.2.0"), encoding="utf-8")
    planned = call("plan", project.file, *only, package=tmp_path / "newer").out
    assert "synthbench-echo 0.1.0 -> 0.2.0" in " ".join(planned.split())


def test_an_edited_method_generates_its_data_again(
    project: Project, call: Calls, tmp_path: Path, editable: Path
) -> None:
    project.file.write_text(DATA_ALONE, encoding="utf-8")
    (project.folder / "texts.txt").write_text("One sentence.\nAnother one.\n", encoding="utf-8")
    called = call("run", project.file, package=editable)
    assert "generate echo for echo seed 0" in called.executed
    source = tmp_path / "source/synthbench_echo.py"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("sentence2=record.sentence", "sentence2=record.sentence.upper()"))
    assert "code of 'echo' changed" in call("plan", project.file, package=editable).out


def test_without_the_package_the_name_is_unknown(project: Project) -> None:
    called = Project(project.folder, project.home).call("validate", project.file)
    assert called.code == 2
    assert "unknown method 'echo'" in called.errors[0]
