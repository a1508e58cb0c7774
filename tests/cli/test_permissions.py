"""A foreign experiment: hosts and files that it reaches are named beforehand, or refused."""

import os
import shutil
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded

SERVICE = "https://llm.example/v1"
ASKING = """\
experiment: asking
sources:
  given: {file: gold.tsv, kind: sentence, columns: {sentence: sentence1}}
defaults:
  data:
    asked: {method: syncse-partial, sources: {sentences: given}}
"""
UNTRAINED = """\
experiment: untrained
sources:
  test: {file: test.tsv, kind: scored_pair, split: test}
defaults:
  train: {trainer: none, base: {model: ./models/bert}}
  evaluate: {sts: {evaluator: sts, tasks: [test]}}
"""


def ask(project: Project, llm: str) -> None:
    """Make the project's experiment one whose method asks this LLM."""
    project.file.write_text(f"{ASKING}llm: {llm}\n", encoding="utf-8")


def opening_of(project: Project, *arguments: str) -> list[str]:
    called = project.call("plan", project.file, *arguments)
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    return lines[: next(number for number, line in enumerate(lines) if line.startswith("time: "))]


@pytest.fixture
def own_model(project: Project, bert: Path) -> Path:
    """Let the model lie beside the experiment file, which names it so."""
    shutil.copytree(bert, project.folder / "models" / "bert")
    project.change(str(bert), "./models/bert")
    return project.folder / "models" / "bert"


def test_plan_prints_the_store_first(project: Project, own_model: Path) -> None:
    assert opening_of(project) == [f"store: {project.home / 'store'}"]


def test_the_working_folder_is_not_read(project: Project, own_model: Path, tmp_path: Path) -> None:
    elsewhere = Project(tmp_path, project.home)
    called = elsewhere.call("plan", project.file, "--set", "seeds=[0]")
    assert called.code == 0
    assert "reads outside" not in called.out


def test_a_relative_model_is_found_beside_the_file_from_any_working_folder(
    project: Project, own_model: Path, tmp_path: Path
) -> None:
    project.file.write_text(UNTRAINED, encoding="utf-8")
    elsewhere = Project(tmp_path, project.home)
    assert elsewhere.call("validate", project.file).code == 0
    assert elsewhere.call("run", project.file, "--jobs", "2").code == 0
    assert project.call("run", "small.yaml").executed == []
    scored_again = elsewhere.call("run", project.file, "--force", "evaluate")
    assert (scored_again.code, len(scored_again.executed)) == (0, 1)


def test_for_a_model_in_the_working_folder_the_message_says_how_to_write_it(
    project: Project, own_model: Path, tmp_path: Path
) -> None:
    shutil.move(project.folder / "models", tmp_path / "models")
    errors = Project(tmp_path, project.home).call("validate", project.file).errors
    (fault,) = [error for error in errors if "train.base" in error]
    assert fault.endswith(f"this is {own_model}; the one in the working folder is ../models/bert")


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_file_can_not_choose_which_variable_is_sent(project: Project, command: str) -> None:
    ask(project, f"{{name: x, base_url: '{SERVICE}', model: m, key_variable: MY_BANK_PASSWORD}}")
    called = project.call(command, project.file)
    assert called.code == 2
    worded(
        called.errors,
        f"{project.file}:7",
        "llm.key_variable",
        "_API_KEY",
        "--set",
        "llm.key_variable=NAME",
        "NAME",
        "SYNTHBENCH_KEY_VARIABLES",
    )


def test_a_profile_or_included_file_can_not_allow_a_variable(project: Project) -> None:
    llm = f"llm: {{name: x, base_url: '{SERVICE}', model: m, key_variable: SECRET}}\n"
    (project.folder / "profiles").mkdir()
    (project.folder / "profiles" / "fast.yaml").write_text(f"experiment:\n  {llm}", encoding="utf-8")
    project.file.write_text(ASKING, encoding="utf-8")
    (refused,) = project.call("validate", "small.yaml", "--profile", "fast").errors
    assert "llm.key_variable: a file may only name" in refused
    (project.folder / "--set x").write_text(llm, encoding="utf-8")
    project.file.write_text(f"include: ['--set x']\n{ASKING}", encoding="utf-8")
    (refused,) = project.call("validate", "small.yaml").errors
    assert "llm.key_variable: a file may only name" in refused


def test_the_user_can_allow_a_variable(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(project, f"{{name: x, base_url: '{SERVICE}', model: m, key_variable: SECRET}}")
    monkeypatch.setenv("SYNTHBENCH_KEY_HOSTS", "llm.example")
    allowed = "sends to llm.example: prompts and the key in SECRET, for the LLM 'x'"
    assert opening_of(project, "--set", "llm.key_variable=SECRET")[1:] == [allowed]
    monkeypatch.setenv("SYNTHBENCH_KEY_VARIABLES", "OTHER, SECRET")
    assert opening_of(project)[1:] == [allowed]


@pytest.mark.parametrize(
    ("llm", "line"),
    [
        (
            f"{{name: x, base_url: '{SERVICE}', model: m, key_variable: OPENAI_API_KEY}}",
            "sends to llm.example: prompts and the key in OPENAI_API_KEY, for the LLM 'x'; the key only with"
            " --allow-host llm.example",
        ),
        (
            "{name: x, base_url: 'https://api.openai.com/v1', model: m, key_variable: OPENAI_API_KEY}",
            "sends to api.openai.com: prompts and the key in OPENAI_API_KEY, for the LLM 'x'",
        ),
        (
            "{name: x, base_url: 'http://10.0.0.7:8000/v1', model: m}",
            "sends to 10.0.0.7:8000 (not encrypted): prompts, no key, for the LLM 'x'",
        ),
        (
            "{name: x, base_url: 'http://localhost:8000/v1', model: m}",
            "sends to localhost:8000: prompts, no key, for the LLM 'x'",
        ),
    ],
)
def test_a_host_is_named_before_any_request(project: Project, llm: str, line: str) -> None:
    ask(project, llm)
    assert opening_of(project)[1:] == [line]
    said = [text[9:] for text in project.call("run", project.file).err.splitlines()]
    assert (said[0], said[2]) == (f"store: {project.home / 'store'}", line)


def test_a_run_sends_no_key_to_a_new_host(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0")
    ask(project, f"{{name: x, base_url: '{SERVICE}', model: m, key_variable: OPENAI_API_KEY}}")
    called = project.call("run", project.file)
    assert called.code == 2
    worded(
        called.errors, "llm.base_url", "OPENAI_API_KEY", "--allow-host llm.example", "SYNTHBENCH_KEY_HOSTS"
    )


def test_llms_that_get_no_requests_are_not_named(project: Project) -> None:
    for llm in (f"{{name: x, base_url: '{SERVICE}', model: m, offline: true}}", "sandbox"):
        ask(project, llm)
        assert len(opening_of(project)) == 1


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com@evil.example/v1",
        "https://api.openai.com\\\\@evil.example/v1",
        "https://evil.example/#api.openai.com",
        "https://\\u0430pi.openai.com/v1",
        "https://evil.example\\t/v1",
        "https://evil.example/\\e[2K",
    ],
)
def test_an_address_that_imitates_another_is_refused(project: Project, address: str) -> None:
    ask(project, f'{{name: x, base_url: "{address}", model: m}}')
    called = project.call("validate", project.file)
    assert called.code == 2
    assert "llm.base_url: must " in called.errors[0]


def test_files_outside_the_experiments_folder_are_named(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "private"
    own.mkdir()
    for name in ("gold.tsv", "test.tsv", "dev.tsv"):
        shutil.move(project.folder / name, own / name)
    (own / "more.yaml").write_text("description: mine\n", encoding="utf-8")
    (project.folder / "gold.tsv").symlink_to(own / "gold.tsv")
    (project.folder / "dev.tsv").hardlink_to(own / "dev.tsv")
    project.change("test: {file: test.tsv", f"test: {{file: {own}/test.tsv")
    above = os.path.relpath(own / "more.yaml", project.folder)
    project.change("description: What silver pairs do in the smallest world", f"include: [{above}]")
    _, line = opening_of(project)
    named = line.removeprefix(f"reads outside {project.folder}: ").split(", ")
    assert set(named) >= {f"{own}/gold.tsv", f"{own}/test.tsv", f"{own}/more.yaml"}
    assert f"{own}/dev.tsv" not in named


def test_a_data_folder_is_named_unless_the_user_set_it(
    project: Project, own_model: Path, tmp_path: Path
) -> None:
    own = tmp_path / "private"
    own.mkdir()
    shutil.move(project.folder / "test.tsv", own / "test.tsv")
    project.change("test: {file: test.tsv", "test: {file: 'data:test.tsv'")
    assert len(opening_of(project, "--data", str(own))) == 1
    project.change("seeds: [0, 1]", f"seeds: [0, 1]\ncorpora: {{folder: {own}}}")
    assert opening_of(project)[1:] == [f"reads outside {project.folder}: {own}/test.tsv"]
    project.change("'data:test.tsv'", f"'data:../{project.folder.name}/x/../../private/test.tsv'")
    (project.folder / "x").mkdir()
    assert "private/test.tsv" in opening_of(project, "--data", str(project.folder))[1]
