"""Unfinished work in a shared store: another machine goes on from what a lost one had saved."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_stages import RUNTIME, Work, carry_out, in_process, names
from fakes import Lines, work_done
from shared_stores import on_machine

from synthbench.base.durability import seal, unseal
from synthbench.engine import workers
from synthbench.engine.cleaning import clean, take_inventory
from synthbench.engine.holdings import UNFINISHED
from synthbench.engine.jobs import StageJob
from synthbench.engine.local_executors import executor
from synthbench.engine.objects import FolderObjects, UnavailableError
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Journal, Workspace

A = "a" * 64
SECONDS = 0.6
"""Of a lease here, so that new work is looked for every 50 ms."""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """The folder of an empty shared store."""
    (tmp_path / "network").mkdir()
    return tmp_path / "network"


@pytest.fixture
def machine(network: Path, tmp_path: Path) -> Callable[[str], Store]:
    """Return the store as a machine of this name sees it, with a cache of its own."""
    return lambda name: on_machine(str(network), tmp_path / name, SECONDS)


@pytest.fixture
def here(machine: Callable[[str], Store]) -> Store:
    """The store as this machine sees it."""
    return machine("here")


@pytest.fixture
def there(machine: Callable[[str], Store]) -> Store:
    """The store as another machine sees it."""
    return machine("there")


class StoppedError(Exception):
    """Work was interrupted."""


@contextmanager
def working(store: Store, identity: str = A) -> Iterator[Path]:
    """Work in a stage's folder, and stop before it is finished."""
    folder = store.workspace(identity)
    with suppress(StoppedError), store.saving([identity]):
        yield folder
        raise StoppedError


def add(folder: Path, *keys: str, **checkpoints: str) -> None:
    """Add finished units to the journal, and files of checkpoints by name."""
    for key in keys:
        Journal(folder / "journal.jsonl").append({"key": key})
    for name, content in checkpoints.items():
        file = folder / "checkpoints" / name / "weights"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def found(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the keys of the journal's units, and the files of checkpoints."""
    files = sorted((folder / "checkpoints").rglob("weights"))
    keys = [entry["key"] for entry in Journal(folder / "journal.jsonl").read()]
    return keys, {file.parent.name: file.read_text() for file in files}


def saved_in(network: Path) -> list[str]:
    """Return the objects of unfinished work."""
    return sorted(
        file.relative_to(network).as_posix() for file in (network / "unfinished").rglob("*") if file.is_file()
    )


def is_saved(network: Path) -> bool:
    return any(name.endswith("stage.json") for name in saved_in(network))


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_another_machine_goes_on_from_what_was_saved(here: Store, there: Store) -> None:
    with working(here) as folder:
        add(folder, "one", "two", step5="5")
        shutil.rmtree(folder / "output")
    said: list[str] = []
    there.say = said.append
    assert found(there.workspace(A)) == (["one", "two"], {"step5": "5"})
    (line,) = said
    assert f"process {os.getpid()} on " in line


def work_forever(network: Path, cache: Path) -> None:
    """Write a unit and a checkpoint again and again, until killed."""
    with working(on_machine(str(network), cache, SECONDS)) as folder:
        for number in range(100_000):
            add(folder, str(number), **{f"step{number}": "x" * number})
            shutil.rmtree(folder / "checkpoints" / f"step{number - 2}", ignore_errors=True)
            time.sleep(0.1)


@pytest.mark.experiments
def test_a_killed_machine_loses_what_it_did_since_the_last_look_only(
    network: Path, tmp_path: Path, there: Store
) -> None:
    process = in_process(work_forever, network, tmp_path / "lost")
    partial = tmp_path.glob("lost/*/store/partial")
    wait_until(lambda: is_saved(network))
    seen = found(there.workspace(A))[0]
    wait_until(lambda: len(found(there.workspace(A))[0]) > len(seen) + 5)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    (folder,) = partial
    made = found(folder / A)[0]
    keys, checkpoints = found(there.workspace(A))
    assert keys == made[: len(keys)]
    assert all(content == "x" * int(name.removeprefix("step")) for name, content in checkpoints.items())
    assert checkpoints
    assert there.begun() == {A}


def test_a_slow_former_worker_overwrites_nothing(
    here: Store, there: Store, machine: Callable[[str], Store], network: Path
) -> None:
    folder = here.workspace(A)
    with suppress(StoppedError), here.saving([A]):
        add(folder, "one")
        wait_until(lambda: is_saved(network))
        with working(there) as other:
            add(other, "two", "three")
        add(folder, "slow", "slower", "slowest", "and even slower")
        raise StoppedError
    assert found(machine("third").workspace(A))[0] == ["one", "two", "three"]


def test_a_machine_that_comes_back_takes_over_what_others_did_since(here: Store, there: Store) -> None:
    with working(here) as folder:
        add(folder, "one", step5="5")
    with working(there) as folder:
        add(folder, "two", step7="7")
        shutil.rmtree(folder / "checkpoints" / "step5")
    assert found(here.workspace(A)) == (["one", "two"], {"step7": "7"})


def test_a_machine_keeps_its_own_work_if_nobody_went_on(here: Store) -> None:
    with working(here) as folder:
        add(folder, "one", step5="5")
    add(folder, "two", step6="6")
    assert found(here.workspace(A)) == (["one", "two"], {"step5": "5", "step6": "6"})


def test_of_work_begun_twice_while_the_store_was_away_the_larger_counts(
    here: Store, there: Store, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = here.workspace(A), there.workspace(A)
    for store, folder, keys in ((here, small, ["one"]), (there, large, ["one", "two", "three"])):
        with suppress(StoppedError), store.saving([A]):
            add(folder, *keys)
            raise StoppedError
    assert len([name for name in saved_in(network) if name.endswith("stage.json")]) == 2
    assert found(here.workspace(A))[0] == ["one", "two", "three"]
    assert found(there.workspace(A))[0] == ["one", "two", "three"]


def test_a_journal_that_was_discarded_does_not_come_back(here: Store, there: Store) -> None:
    with working(here) as folder:
        add(folder, "one", "two")
    with working(there) as folder:
        Journal(folder / "journal.jsonl").discard()
    assert found(here.workspace(A))[0] == []
    with working(here) as folder:
        add(folder, "new")
    assert found(there.workspace(A))[0] == ["new"]


def test_a_growing_journal_is_uploaded_in_few_parts(
    here: Store, there: Store, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.engine.saved_stage.MOST_BYTES_OF_A_PART", 1000)
    sent = []
    write = FolderObjects.write

    def count(self: FolderObjects, key: str, content: Any) -> None:
        if key.startswith("unfinished/") and not key.endswith("stage.json"):
            sent.append(len(content))
        write(self, key, content)

    monkeypatch.setattr(FolderObjects, "write", count)
    folder = here.workspace(A)
    for number in range(40):
        with suppress(StoppedError), here.saving([A]):
            add(folder, f"unit {number}")
            raise StoppedError
    size = (folder / "journal.jsonl").stat().st_size
    parts = [name for name in saved_in(network) if not name.endswith("stage.json")]
    assert size / 1000 < len(parts) < size / 400 + 5
    assert sum(sent) < 10 * size
    assert found(there.workspace(A))[0] == [f"unit {number}" for number in range(40)]


@pytest.mark.parametrize("damage", ["cut", "gone", "other bytes"])
def test_damaged_work_is_not_taken(
    here: Store, there: Store, network: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working(here) as folder:
        add(folder, "one", step5="5" * 50)
    (file,) = (network / name for name in saved_in(network) if "5" * 50 in (network / name).read_text())
    if damage == "gone":
        file.unlink()
    else:
        file.write_text("5" * 20 if damage == "cut" else "6" * 50)
    with working(there) as folder:
        assert found(folder) == ([], {})
        add(folder, "anew")
    assert found(here.workspace(A))[0] == ["anew"]


@pytest.mark.parametrize(
    "name",
    [
        "../../elsewhere",
        "/etc/elsewhere",
        "output/elsewhere",
        "journal.jsonl/elsewhere",
        "checkpoints",
        "save",
    ],
)
def test_work_with_foreign_names_is_ignored(here: Store, there: Store, network: Path, name: str) -> None:
    with working(here) as folder:
        add(folder, "one")
    (file,) = (network / each for each in saved_in(network) if each.endswith("stage.json"))
    record = unseal(file.read_bytes())
    record["files"][name] = next(iter(record["files"].values()))
    file.write_text(seal(record))
    with working(there) as folder:
        assert found(folder) == ([], {})


@pytest.mark.parametrize("key", ["unfinished/.DS_Store", f"unfinished/{A}/.nfs0001", "unfinished/a/b/c/d"])
def test_stray_objects_are_ignored(here: Store, network: Path, key: str) -> None:
    (network / key).parent.mkdir(parents=True)
    (network / key).write_text("x")
    assert here.begun() == set()
    assert found(here.workspace(A)) == ([], {})


def test_a_checkpoint_that_is_deleted_during_its_upload_is_saved(
    here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FolderObjects.write

    def delete_first(self: FolderObjects, key: str, content: Any) -> None:
        if key.startswith("unfinished/"):
            shutil.rmtree(folder / "checkpoints" / "step5", ignore_errors=True)
        write(self, key, content)

    folder = here.workspace(A)
    add(folder, step5="5")
    monkeypatch.setattr(FolderObjects, "write", delete_first)
    assert here.shared is not None
    stage_here = here._shared_work._stages[A]  # type: ignore[union-attr]
    stage_here.upload(here.shared.objects.inner)
    assert found(there.workspace(A)) == ([], {"step5": "5"})


def test_a_file_system_without_links_serves(
    here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("synthbench.engine.saved_stage.os.link", no_links)
    with working(here) as folder:
        add(folder, "one", step5="5")
    assert found(there.workspace(A)) == (["one"], {"step5": "5"})


@dataclass(frozen=True)
class Resuming(Work):
    """Makes three units, one at a time; fails with `behaviour`, if it has one, after the first new one."""

    def run(self, inputs: Any, work: Workspace) -> None:
        keys = [entry["key"] for entry in work.journal.read()]
        if self.behaviour == "chokes" and keys:
            raise KeyError("position")
        for number in range(len(keys), 3):
            work.journal.append({"key": str(number)})
            self.made(number)
            if self.behaviour == "bug":
                raise ZeroDivisionError
        (work.output / "name.txt").write_text(" ".join(entry["key"] for entry in work.journal.read()))

    def made(self, number: int) -> None:
        from fakes import note_work

        note_work(f"{self.name} {number}")


def resuming(behaviour: str = "") -> Stage:
    return Stage(Resuming("work", behaviour=behaviour), {}, "work")


def test_no_unit_is_made_twice_by_machines_that_fail_one_after_another(
    machine: Callable[[str], Store], network: Path, work_log: Path
) -> None:
    for name in ("first", "second"):
        report, _ = carry_out(machine(name), resuming("bug"))
        assert len(report.failed) == 1
    last = machine("last")
    report, _ = carry_out(last, resuming())
    assert names(report.executed) == ["work"]
    assert work_done(work_log) == ["work 0", "work 1", "work 2"]
    assert (last.fetch(resuming().identity) / "name.txt").read_text() == "0 1 2"
    assert saved_in(network) == []


@dataclass(frozen=True)
class Long(Work):
    """Makes a unit, and then works for a long time."""

    def run(self, inputs: Any, work: Workspace) -> None:
        work.journal.append({"key": "one"})
        Path(self.name).touch()
        time.sleep(600)


def test_a_worker_that_is_ended_saves_its_work_and_releases_its_leases(
    network: Path, tmp_path: Path, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PRELOADED", "fake_stages")
    began = tmp_path / "began"
    stage = Stage(Long(str(began)), {}, "work")
    with executor(2) as processes:
        here = on_machine(str(network), tmp_path / "here", 3600.0)
        processes.submit(StageJob(here, [stage], RUNTIME, Lines()))
        wait_until(began.exists)
    assert found(there.workspace(stage.identity)) == (["one"], {})
    with there.locks.stage(stage.identity, "work"):
        pass


@dataclass(frozen=True)
class Saving(Work):
    """Makes a unit, has it copied to the store in the folder of this name, and says whether it is there."""

    def run(self, inputs: Any, work: Workspace) -> None:
        work.journal.append({"key": "one"})
        work.save()
        (work.output / "name.txt").write_text(str(is_saved(Path(self.name))))


def test_a_stage_can_wait_until_its_work_is_saved(network: Path, tmp_path: Path) -> None:
    here = on_machine(str(network), tmp_path / "here", 3600.0)
    stage = Stage(Saving(str(network)), {}, "work")
    carry_out(here, stage)
    assert (here.fetch(stage.identity) / "name.txt").read_text() == "True"


def test_a_forced_stage_begins_anew(here: Store, there: Store, work_log: Path) -> None:
    carry_out(here, resuming("bug"))
    carry_out(there, resuming(), forced=frozenset([resuming().identity]))
    assert work_done(work_log) == ["work 0", "work 0", "work 1", "work 2"]


def test_work_of_another_machine_that_no_stage_can_read_is_dropped(
    here: Store, there: Store, network: Path, work_log: Path
) -> None:
    """A stranger may have written it; else no machine could ever compute the stage."""
    carry_out(here, resuming("bug"))
    report, said = carry_out(there, resuming("chokes"))
    assert len(report.failed) == 1
    assert any("can't be used; the stage begins anew" in line for line in said)
    assert saved_in(network) == []
    report, _ = carry_out(there, resuming("chokes"))
    assert names(report.executed) == ["work"]


def test_own_work_that_a_stage_fails_with_is_kept(here: Store, work_log: Path) -> None:
    carry_out(here, resuming("bug"))
    carry_out(here, resuming("chokes"))
    carry_out(here, resuming())
    assert work_done(work_log) == ["work 0", "work 1", "work 2"]


def test_a_store_that_takes_no_unfinished_work_delays_no_stage(
    here: Store, monkeypatch: pytest.MonkeyPatch, work_log: Path
) -> None:
    write = FolderObjects.write

    def refuse(self: FolderObjects, key: str, content: Any) -> None:
        if key.startswith("unfinished/"):
            raise UnavailableError("away")
        write(self, key, content)

    monkeypatch.setattr(FolderObjects, "write", refuse)
    report, said = carry_out(here, resuming())
    assert names(report.executed) == ["work"]
    assert not [line for line in said if "away" in line]


def test_clean_lists_unfinished_work_and_removes_what_was_not_used_for_days(
    here: Store, there: Store, network: Path
) -> None:
    with working(there) as folder:
        add(folder, "one", step5="5")
    with working(there, "b" * 64) as folder:
        add(folder, "one")
    shutil.rmtree(there.root)
    for name in saved_in(network):
        if A in name:
            os.utime(network / name, (1e9, 1e9))
    kinds = {each.identity: each.kind for each in take_inventory(here).holdings}
    assert kinds == {A: UNFINISHED, "b" * 64: UNFINISHED}
    assert [each.identity for each in clean(here, days=30)] == [A]
    assert here.begun() == {"b" * 64}


def test_work_that_was_saved_after_its_commit_is_removed_by_clean(
    here: Store, there: Store, network: Path
) -> None:
    slow = here.workspace(A)
    with suppress(StoppedError), here.saving([A]):
        (there.workspace(A) / "output" / "data").write_bytes(b"x")
        assert there.commit(A, {"label": "work", "spec": {"kind": "train"}})
        add(slow, "one")
        raise StoppedError
    assert saved_in(network)
    assert here.begun() == {A}
    clean(here, days=1000)
    assert saved_in(network) == []
    assert (here.fetch(A) / "data").read_bytes() == b"x"
