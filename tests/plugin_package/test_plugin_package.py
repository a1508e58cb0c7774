"""Somebody else's method: a distribution of its own, installed by pip, used by its name in a YAML file."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from small_experiment import Project, artifact, finished, new_project, tables

from synthbench.engine.artifacts import read_dataset

PACKAGE = Path(__file__).parent / "package"
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
    # A folder on PYTHONPATH is no site's: its .pth files are read where somebody asks for it.
    (tmp_path / "site/sitecustomize.py").write_text(
        f"import site; site.addsitedir({str(tmp_path / 'site')!r})"
    )
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
    assert re.search(r"score +number +1\.0", called.out)
    assert "augsbert  version 2" in called.out


def test_an_installed_step_and_method_ask_the_llm_of_the_experiment(project: Project) -> None:
    project.file.write_text(PREPARED, encoding="utf-8")
    called = finished(project.start("run", project.file))
    assert (called.code, called.errors) == (0, [])
    assert "prepare agreeing of gold for agreeing seed 0" in called.executed
    made = "generate reworded for agreeing seed 0"
    assert made in called.executed
    assert len(read_dataset(artifact(project, made))) == 12
    planned = finished(project.start("plan", project.file)).out
    assert "0 to run" in " ".join(planned.split()) or "nothing" in planned


def test_every_fault_of_the_configuration_is_reported_at_once(project: Project) -> None:
    project.change("sources: {texts: texts}, score: 0.75", "sources: {texts: texts}, scor: 1, score: high")
    called = finished(project.start("validate", project.file))
    assert (called.code, called.out) == (2, "")
    where = f"{project.file}:25: data.echo"
    assert set(called.errors) == {
        f'{where}.score: must be a number, is "high"',
        f"{where}.scor: unknown key; did you mean 'score'?",
    }


def test_the_plug_in_runs_like_a_built_in_one_and_again_after_a_new_release(
    project: Project, installed: Path, tmp_path: Path
) -> None:
    only = ("--variant", "echo", "--seeds", "0")
    called = finished(project.start("run", project.file, *only))
    assert (called.code, called.errors) == (0, [])
    assert "generate echo for echo seed 0" in called.executed
    assert "| echo |" in tables(project, part="variant-echo+seeds-0")["table.md"].decode()

    shutil.copytree(installed, tmp_path / "newer")
    (info,) = (tmp_path / "newer").glob("*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    (info / "METADATA").write_text(metadata.replace("Version: 0.1.0", "Version: 0.2.0"), encoding="utf-8")
    newer = Project(project.folder, project.home, {"PYTHONPATH": str(tmp_path / "newer")})
    planned = finished(newer.start("plan", project.file, *only)).out
    assert "synthbench-echo 0.1.0 -> 0.2.0" in " ".join(planned.split())


def test_an_edited_method_makes_its_data_again(tmp_path: Path, editable: Path, empty_database: Path) -> None:
    project = Project(tmp_path / "experiment", tmp_path / "home", {"PYTHONPATH": str(editable)})
    for folder in (project.folder, project.home):
        folder.mkdir()
    shutil.copy(empty_database, project.home / "mlflow.db")
    project.file.write_text(DATA_ALONE, encoding="utf-8")
    (project.folder / "texts.txt").write_text("One sentence.\nAnother one.\n", encoding="utf-8")
    assert "generate echo for echo seed 0" in finished(project.start("run", project.file)).executed
    source = tmp_path / "source/synthbench_echo.py"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("sentence2=record.sentence", "sentence2=record.sentence.upper()"))
    assert "code of 'echo' changed" in finished(project.start("plan", project.file)).out


def test_without_the_package_the_name_is_unknown(project: Project) -> None:
    called = Project(project.folder, project.home).call("validate", project.file)
    assert called.code == 2
    assert "unknown method 'echo'" in called.errors[0]
