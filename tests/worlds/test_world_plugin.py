"""The world is a plug-in: without it, files that use it are refused in one line; others work."""

import subprocess
import sys

import pytest
from small_experiment import Project

OFFERED = """\
import sys
from importlib.metadata import EntryPoint
from synthbench.base import entry_points
offered = entry_points.offered
points = tuple(EntryPoint("sandbox", value, "synthbench.worlds") for value in {values})
worlds = {{"sandbox": points}} if points else {{}}
entry_points.offered = lambda group: worlds if group == "worlds" else offered(group)
from synthbench.cli.main import main
sys.argv = ["synthbench", *sys.argv[1:]]
main()
"""
MISSING = "no installed package offers the world 'sandbox'; install synthbench again"
NAMING_IT = """\
llm: sandbox
sources:
  world: {sandbox: pairs, split: test, size: 10}
"""


def said(project: Project, *arguments: str, values: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Return the exit code and the errors of a command where these classes are offered as the world."""
    command = [sys.executable, "-c", OFFERED.format(values=values), *arguments]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


def test_without_a_world_only_sections_that_name_one_are_refused(project: Project) -> None:
    assert said(project, "validate", "small.yaml") == (0, [])
    project.change("sources:\n", NAMING_IT)
    text = project.file.read_text(encoding="utf-8").splitlines()
    llm, source = text.index("llm: sandbox") + 1, text.index("sources:") + 2
    assert said(project, "validate", "small.yaml") == (
        2,
        [f"error: small.yaml:{source}: sources.world: {MISSING}", f"error: small.yaml:{llm}: llm: {MISSING}"],
    )


def test_without_a_world_other_commands_still_work(project: Project) -> None:
    assert said(project, "--help") == (0, [])
    assert said(project, "list", "methods") == (0, [])
    assert said(project, "sandbox", "serve") == (2, [f"error: {MISSING}"])


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (("pathlib:Path",), "pathlib:Path is not a World, as 'sandbox' must be"),
        (("nowhere:World",), "world 'sandbox' (nowhere:World) can't be loaded: No module named 'nowhere'"),
        (("a:A", "b:B"), "two installed packages offer the world 'sandbox': a:A and b:B; uninstall one"),
    ],
)
def test_a_faulty_world_is_reported_in_one_line(
    project: Project, values: tuple[str, ...], fault: str
) -> None:
    code, errors = said(project, "sandbox", "serve", values=values)
    assert (code, len(errors)) == (2, 1)
    assert errors[0].startswith(f"error: {fault}")
