"""Data of a plug-in are used again while its code is the same: its release, or the content of its files."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEvaluator, FakeMethod, FakeTrainer
from wording import refused

from synthbench.api import Component
from synthbench.engine.stage import Stage, difference
from synthbench.plugins.code import code_of
from synthbench.plugins.loading import GROUPS
from synthbench.stages.evaluation import Evaluate
from synthbench.stages.generation import Generate
from synthbench.stages.training import Train

METHOD = """\
from typing import ClassVar
from synthbench.api import Method, RecordKind

class Echo({base}):
    version = 1
    record_kind = RecordKind.PAIR

    def generate(self, sources, context):
        yield from ()
"""
ECHO = METHOD.format(base="Method")
Load = Callable[..., Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import the class `Echo` of a module that lies in a folder."""

    def imported(folder: Path, module: str = "echo_plugin") -> Any:
        forget(module)
        monkeypatch.syspath_prepend(folder)
        return importlib.import_module(module).Echo

    yield imported
    for module in ("echo_plugin", "echo_base", "shared_space"):
        forget(module)


def forget(module: str) -> None:
    top = module.split(".")[0]
    for name in [name for name in sys.modules if name.split(".")[0] == top]:
        del sys.modules[name]


def package(folder: Path, files: dict[str, str] | None = None, name: str = "echo_plugin") -> Path:
    """Write a package with the method, and further files, into a folder; return the folder."""
    for inner, text in {"__init__.py": ECHO, **(files or {})}.items():
        file = folder / name / inner
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def release(folder: Path, version: str = "1.0", record: str = "echo_plugin/__init__.py", **more: str) -> Path:
    """Write beside a package what pip leaves of an installation; return the folder."""
    info = folder / f"Echo_Plugin-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Echo.Plugin\nVersion: {version}\n")
    (info / "RECORD").write_text(f"other.py,,\n{record},sha256=abc,12\n")
    for name, text in more.items():
        (info / f"{name}.json").write_text(text)
    return folder


def code(plugin: type[Component]) -> dict[str, str]:
    return code_of([("echo", plugin())]).get("echo", {})


def test_a_packages_code_is_the_content_of_its_files(tmp_path: Path, load: Load) -> None:
    files = {"words/more.py": "a = 1\n", "prompts.txt": "Say it again:\n"}
    first = code(load(package(tmp_path / "first", files)))
    assert first["echo_plugin"].startswith("sha256:")
    other = package(tmp_path / "second", dict(reversed(files.items())))
    os.utime(other / "echo_plugin/prompts.txt", (1, 1))
    assert code(load(other)) == first, "neither where it lies nor when it was written matters"
    for name, text in (("words/more.py", "a = 2\n"), ("prompts.txt", "Again:\n"), ("new.json", "{}")):
        assert code(load(package(tmp_path / name, {**files, name: text}))) != first, name


def test_compiled_and_hidden_files_are_no_code(tmp_path: Path, load: Load) -> None:
    plain = code(load(package(tmp_path / "plain")))
    more = {"__pycache__/x.cpython-311.pyc": "1", ".git/HEAD": "2", ".swap": "3"}
    assert code(load(package(tmp_path / "more", more))) == plain


def test_a_single_modules_code_is_its_file_alone(tmp_path: Path, load: Load) -> None:
    (tmp_path / "echo_plugin.py").write_text(ECHO)
    first = code(load(tmp_path))
    (tmp_path / "notes.py").write_text("")
    assert code(load(tmp_path)) == first
    (tmp_path / "echo_plugin.py").write_text(ECHO + "# more\n")
    importlib.invalidate_caches()
    assert code(load(tmp_path)) != first


def test_a_released_package_is_identified_by_name_and_version(tmp_path: Path, load: Load) -> None:
    assert code(load(release(package(tmp_path)))) == {"echo_plugin": "echo-plugin 1.0"}


@pytest.mark.parametrize(
    "url", ['{"url": "file:///src", "dir_info": {"editable": true}}', '{"url": "file:///echo-1.0.whl"}']
)
def test_packages_installed_from_a_folder_or_file_are_identified_by_content(
    tmp_path: Path, load: Load, url: str
) -> None:
    installed = load(release(package(tmp_path), direct_url=url))
    assert code(installed)["echo_plugin"].startswith("sha256:")


def test_a_package_that_shadows_a_release_is_not_identified_as_the_release(
    tmp_path: Path, load: Load
) -> None:
    release(package(tmp_path / "site"))
    assert code(load(package(tmp_path / "mine")))["echo_plugin"].startswith("sha256:")
    release(package(tmp_path / "dropped in"), record="another/__init__.py")
    assert code(load(tmp_path / "dropped in"))["echo_plugin"].startswith("sha256:")


def test_in_a_shared_namespace_only_the_plug_ins_own_package_counts(tmp_path: Path, load: Load) -> None:
    first = code(load(package(tmp_path, name="shared_space/echo"), "shared_space.echo"))
    assert list(first) == ["shared_space.echo"]
    package(tmp_path, {"__init__.py": "changed = 1\n"}, name="shared_space/other")
    assert code(load(tmp_path, "shared_space.echo")) == first
    release(tmp_path, record="shared_space/echo/__init__.py")
    assert code(load(tmp_path, "shared_space.echo")) == {"shared_space.echo": "echo-plugin 1.0"}


def test_inherited_code_is_part_of_the_identity(tmp_path: Path, load: Load) -> None:
    package(tmp_path, {"__init__.py": ECHO}, name="echo_base")
    heir = "from echo_base import Echo as Base\n" + METHOD.format(base="Base")
    both = code(load(package(tmp_path, {"__init__.py": heir})))
    assert sorted(both) == ["echo_base", "echo_plugin"]
    of_ours = "from synthbench_dino import DINO\n" + METHOD.format(base="DINO")
    own = load(package(tmp_path / "second", {"__init__.py": of_ours}))
    assert list(code_of([("echo", own.model_construct())])["echo"]) == ["echo_plugin"]


def test_components_of_synthbench_are_identified_by_version_alone() -> None:
    """Golden outputs hold them to it; stores must survive that we tidy up."""
    groups = [f"synthbench.{group}" for group in GROUPS]
    points = [point for point in distribution("synthbench").entry_points if point.group in groups]
    assert len(points) > 15
    assert code_of([(point.name, point.load().model_construct()) for point in points]) == {}


def test_every_stage_that_a_plug_in_computes_has_the_plug_ins_code_in_its_identity() -> None:
    trainer = FakeTrainer.model_construct()
    code = {"fakes": code_of([("fake", FakeMethod())])["fake"]["fakes"]}
    train = Train("fake", trainer, 0, "other", FakeEvaluator())
    assert Stage(Generate("fake", FakeMethod())).operation.code() == {"fake": code}
    assert Evaluate("fake", FakeEvaluator()).code() == {"fake": code}
    assert train.code() == {"fake": code, "other": code}
    assert Stage(Generate("fake", FakeMethod())).spec["code"] == {"fake": code}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"echo": {"echo": "sha256:1"}}, {"echo": {"echo": "sha256:2"}}, "code of 'echo' changed"),
        ({"echo": {"echo": "echo 1.0"}}, {"echo": {"echo": "echo 1.1"}}, "echo 1.0 -> 1.1"),
        ({"echo": {"echo": "echo 1.0"}}, {"echo": {"echo": "fork 1.0"}}, "echo 1.0 -> fork 1.0"),
        ({"echo": {"echo": "echo 1.0"}}, {"echo": {"echo": "sha256:2"}}, "code of 'echo' changed"),
        ({"echo": {"a": "a 1", "b": "b 1"}}, {"echo": {"a": "a 2", "b": "b 1"}}, "a 1 -> 2"),
        ({"echo": {"a": "a 1"}}, {"echo": {"a": "a 1", "b": "b 1"}}, "code of 'echo' changed"),
        ({}, {"echo": {"echo": "echo 1.0"}}, "code of 'echo' was not recorded"),
        ({"old": {"old": "sha256:1"}}, {"new": {"new": "sha256:2"}}, ""),
    ],
)
def test_changed_code_is_reported(before: Any, after: Any, words: str) -> None:
    assert difference({"code": before}, {"code": after}) == words


def test_a_process_with_other_code_than_planned_computes_nothing() -> None:
    stage = Stage(Generate("fake", FakeMethod()), label="silver")
    stage.check_code()
    stage.spec["code"]["fake"]["fakes"] = "sha256:before it was edited"
    with refused("'fake'"):
        stage.check_code()
