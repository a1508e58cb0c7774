"""A store that several machines share: in a folder, and on an S3 server."""

import errno
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_stages import carry_out, diamond, in_process, names, names_of_failed, stage, wait_for
from fakes import work_done
from s3 import log_in, make_bucket, s3_server
from shared_stores import (
    chain,
    contents,
    drive_chain,
    drive_diamond,
    hold_shared_lock,
    new_prefix,
    on_machine,
)
from wording import refused

from synthbench.engine import shared_artifacts
from synthbench.engine.cleaning import clean, discard_damaged, take_inventory
from synthbench.engine.leases import StageBusyError
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.progress import PlainProgress
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.store import Store

if TYPE_CHECKING:
    from synthbench.engine.stage import Stage

A = "a" * 64


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server with a bucket."""
    with s3_server() as address:
        make_bucket(address)
        yield address


@pytest.fixture(params=["folder", "s3"])
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of an empty shared store."""
    if request.param == "s3":
        log_in(monkeypatch, request.getfixturevalue("server"))
        return new_prefix()
    (tmp_path / "network").mkdir()
    return str(tmp_path / "network")


@pytest.fixture
def here(name: str, tmp_path: Path) -> Store:
    """The store as this machine sees it."""
    return on_machine(name, tmp_path / "here")


@pytest.fixture
def there(name: str, tmp_path: Path) -> Store:
    """The store as another machine sees it."""
    return on_machine(name, tmp_path / "there")


def commit(store: Store, identity: str, content: bytes = b"x" * 1000, **inputs: str) -> None:
    folder = store.workspace(identity) / "output"
    (folder / "data").write_bytes(content)
    store.commit(identity, {"label": "work", "spec": {"kind": "train", "inputs": inputs}})


def test_artifacts_of_one_machine_are_read_by_another(here: Store, there: Store, work_log: Path) -> None:
    carry_out(here, diamond())
    report, _ = carry_out(there, stage("more", diamond()))
    assert names(report.executed) == ["more"]
    assert len(work_done(work_log)) == 5
    end = diamond().identity
    assert (there.fetch(end) / "name.txt").read_text() == "end"
    assert there.record(end) == here.record(end)
    assert there.find(end[:5]) == [end]
    assert set(there.newest(9)) == set(here.find())


def test_an_artifact_that_is_discarded_while_it_is_verified_is_not_damaged(
    here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(here, A)
    digest = PatientObjects.digest

    def too_late(self: PatientObjects, key: str) -> str:
        there.discard(A)
        return digest(self, key)

    monkeypatch.setattr(PatientObjects, "digest", too_late)
    assert discard_damaged(here, PlainProgress()) == (1, [])


def test_artifacts_have_the_same_bytes_as_in_a_local_store(here: Store, store: Store) -> None:
    carry_out(here, diamond())
    carry_out(store, diamond())
    end = diamond().identity
    here_files, local = here.record(end)["files"], store.record(end)["files"]
    assert {name: file["sha256"] for name, file in here_files.items()} == {
        name: file["sha256"] for name, file in local.items()
    }


@pytest.mark.experiments
def test_two_drivers_at_once_compute_no_stage_twice(name: str, tmp_path: Path, work_log: Path) -> None:
    start = tmp_path / "start"
    said = [tmp_path / f"{number}.json" for number in range(2)]
    drivers = [in_process(drive_diamond, name, tmp_path / f"cache{n}", said[n], start) for n in range(2)]
    start.touch()
    for driver in drivers:
        driver.join()
        assert driver.exitcode == 0
    assert sorted(work_done(work_log)) == ["end", "left", "right", "top"]
    assert all(file.read_text().endswith(", []]") for file in said)


def test_a_locked_stage_is_busy_and_names_its_holder(here: Store, there: Store) -> None:
    busy = pytest.raises(StageBusyError, match=f"process {os.getpid()} on ")
    with here.locks.stage(A, "work a"), busy, there.locks.stage(A, "work a"):
        pass
    with there.locks.stage(A, "work a") as note:
        assert note == ""


@pytest.mark.experiments
def test_the_lease_of_a_killed_driver_expires_and_is_taken_over(
    name: str, tmp_path: Path, there: Store
) -> None:
    marker = tmp_path / "held"
    held = stage("a").identity
    holder = in_process(hold_shared_lock, name, tmp_path / "killed", held, marker)
    wait_for(marker)
    # Its holder renews it every third of a second: only a pause of 3 s would let it expire here.
    short = on_machine(name, tmp_path / "there", 3.0)
    with pytest.raises(StageBusyError), short.locks.stage(held, "work a"):
        pass
    holder.kill()
    holder.join()
    report, said = carry_out(short, stage("a"))
    assert names(report.executed) == ["a"]
    assert any(f"waiting for work a: process {holder.pid} on " in line for line in said)
    assert any(f"taking over work a: process {holder.pid} on " in line for line in said)
    assert not list(short.shared.objects.list("leases/"))


def test_runs_do_not_wait_for_a_driver_that_died_on_the_same_machine(
    name: str, tmp_path: Path, here: Store
) -> None:
    marker = tmp_path / "held"
    holder = in_process(hold_shared_lock, name, tmp_path / "here", A, marker)
    wait_for(marker)
    holder.kill()
    holder.join()
    with here.locks.stage(A, "work a") as note:  # its lease of 60 s has not expired
        assert note.startswith(f"process {holder.pid} on ")


@pytest.mark.experiments
def test_kills_at_random_points_give_the_same_bytes(name: str, tmp_path: Path, store: Store) -> None:
    draw = random.Random(7)
    for number in range(4):
        driver = in_process(drive_chain, name, tmp_path / f"cache{number % 2}")
        driver.join(draw.uniform(1.0, 2.5))
        driver.kill()
        driver.join()
    last = on_machine(name, tmp_path / "last", 1.0)
    report, _ = carry_out(last, *chain())
    assert not report.failed
    carry_out(store, *chain())
    for each in chain():
        assert contents(last, each.identity) == {
            f"{each.identity}/name.txt": (store.folder(each.identity) / "name.txt").read_bytes()
        }
    assert discard_damaged(last, PlainProgress())[1] == []
    for cache in ("cache0", "cache1"):
        clean(on_machine(name, tmp_path / cache, 1.0), 1000)
    attempts = {entry.key.split("/")[1] for entry in last.shared.objects.list("attempts/")}
    assert len({tuple(e.key.split("/")[1:3]) for e in last.shared.objects.list("attempts/")}) == len(attempts)


def test_the_first_of_two_commits_wins_and_the_second_leaves_no_files(here: Store, there: Store) -> None:
    (here.workspace(A) / "output" / "data").write_bytes(b"first")
    (there.workspace(A) / "output" / "data").write_bytes(b"second")
    here.commit(A, {})
    there.commit(A, {})
    for store in (here, there):
        assert (store.fetch(A) / "data").read_bytes() == b"first"
    assert len(list(here.shared.objects.list(f"attempts/{A}/"))) == 1


def test_a_forced_stage_replaces_its_artifact_on_all_machines(here: Store, there: Store) -> None:
    commit(here, A, b"old")
    assert (there.fetch(A) / "data").read_bytes() == b"old"
    commit(here, A, b"new")
    assert (there.fetch(A) / "data").read_bytes() == b"new"
    assert len(list(here.shared.objects.list(f"attempts/{A}/"))) == 1


@pytest.mark.parametrize("content", [b"NAME", b"longer than it was", None])
def test_damage_is_found_and_computed_again(here: Store, there: Store, content: bytes | None) -> None:
    source = stage("name")
    carry_out(here, source)
    (entry,) = here.shared.objects.list(f"attempts/{source.identity}/")
    here.shared.objects.delete([entry.key])
    if content is not None:
        here.shared.objects.write(entry.key, content)
    report, said = carry_out(there, stage("next", source))
    assert names(report.executed) == ["name", "next"]
    assert "is damaged" in said[0]
    assert (there.fetch(source.identity) / "name.txt").read_text() == "name"


def test_damage_found_by_a_worker_withdraws_the_commit(here: Store, there: Store) -> None:
    """The machine that computed the artifact has a good copy, and would never notice."""
    commit(here, A)
    (entry,) = here.shared.objects.list(f"attempts/{A}/")
    here.shared.objects.write(entry.key, b"y" * 1000)
    here.check(A, thorough=True)
    with pytest.raises(ArtifactDamagedError, match="the checksum of data differs"):
        there.fetch(A)
    assert not here.has(A)


def test_two_processes_of_a_machine_may_copy_one_artifact_at_once(tmp_path: Path) -> None:
    """One would else remove what the other has begun to copy, since neither copy is complete."""
    (tmp_path / "shared").mkdir()
    carry_out(on_machine(str(tmp_path / "shared"), tmp_path / "maker"), stage("top"))
    identity, copying = stage("top").identity, shared_artifacts.write_atomically
    stores = [on_machine(str(tmp_path / "shared"), tmp_path / "node") for _ in range(2)]
    with ThreadPoolExecutor(1) as other, pytest.MonkeyPatch.context() as patch:
        fetched: list[Future[Path]] = []

        def copy_meanwhile(file: Path, content: str) -> None:
            """Let the other process come as far as it can, before this one's record has its name."""
            patch.setattr(shared_artifacts, "write_atomically", copying)
            new = file.with_name("new")
            new.write_text(content)
            fetched.append(other.submit(stores[1].fetch, identity))
            wait(fetched, 0.3)
            new.replace(file)

        patch.setattr(shared_artifacts, "write_atomically", copy_meanwhile)
        assert (stores[0].fetch(identity) / "name.txt").read_text() == "top"
        assert fetched[0].result() == stores[0].folder(identity)


def test_verification_reads_the_shared_files_not_local_copies(here: Store) -> None:
    commit(here, A)
    assert discard_damaged(here, PlainProgress()) == (1, [])
    (entry,) = here.shared.objects.list(f"attempts/{A}/")
    here.shared.objects.write(entry.key, b"y" * 1000)
    number, (damage,) = discard_damaged(here, PlainProgress())
    assert (number, damage.identity, damage.what) == (1, A, "the checksum of data differs")
    assert not here.has(A)


def noted(name: str, real: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    def call(self: object, key: str) -> object:
        found.append(f"{name} {key}")
        return real(self, key)

    return call


@pytest.fixture
def asked(there: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the other machine lists and reads, from the fixture on."""
    found: list[str] = []
    kind = type(there.shared.objects)
    for name in ("list", "read"):
        monkeypatch.setattr(kind, name, noted(name, getattr(kind, name), found))
    return found


def test_looking_stages_up_costs_what_the_stages_cost_whatever_the_store_holds(
    here: Store, there: Store, asked: list[str]
) -> None:
    for number in range(20):
        commit(here, f"{number:064x}")
    there_are, missing = [[f"{number:064x}" for number in numbers] for numbers in (range(3), range(90, 92))]
    asked.clear()
    with there.listed([*there_are, *missing]):
        assert [there.has(identity) for identity in [*there_are, *missing]] == [True] * 3 + [False] * 2
        for identity in there_are:
            there.check(identity)
        assert len(asked) == 5 + 3
        assert there.has(f"{19:064x}")  # not one of these: looked up by itself
    assert sorted(line.split("/")[0] for line in asked) == ["list attempts"] * 3 + ["read artifacts"] * 6


def test_many_stages_are_listed_with_the_whole_store(
    here: Store, there: Store, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.engine.shared_artifacts.FEW", 9)
    identities = [f"{number:064x}" for number in range(12)]
    for identity in identities[:11]:
        commit(here, identity)
    for given, num_read in ((None, 11), (identities[:10], 10)):
        asked.clear()
        with there.listed(given):
            for identity in identities[:10]:
                there.check(identity)
        listed = sorted(line for line in asked if line.startswith("list"))
        assert (listed, len(asked)) == (["list artifacts/", "list attempts/"], 2 + num_read)


def test_clean_keeps_what_any_machine_uses(here: Store, there: Store) -> None:
    source, model, unused = ("abc"[n] * 64 for n in range(3))
    commit(here, source)
    commit(here, model, data=source)
    commit(here, unused)
    there.addresses.remember("study", {"model": model})
    assert there.addresses.experiments() == ["study"]
    inventory = take_inventory(there)
    assert {holding.identity for holding in inventory.of("study")} == {source, model}
    assert all(1000 < holding.size < 2000 for holding in inventory.holdings)
    assert [holding.identity for holding in clean(there, 0)] == [unused]
    assert here.find() == [source, model]
    here.addresses.remember("study", {"other": source})
    assert there.addresses.of("study") == {"model": model, "other": source}
    assert len(clean(there, 1000, ["study"])) == 2
    assert not list(there.shared.objects.list(""))


def test_clean_removes_nothing_while_another_machines_run_is_alive(name: str, tmp_path: Path) -> None:
    here, there = (on_machine(name, tmp_path / place, 6.0) for place in ("here", "there"))
    commit(here, A)
    with here.locks.run("experiment study", [A]), refused("works there; nothing was removed"):
        clean(there, 0)
    assert here.has(A)
    assert clean(there, 1) == []
    assert [holding.identity for holding in clean(there, 0)] == [A]


def test_files_of_attempts_that_were_never_committed_are_removed(here: Store) -> None:
    commit(here, A)
    here.shared.objects.write(f"attempts/{A}/lost/data", b"x")
    here.shared.objects.write(f"attempts/{'b' * 64}/lost/data", b"x")
    assert len([each for each in take_inventory(here).holdings if each.kind == "discarded"]) == 2
    clean(here, 1000)
    assert len(list(here.shared.objects.list("attempts/"))) == 1
    here.verify(A)


@pytest.mark.experiments
def test_a_stage_of_a_shared_store_runs_in_local_processes(here: Store) -> None:
    report, _ = carry_out(here, diamond(), jobs=2)
    assert len(report.executed) == 4


def test_a_failed_stage_leaves_no_lease(here: Store) -> None:
    broken: Stage = stage("broken", behaviour="bug")
    report, _ = carry_out(here, broken)
    assert names_of_failed(report) == ["broken"]
    assert not list(here.shared.objects.list("leases/"))


def test_a_suitable_file_system_or_server_passes_the_probe(here: Store) -> None:
    here.prepare()
    assert not here.contents.exists()
    commit(here, A)
    assert here.contents.exists()


def test_a_file_system_without_exclusive_creation_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.link", os.replace)
    with refused("created a second time", str(tmp_path)):
        PatientObjects(FolderObjects(tmp_path)).probe()


def test_a_link_counts_even_if_its_reply_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS does this when the client retries: the first attempt had made the link."""
    link = os.link

    def made_and_lost(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError

    monkeypatch.setattr("os.link", made_and_lost)
    objects = PatientObjects(FolderObjects(tmp_path))
    assert objects.create("key", b"first")
    monkeypatch.setattr("os.link", link)
    assert not objects.create("key", b"second")
    assert objects.read("key") == b"first"


def test_an_object_that_is_deleted_while_it_is_written_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that is released during its renewal is the last file of its folder, which goes, too."""
    objects, replace = FolderObjects(tmp_path), Path.replace

    def replaced_and_deleted(self: Path, target: Path) -> None:
        replace(self, target)
        objects.delete(["leases/a/00000000"])

    monkeypatch.setattr(Path, "replace", replaced_and_deleted)
    objects.write("leases/a/00000000", b"content")
    assert not list(tmp_path.iterdir())


def test_a_file_that_a_network_file_system_keeps_open_hinders_no_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS renames a file that is deleted while it is open, and refuses to delete it again."""
    (tmp_path / "network").mkdir()
    store, unlink = on_machine(str(tmp_path / "network"), tmp_path / "here"), Path.unlink

    def busy(self: Path, *, missing_ok: bool = False) -> None:
        if self.name.startswith(".nfs"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(self))
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", busy)
    output = store.workspace(A) / "output"
    (output / "data").write_bytes(b"x")
    (output / ".nfs0001").write_bytes(b"old")
    store.commit(A, {"label": "work", "spec": {"kind": "train"}})
    assert list(store.record(A)["files"]) == ["data"]
    attempt = tmp_path / "network" / "attempts" / A / store.record(A)["attempt"]
    (attempt / ".nfs0002").touch()
    store.check(A)
    store.discard(A)
    clean(store, days=1000)
    assert [path.name for path in attempt.iterdir()] == [".nfs0002"]
