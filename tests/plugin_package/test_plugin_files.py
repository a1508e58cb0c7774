"""A method may be a class in a Python file beside the experiment; its code runs where the user allows it."""

import os
from pathlib import Path

import pytest
from small_experiment import Place, finished
from wording import refused, worded

import synthbench
from synthbench.plugin_files import ALLOWED

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An experiment whose method is in `echo.py` beside it."""
    monkeypatch.delenv(ALLOWED, raising=False)
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "small.yaml").write_text(EXPERIMENT)
    (folder / "echo.py").write_text(METHOD)
    (folder / "texts.txt").write_text("A dog runs.\nIt rains.\n")
    return Place(folder, tmp_path / "home")


def edit(place: Place, old: str, new: str) -> None:
    file = place.folder / "echo.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_the_code_of_an_experiment_runs_only_if_the_user_says_so(place: Place, command: str) -> None:
    edit(place, "from synthbench", "open('ran', 'w').close()\nfrom synthbench")
    called = place.call(command, "small.yaml")
    assert called.code == 2
    worded(
        called.errors,
        "small.yaml:5",
        "data.echo.method",
        str(place.folder / "echo.py"),
        "--allow-code",
        ALLOWED,
    )
    assert not (place.folder / "ran").exists()
    assert place.call(command, "small.yaml", "--allow-code").code == 0
    assert (place.folder / "ran").exists()


def test_plan_and_run_name_the_file_that_runs(place: Place) -> None:
    line = f"runs code: {place.folder / 'echo.py'}"
    assert line in place.call("plan", "small.yaml", "--allow-code").out.splitlines()
    assert line in place.call("run", "small.yaml", "--allow-code").err


def test_a_setting_of_the_users_own_allows_a_folder_for_good(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED, f"{place.folder.parent / 'other'}{os.pathsep}{place.folder.parent}")
    assert place.call("validate", "small.yaml").code == 0
    monkeypatch.setenv(ALLOWED, str(place.folder.parent / "other"))
    assert place.call("validate", "small.yaml").code == 2


def test_a_file_elsewhere_is_not_allowed_with_the_folder_of_the_experiment(place: Place) -> None:
    (place.folder / "echo.py").rename(place.folder.parent / "echo.py")
    place.change("echo.py:Echo", "../echo.py:Echo")
    assert place.call("validate", "small.yaml", "--allow-code").code == 2


def test_the_method_makes_data_in_a_process_of_its_own(place: Place) -> None:
    place.change('"echo.py:Echo"', '"echo.py:Echo", times: 2')
    called = finished(place.start("run", "small.yaml", "--allow-code", "--jobs", "2"))
    assert (called.code, called.errors) == (0, [])
    assert "generate echo.py:Echo" in " ".join(called.executed)


def test_data_are_made_again_only_if_the_file_changes_wherever_it_lies(place: Place, tmp_path: Path) -> None:
    assert "2 stages executed" in place.call("run", "small.yaml", "--allow-code").err
    moved = place.folder.rename(tmp_path / "moved")
    place = Place(moved, place.home)
    assert "0 stages executed, 2 reused" in place.call("run", "small.yaml", "--allow-code").err
    # As long as it was, and within the same second: nothing but the content tells.
    edit(place, "* self.times", "* self.time5")
    edit(place, "times: int", "time5: int")
    called = place.call("run", "small.yaml", "--allow-code")
    assert "1 stages executed, 1 reused" in called.err
    edit(place, "* self.time5", "* self.time5 * 2")
    plan = place.call("plan", "small.yaml", "--allow-code", "--stages").out
    assert "code of 'echo.py:Echo' changed" in plan


def test_a_name_that_the_file_does_not_define_is_refused_with_the_nearest(place: Place) -> None:
    place.change("echo.py:Echo", "echo.py:Ecko")
    called = place.call("validate", "small.yaml", "--allow-code")
    worded(called.errors, "small.yaml:5", "data.echo.method", "'Ecko'", "'Echo'")


def test_a_file_that_is_not_there_or_does_not_keep_the_contract_is_one_line(place: Place) -> None:
    edit(place, "    version = 1\n", "")
    worded(place.call("validate", "small.yaml", "--allow-code").errors, "echo.py", "`version = 1`")
    edit(place, "class Echo", "class Echo(")
    worded(place.call("validate", "small.yaml", "--allow-code").errors, "echo.py", "SyntaxError")
    (place.folder / "echo.py").unlink()
    worded(place.call("validate", "small.yaml", "--allow-code").errors, "small.yaml:5", "echo.py")


def test_python_asks_for_the_same_permission(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHBENCH_HOME", str(place.home))
    monkeypatch.setenv(ALLOWED, "")
    with refused("small.yaml:5", "--allow-code"):
        synthbench.run(place.file, output=place.folder / "reports")
    synthbench.run(place.file, output=place.folder / "reports", allow_code=True)
    assert len(list(place.home.glob("store/artifacts/*/*/stage.json"))) == 2
