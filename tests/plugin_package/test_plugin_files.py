"""A method may be a class in a Python file beside the experiment; its code runs where the user allows it."""

import os
from pathlib import Path

import pytest
from small_experiment import Project
from wording import refused, worded

import synthbench
from synthbench.plugins.files import ALLOWED, allow_code, may_run_code

METHOD = '''\
from synthbench.api import Method, Pair, RecordKind, Unit

class Echo(Method):
    """Pairs each text with itself, `times` times."""

    version = 1
    record_kind = RecordKind.PAIR
    source_roles = {"texts": RecordKind.SENTENCE}
    times: int = 1

    def generate(self, sources, context):
        for number, record in enumerate(sources["texts"]):
            text = record.sentence
            yield Unit(str(number), number, (Pair(anchor=text, positive=text),) * self.times)
'''
EXPERIMENT = """\
experiment: small
sources: {texts: {file: texts.txt}}
baseline: echo
defaults:
  data.echo: {method: "echo.py:Echo", sources: {texts: texts}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An experiment whose method is in `echo.py` beside it."""
    monkeypatch.delenv(ALLOWED, raising=False)
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "small.yaml").write_text(EXPERIMENT)
    (folder / "echo.py").write_text(METHOD)
    (folder / "texts.txt").write_text("A dog runs.\nIt rains.\n")
    return Project(folder, tmp_path / "home")


def edit(project: Project, old: str, new: str) -> None:
    file = project.folder / "echo.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_an_experiments_code_runs_only_with_the_users_permission(project: Project, command: str) -> None:
    edit(project, "from synthbench", "open('ran', 'w').close()\nfrom synthbench")
    called = project.call(command, "small.yaml")
    assert called.code == 2
    worded(
        called.errors,
        "small.yaml:5",
        "data.echo.method",
        str(project.folder / "echo.py"),
        "--allow-code",
        ALLOWED,
    )
    assert not (project.folder / "ran").exists()
    assert project.call(command, "small.yaml", "--allow-code").code == 0
    assert (project.folder / "ran").exists()


def test_a_folder_whose_path_would_read_as_two_cannot_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ALLOWED, raising=False)
    with refused(f"a{os.pathsep}b", ALLOWED):
        allow_code(tmp_path / f"a{os.pathsep}b")
    assert not may_run_code()


def test_plan_and_run_name_the_file_that_runs(project: Project) -> None:
    line = f"runs code: {project.folder / 'echo.py'}"
    assert line in project.call("plan", "small.yaml", "--allow-code").out.splitlines()
    assert line in project.call("run", "small.yaml", "--allow-code").err


def test_a_user_setting_allows_a_folder_permanently(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED, f"{project.folder.parent / 'other'}{os.pathsep}{project.folder.parent}")
    assert project.call("validate", "small.yaml").code == 0
    monkeypatch.setenv(ALLOWED, str(project.folder.parent / "other"))
    assert project.call("validate", "small.yaml").code == 2


def test_permission_for_the_experiments_folder_does_not_cover_files_elsewhere(project: Project) -> None:
    (project.folder / "echo.py").rename(project.folder.parent / "echo.py")
    project.change("echo.py:Echo", "../echo.py:Echo")
    assert project.call("validate", "small.yaml", "--allow-code").code == 2


def test_the_method_generates_data_in_a_separate_process(project: Project) -> None:
    project.change('"echo.py:Echo"', '"echo.py:Echo", times: 2')
    called = project.call("run", "small.yaml", "--allow-code", "--jobs", "2")
    assert (called.code, called.errors) == (0, [])
    assert "generate echo.py:Echo" in " ".join(called.executed)


def test_only_a_changed_file_causes_new_data_wherever_the_file_lies(project: Project, tmp_path: Path) -> None:
    assert "2 stages executed" in project.call("run", "small.yaml", "--allow-code").err
    moved = project.folder.rename(tmp_path / "moved")
    project = Project(moved, project.home)
    assert "0 stages executed, 2 reused" in project.call("run", "small.yaml", "--allow-code").err
    # Same size, same second: only the content reveals the change.
    edit(project, "* self.times", "* self.time5")
    edit(project, "times: int", "time5: int")
    called = project.call("run", "small.yaml", "--allow-code")
    assert "1 stages executed, 1 reused" in called.err
    edit(project, "* self.time5", "* self.time5 * 2")
    plan = project.call("plan", "small.yaml", "--allow-code", "--stages").out
    assert "code of 'echo.py:Echo' changed" in plan


def test_a_name_that_the_file_does_not_define_is_refused_with_the_nearest(project: Project) -> None:
    project.change("echo.py:Echo", "echo.py:Ecko")
    called = project.call("validate", "small.yaml", "--allow-code")
    worded(called.errors, "small.yaml:5", "data.echo.method", "'Ecko'", "'Echo'")


def test_a_missing_file_or_broken_contract_is_reported_in_one_line(project: Project) -> None:
    edit(project, "    version = 1\n", "")
    worded(project.call("validate", "small.yaml", "--allow-code").errors, "echo.py", "`version = 1`")
    edit(project, "class Echo", "class Echo(")
    worded(project.call("validate", "small.yaml", "--allow-code").errors, "echo.py", "SyntaxError")
    (project.folder / "echo.py").unlink()
    worded(project.call("validate", "small.yaml", "--allow-code").errors, "small.yaml:5", "echo.py")


def test_running_from_python_needs_the_same_permission_in_each_call(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
    monkeypatch.setenv(ALLOWED, "")
    with refused("small.yaml:5", "--allow-code"):
        synthbench.run(project.file, output=project.folder / "reports")
    synthbench.run(project.file, output=project.folder / "reports", allow_code=True)
    assert len(list(project.home.glob("store/artifacts/*/*/stage.json"))) == 2
    with refused("small.yaml:5", "--allow-code"):
        synthbench.load(project.file)
    assert synthbench.load(project.file, allow_code=True).result.runs
