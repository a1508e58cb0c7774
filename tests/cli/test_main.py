"""Rules for every command: exit codes, output streams, error messages."""

import importlib.metadata
from pathlib import Path

import pytest
from small_experiment import Project, finished

from synthbench.base.errors import UserError


def test_version_is_the_installed_one(project: Project) -> None:
    called = project.call("--version")
    assert (called.code, called.out) == (0, f"synthbench {importlib.metadata.version('synthbench')}\n")


def test_help_names_every_command(project: Project) -> None:
    called = project.call("--help")
    assert called.code == 0
    for command in ("run", "plan", "validate", "report", "evaluate", "list", "data"):
        assert f"\n  {command} " in called.out


@pytest.mark.parametrize("command", ["run", "plan", "validate", "report", "evaluate", "list", "data"])
def test_every_command_explains_itself(project: Project, command: str) -> None:
    called = project.call(command, "--help")
    assert called.code == 0
    assert called.out.startswith("Usage: ")
    assert f" {command} [OPTIONS]" in called.out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Usage: "),
        (("rnu", "small.yaml"), "No such command 'rnu'"),
        (("run",), "Missing argument"),
        (("run", "small.yaml", "--job", "2"), "--job"),
        (("run", "small.yaml", "--jobs", "0"), "--jobs"),
        (("list", "methodz"), "did you mean 'methods'?"),
    ],
)
def test_an_invalid_command_line_has_exit_code_2(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    called = project.call(*arguments)
    assert (called.code, called.out) == (2, "")
    assert said in called.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "Missing argument 'file'. (see synthbench run --help)"),
        (
            ("run", "small.yaml", "--jobs", "0"),
            "Invalid value for '--jobs': must be greater than or equal to 1 (see synthbench run --help)",
        ),
        (
            ("sandbox", "serve", "--faults-by", "luck"),
            "Invalid value for '--faults-by': 'luck' is not one of 'attempt', 'arrival'. "
            "(see synthbench sandbox serve --help)",
        ),
        (
            ("compare", "a", "b", "--page", "c"),
            "No such option: --page: it is gone; `compare` prints the same",
        ),
        (("clean", "--all"), "No such option: --all (see synthbench clean --help)"),
    ],
)
def test_an_invalid_command_line_is_reported_in_one_line(
    project: Project, arguments: tuple[str, ...], message: str
) -> None:
    assert project.call(*arguments).err == f"error: {message}\n"


@pytest.mark.parametrize("command", ["run", "plan", "validate", "report"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.yaml", None, "nowhere.yaml: no such file"),
        (".", None, ".: is a folder, not a file"),
        ("empty.yaml", b"", "empty.yaml:1: must be a mapping"),
        ("latin.yaml", b"experiment: caf\xe9\n", "latin.yaml:1: not UTF-8"),
        ("broken.yaml", b"experiment: [x\nseeds: 1\n", "broken.yaml:2: not valid YAML"),
        ("twice.yaml", b"experiment: x\nexperiment: y\n", "twice.yaml:2: "),
        ("outside.yaml", b"experiment: ../x\n", "outside.yaml:1: experiment: "),
    ],
)
def test_a_file_that_is_no_experiment_is_refused_by_every_command(
    project: Project, command: str, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (project.folder / name).write_bytes(content)
    called = project.call(command, name)
    assert (called.code, called.out) == (2, "")
    assert called.errors[0].startswith(message)
    assert not project.home.exists()


def test_every_message_of_a_user_error_has_its_own_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UserError("first", "second")

    monkeypatch.setattr("synthbench.config.load.load_experiment", fail)
    called = project.call("validate", project.file)
    assert (called.code, called.out, called.err) == (2, "", "error: first\nerror: second\n")


def test_interruption_has_exit_code_130(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("synthbench.config.load.load_experiment", interrupt)
    called = project.call("validate", project.file)
    assert called.code == 130
    assert "Traceback" not in called.err


def test_internal_errors_show_a_traceback_without_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no answer from http://me:hush@host/?key=hush")

    monkeypatch.setattr("synthbench.config.load.load_experiment", fail)
    called = project.call("validate", project.file)
    assert called.code == 1
    first, *_, last = called.err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last == "ZeroDivisionError: no answer from http://me:***@host/?key=***"


def test_the_home_is_a_hidden_folder_in_the_working_folder_unless_the_environment_sets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from synthbench.base.home import home

    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path))
    assert home() == tmp_path
    monkeypatch.setenv("SYNTHBENCH_HOME", "")
    assert home() == Path(".synthbench")
    monkeypatch.delenv("SYNTHBENCH_HOME")
    assert home() == Path(".synthbench")


def test_characters_that_the_terminal_lacks_are_replaced(project: Project) -> None:
    file = project.file.rename(project.folder / "größe.yaml")
    elsewhere = Project(project.folder, project.home, {"PYTHONIOENCODING": "ascii"})
    called = finished(elsewhere.start("validate", file.name))
    assert (called.code, called.err) == (0, "")
    assert called.out.endswith("gr??e.yaml: valid: 2 variants, seeds 0, 1\n")
