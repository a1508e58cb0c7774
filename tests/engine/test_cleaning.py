"""Removable content of the store, and its removal."""

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_stages import hold_lock, in_process, wait_for
from filelock import FileLock
from shared_stores import on_machine
from wording import refused

from synthbench.engine import local_leases
from synthbench.engine.addresses import AddressObjects
from synthbench.engine.cleaning import clean, take_inventory
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.leases import CLEANING
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE
from synthbench.engine.shared_leases import SECONDS_BETWEEN_LOOKS
from synthbench.engine.store import Store
from synthbench.engine.unfinished import UnfinishedWork

SOURCE, MODEL, SCORES, OTHER, UNFINISHED = (letter * 64 for letter in "abcde")


def commit(
    store: Store, identity: str, inputs: Mapping[str, str] | None = None, *, days_ago: float = 0
) -> None:
    output = store.workspace(identity) / "output"
    (output / "data").write_bytes(b"x" * 1000)
    store.commit(identity, {"spec": {"kind": "train", "inputs": dict(inputs or {})}})
    used = time.time() - days_ago * 86400
    os.utime(store.folder(identity) / STAGE_FILE, (used, used))


@pytest.fixture
def filled(store: Store) -> Store:
    """A chain of stages that an experiment uses, and an unused stage; all are old."""
    commit(store, SOURCE, days_ago=100)
    commit(store, MODEL, {"data": SOURCE}, days_ago=100)
    commit(store, SCORES, {"model": MODEL}, days_ago=100)
    commit(store, OTHER, days_ago=100)
    store.addresses.remember("study", {"scores": SCORES})
    return store


def there(store: Store) -> set[str]:
    return {identity for identity in (SOURCE, MODEL, SCORES, OTHER) if store.has(identity)}


def test_the_inventory_has_sizes_kinds_and_users(filled: Store) -> None:
    inventory = take_inventory(filled)
    assert {holding.kind for holding in inventory.holdings} == {"train"}
    assert all(1000 < holding.size < 2000 for holding in inventory.holdings)
    assert {holding.identity for holding in inventory.of("study")} == {SOURCE, MODEL, SCORES}
    assert [holding.identity for holding in inventory.unused()] == [OTHER]


def test_files_that_vanish_while_they_are_listed_do_not_count(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs end, and delete their unfinished work, beside a listing."""
    filled.workspace(UNFINISHED)
    real = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        if self.name == "data":
            raise FileNotFoundError(str(self))
        return real(self)

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(UnfinishedWork, "identities", lambda _: [UNFINISHED, "f" * 64])
    holdings = take_inventory(filled).holdings
    assert [each.identity for each in holdings] == [SOURCE, MODEL, SCORES, OTHER, UNFINISHED]
    assert all(0 < each.size < 1000 for each in holdings[:4])


def test_a_bucket_is_named_by_its_address() -> None:
    addresses = AddressObjects(PatientObjects(CloudObjects("s3://bucket/x")))
    assert addresses.file("study") == "s3://bucket/x/addresses/study"


def test_artifacts_of_a_last_run_and_their_inputs_stay(filled: Store) -> None:
    assert [holding.identity for holding in clean(filled, 30)] == [OTHER]
    assert there(filled) == {SOURCE, MODEL, SCORES}
    assert clean(filled, 0) == []


def test_recently_used_artifacts_stay(filled: Store) -> None:
    assert clean(filled, 101) == []
    with filled.locks.run("experiment other", [OTHER]):
        pass
    assert clean(filled, 30) == []
    assert [holding.identity for holding in clean(filled, 0)] == [OTHER]


def test_forgetting_an_experiment_removes_artifacts_only_it_uses(filled: Store) -> None:
    filled.addresses.remember("second", {"model": MODEL})
    assert [holding.identity for holding in clean(filled, 1000, ["study"])] == [SCORES]
    assert there(filled) == {SOURCE, MODEL, OTHER}
    assert filled.addresses.experiments() == ["second"]


def test_shared_artifacts_are_removed_with_the_last_experiment(filled: Store) -> None:
    filled.addresses.remember("second", {"model": MODEL})
    clean(filled, 1000, ["study", "second"])
    assert there(filled) == {OTHER}


def test_an_unknown_experiment_is_an_error(filled: Store) -> None:
    with refused("'study'"):
        clean(filled, 30, ["stuy"])
    assert there(filled) == {SOURCE, MODEL, SCORES, OTHER}


def test_old_unfinished_work_is_removed_unless_of_a_last_run(filled: Store) -> None:
    wanted, given_up = "e" * 64, "f" * 64
    for identity in (wanted, given_up):
        journal = filled.workspace(identity) / "journal"
        journal.write_text("line")
        for path in (journal, journal.parent):
            os.utime(path, (0, 0))
    filled.addresses.remember("study", {"unfinished": wanted})
    assert given_up in {holding.identity for holding in clean(filled, 30)}
    assert [path.name for path in (filled.root / "partial").iterdir()] == [wanted]


def test_the_age_of_unfinished_work_is_that_of_its_newest_file(filled: Store) -> None:
    partial = filled.workspace(OTHER)
    (partial / "journal").write_text("line")
    os.utime(partial, (0, 0))
    clean(filled, 30)
    assert (partial / "journal").is_file()


def test_a_killed_removal_is_completed(filled: Store) -> None:
    grave = filled.root / "discarded" / f"{OTHER}-1-1"
    grave.parent.mkdir()
    filled.folder(OTHER).rename(grave)
    assert [holding.kind for holding in take_inventory(filled).removable(30)] == ["discarded"]
    clean(filled, 30)
    assert not grave.exists()


def test_a_damaged_record_does_not_stop_cleaning(filled: Store) -> None:
    (filled.folder(OTHER) / STAGE_FILE).write_text("{")
    assert {holding.kind for holding in take_inventory(filled).unused()} == {"damaged"}


def test_nothing_is_removed_while_a_run_is_at_work(filled: Store) -> None:
    with (
        filled.locks.run("experiment other", []),
        refused(str(os.getpid())),
    ):
        clean(filled, 30)
    assert there(filled) == {SOURCE, MODEL, SCORES, OTHER}
    assert clean(filled, 30)


def test_nothing_is_removed_while_a_stage_is_being_computed(filled: Store, tmp_path: Path) -> None:
    process = in_process(hold_lock, filled.root, OTHER, tmp_path / "held")
    wait_for(tmp_path / "held")
    with refused(str(process.pid)):
        clean(filled, 30)
    process.kill()
    process.join()
    assert clean(filled, 30)


def test_a_killed_run_blocks_no_cleaning_and_its_files_are_removed(filled: Store) -> None:
    locks = filled.root / "locks"
    for name in ("run-host-1-2.lock", "run-host-1-2.json"):
        (locks / name).parent.mkdir(exist_ok=True)
        (locks / name).write_text("{}")
    assert clean(filled, 30)
    assert [path.name for path in locks.iterdir() if path.name.startswith("run-")] == []


def test_the_next_run_removes_leftovers_of_a_killed_run_but_no_live_lock(filled: Store) -> None:
    locks = filled.root / "locks"
    with filled.locks.run("experiment living", []):
        living = {path.name for path in locks.glob("run-*")}
        for name in ("run-host-1-2.lock", "run-host-1-2.json"):
            (locks / name).touch()
        with filled.locks.run("experiment next", []):
            assert "run-host-1-2.lock" not in {path.name for path in locks.iterdir()}
            assert living <= {path.name for path in locks.iterdir()}
    assert list(locks.glob("run-*")) == []


def test_runs_that_begin_at_once_do_not_wait_for_each_other(store: Store) -> None:
    """Each searches for dead runs, which briefly locks the other runs' files."""
    said: list[str] = []
    store.say = said.append

    def begin_and_end(_: int) -> None:
        with store.locks.run("experiment study", []):
            pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin_and_end, range(400)))
    assert said == []
    assert list((store.root / "locks").glob("run-*")) == []


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_a_run_waits_for_a_cleanup_and_names_it_once(store: Store, tmp_path: Path, kind: str) -> None:
    if kind == "shared":
        (tmp_path / "network").mkdir()
        store = on_machine(str(tmp_path / "network"), tmp_path / "here")
    said, has_said, has_begun = [], threading.Event(), threading.Event()
    store.say = lambda line: (said.append(line), has_said.set())

    def begin_and_end() -> None:
        with store.locks.run("experiment study", []):
            has_begun.set()

    with ThreadPoolExecutor(1) as pool:
        with store.locks.exclusive():
            run = pool.submit(begin_and_end)
            assert has_said.wait(30)
            time.sleep(1.5 * SECONDS_BETWEEN_LOOKS)
            assert not has_begun.is_set()
        run.result(30)
    (line,) = said
    assert line.startswith(f"waiting for `clean`: process {os.getpid()} on ")


def test_two_cleanups_exclude_each_other(filled: Store, tmp_path: Path) -> None:
    process = in_process(hold_lock, filled.root, CLEANING, tmp_path / "held")
    wait_for(tmp_path / "held")
    with refused("another"):
        clean(filled, 30)
    process.kill()
    process.join()


def test_a_search_for_cleanups_delays_a_cleanup_and_does_not_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_leases, "SECONDS_OF_A_SEARCH", 60.0)
    searching = FileLock(tmp_path / f"{CLEANING}.lock", thread_local=False)
    searching.acquire()
    threading.Timer(0.02, searching.release).start()
    with LocalLeases(tmp_path).hold(CLEANING, "clean"):
        assert not searching.is_locked
