"""`synthbench status`: runs and stages under way, their progress, failures and money; on any machine."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_stages import run_job, stage
from shared_stores import on_machine
from small_experiment import Project
from typer.testing import CliRunner
from wording import worded

from synthbench.base.errors import UserError
from synthbench.cli.main import app
from synthbench.engine import run_notes
from synthbench.engine.monitor import RunMonitor
from synthbench.engine.run_notes import notes, telling
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.stores import VARIABLE, existing_store


@pytest.fixture(params=["local", "shared"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store that commands use."""
    if request.param == "local":
        return Store(tmp_path / "home" / "store")
    (tmp_path / "lab").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lab"))
    return on_machine(str(tmp_path / "lab"), tmp_path / "elsewhere")


def lines(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, ["status", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def monitor(*stages: Stage) -> RunMonitor:
    """Return a monitor of a run of these stages, of which none has started."""
    found = RunMonitor()
    found.begin(stages)
    return found


@contextmanager
def run(
    store: Store, experiment: str, *stages: Stage, usd: float = 0.0, tokens: int = 0
) -> Iterator[RunMonitor]:
    """Run nothing, and tell of it in the store."""
    found = monitor(*stages)
    with (
        store.locks.run(f"experiment {experiment}", []) as name,
        telling(store, name, experiment, found, lambda: (usd, tokens)),
    ):
        yield found


def wait_for_a_note(store: Store, of: str) -> None:
    until = time.monotonic() + 30
    while not any(of in str(note) for note in notes(store).values()):
        assert time.monotonic() < until, "the run tells nothing"
        time.sleep(0.01)


@pytest.fixture
def _told_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_notes, "SECONDS_TO_FIRST_NOTE", 0.01)
    monkeypatch.setattr(run_notes, "SECONDS_BETWEEN_NOTES", 0.01)


@pytest.mark.usefixtures("_told_often")
def test_a_run_under_way_tells_who_computes_what_how_fast_and_what_it_paid(store: Store) -> None:
    one, other, third = stage("one"), stage("other"), stage("third")
    now = 0.0
    with (
        run(store, "study", one, other, third, usd=1.25, tokens=12_345) as found,
        store.locks.stage(one.identity, "work one"),
    ):
        found.clock = lambda: now
        found.started([one])
        now = 10.0
        found.advanced(one.identity, 10, 200)
        now = 20.0
        found.advanced(one.identity, 60, 200)
        found.failed(third, ("Traceback", "ValueError: no such thing"))
        wait_for_a_note(store, "no such thing")
        said = lines()
        assert said == lines(str(store))
    assert said[0] == f"store: {store}"
    assert said[1].startswith("study: 0 of 3 stages, at least 28 s left, since ")
    assert said[2:4] == [
        "  LLMs so far: 1.2500 US dollars, 12,345 tokens, with requests in flight at their maximum",
        "  failed: work third: ValueError: no such thing",
    ]
    assert "  work one  " in said[-2]
    assert said[-2].endswith("  60/200  5.00 a second")
    assert said[-1] == "1 stage under way"


def test_a_run_that_ended_is_told_until_the_next_run_of_its_experiment(store: Store) -> None:
    for _ in range(2):
        with run(store, "study", stage("a")):
            pass
        assert [note.end for note in notes(store).values()] == ["ended"]
    with run(store, "other", stage("a")):
        pass
    assert {note.experiment for note in notes(store).values()} == {"study", "other"}
    said = lines()
    assert sum("ended, last told" in line for line in said) == 2
    assert said[-1] == "0 stages under way"


def test_a_run_that_stops_or_computes_nothing_says_so(store: Store) -> None:
    with pytest.raises(UserError), run(store, "study", stage("a")):
        raise UserError("the data are invalid")
    assert any("stopped, last told" in line for line in lines())
    with run(store, "empty"):
        pass
    assert [note.experiment for note in notes(store).values()] == ["study"]


def test_a_copy_of_a_store_without_its_locks_is_opened_as_the_same_kind(store: Store, tmp_path: Path) -> None:
    run_job(store, stage("a"))
    copy = tmp_path / "copy"
    shutil.copytree(str(store), copy, ignore=shutil.ignore_patterns("locks", "leases"))
    found = existing_store(str(copy))
    assert ((found.shared is None), found.find()) == ((store.shared is None), [stage("a").identity])


def test_a_store_that_refuses_notes_does_not_disturb_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "home" / "store")
    store.root.mkdir(parents=True)
    (store.root / "runs").write_text("a file where a folder should be", encoding="utf-8")
    with run(store, "study", stage("a")):
        pass


def test_an_unreadable_sum_of_dollars_does_not_disturb_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "home" / "store")
    with run(store, "study", stage("a"), usd=float("inf")):
        pass
    assert notes(store) == {}


def test_what_strangers_write_is_passed_over_or_shown_in_one_line(store: Store) -> None:
    root = store.root if store.shared is None else Path(str(store))
    (root / "runs").mkdir(parents=True)
    for number, text in enumerate(["", "[]", "{}", "[" * 100_000, '{"experiment": 3}']):
        (root / "runs" / f"run-{number}.json").write_text(text, encoding="utf-8")
    note = {"experiment": "a\nb", "host": "h\n", "pid": 1, "began": 1e300, "told": -1e300, "done": 1}
    (root / "runs" / "run-x.json").write_text(json.dumps({**note, "total": 2, "left": ""}), encoding="utf-8")
    said = lines()
    assert len(said) == 3
    assert said[1] == "a b: 1 of 2 stages, was killed, last told ?; process 1 on h"


def test_a_run_with_a_failed_stage_is_told_from_its_home(project: Project) -> None:
    (project.folder / "own.py").write_text(FAILING, encoding="utf-8")
    project.change(
        "  augsbert:\n", '  bad:\n    data.gold.prepare: [{step: "own.py:Failing"}]\n  augsbert:\n'
    )
    assert project.call("run", "small.yaml", "--allow-code", "--seeds", "0", "--variant", "bad").code == 3
    called = project.call("status", project.home)
    assert called.code == 0
    failed = next(line for line in called.out.splitlines() if line.startswith("  failed: "))
    assert failed.endswith("ValueError: no luck")


FAILING = """
from synthbench.api import Step

class Failing(Step):
    version = 1
    def apply(self, records, context):
        raise ValueError("no luck")
"""


@pytest.mark.parametrize(
    ("name", "fact"),
    [("nowhere", "store"), ("ftp://bucket/path", "store"), ("n" * 300, "too long")],
    ids=["nowhere", "ftp", "long"],
)
def test_what_is_no_store_is_refused_in_one_line(project: Project, name: str, fact: str) -> None:
    called = project.call("status", name)
    assert called.code == 2
    worded([called.err.strip()], fact)
