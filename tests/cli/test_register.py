"""`synthbench register`, and what a run tells of its registration."""

import hashlib
import json
from pathlib import Path

import pytest
from small_experiment import Called, Project

from synthbench.base.home import home
from synthbench.reporting.model.registration_note import DECLARED
from synthbench.tracking.mlflow_tracker import MlflowTracker


def registrations(project: Project) -> list[Path]:
    return sorted((project.home / "store" / "registrations").glob("*.json"))


def test_register_trains_nothing_and_prints_the_hash(project: Project) -> None:
    called = project.call("register", "small.yaml", "--export", "declared.json")
    assert called.code == 0
    assert {stage.split()[0] for stage in called.executed} == {"source", "exclude"}
    exported = (project.folder / "declared.json").read_bytes()
    digest = hashlib.sha256(exported).hexdigest()
    assert [file.stem for file in registrations(project)] == [digest]
    assert called.out.splitlines()[1:] == [DECLARED, f"hash: {digest}", "declared.json: written"]
    again = project.call("register", "small.yaml", "--export", "declared.json")
    assert (again.out, again.executed) == (called.out, [])


def test_overrides_declare_something_else_and_replace_no_file(project: Project) -> None:
    assert project.call("register", "small.yaml", "--export", "declared.json").code == 0
    called = project.call("register", "small.yaml", "--seeds", "3", "--export", "declared.json")
    assert called.code == 2
    (error,) = called.errors
    assert error.startswith("declared.json: holds another registration, of 'small' at 2")
    assert len(registrations(project)) == 1
    assert project.call("register", "small.yaml", "--seeds", "3").code == 0
    assert len(registrations(project)) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("small.yaml", "small.yaml: exists, and is no registration; name another file"),
        (".", ".: is a folder; name a file"),
        ("gone/declared.json", "gone/declared.json: no folder 'gone'; make it first"),
    ],
)
def test_a_file_that_cant_be_written_is_refused_in_one_line(
    project: Project, name: str, message: str
) -> None:
    called = project.call("register", "small.yaml", "--export", name)
    assert (called.code, called.errors) == (2, [message])
    assert not list((project.home / "store").rglob("registrations/*.json"))


def test_a_file_in_place_of_the_registrations_is_refused_in_one_line(project: Project) -> None:
    (project.home / "store").mkdir(parents=True)
    (project.home / "store" / "registrations").write_text("")
    called = project.call("register", "small.yaml")
    assert called.code == 2
    assert called.errors == ["small.yaml: not registered: the test items are unknown"]


UNSCORED = """\
experiment: unscored
sources: {pairs: {file: gold.tsv, kind: scored_pair}}
seeds: [0]
defaults:
  data: {pairs: {source: pairs}}
  audit: {labels: {part: pairs}}
baseline: all
"""


def test_an_experiment_without_test_sets_is_refused(project: Project) -> None:
    project.file.write_text(UNSCORED, encoding="utf-8")
    called = project.call("register", "small.yaml")
    assert called.code == 2
    assert called.errors == ["small.yaml: nothing to register: no row is scored on a test set"]


def test_invalid_test_data_are_refused(project: Project) -> None:
    (project.folder / "test.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t7\n")
    called = project.call("register", "small.yaml")
    assert called.code == 2
    assert "test.tsv" in called.errors[0]
    assert registrations(project) == []


def test_the_registration_travels(
    finished_run: tuple[Project, Called], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, called = finished_run
    assert called.code == 0
    (file,) = registrations(project)
    reports = project.folder / "reports" / "small"
    assert f"- {DECLARED}\n" in (reports / "table.md").read_text("utf-8")
    assert f"registration: {DECLARED}\n" in called.out
    assert any(DECLARED in (reports / name).read_text("utf-8") for name in ("table.tex", "notes.tex"))
    assert DECLARED in (reports / "report.html").read_text("utf-8")
    monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
    result = MlflowTracker(home()).load("small")
    assert result.registration is not None
    assert result.registration.hash == file.stem
    export = ("export", "model", "small.yaml", "gold-only", "--to", str(tmp_path / "model"))
    assert project.call(*export).code == 0
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert f"{DECLARED[:-1]} (registration {file.stem[:12]}, {result.registration.time[:16]} UTC)." in card
    lineage = json.loads((tmp_path / "model" / "lineage.json").read_text("utf-8"))
    assert lineage["registration"]["hash"] == file.stem
