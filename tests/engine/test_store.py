import errno
import json
import os
import signal
from pathlib import Path

import pytest
from disks import Disk, flip
from fake_stages import hold_lock, in_process, wait_for
from wording import refused, worded

from synthbench.base.durability import DamagedFileError, file_hash
from synthbench.base.errors import UserError
from synthbench.engine.leases import StageBusyError
from synthbench.engine.local_artifacts import SMALL
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.store import Store, disk_errors

IDENTITY = "ab" * 32


def committed(store: Store, text: str = "content") -> Path:
    output = store.workspace(IDENTITY) / "output"
    (output / "deep").mkdir()
    (output / "deep" / "file.txt").write_text(text)
    store.commit(IDENTITY, {"label": "train x", "spec": {"kind": "train"}, "seconds": 1.5})
    return store.folder(IDENTITY) / "deep" / "file.txt"


def damage(store: Store, *, thorough: bool = False) -> str:
    with pytest.raises(ArtifactDamagedError) as caught:
        store.check(IDENTITY, thorough=thorough)
    return str(caught.value)


def test_a_committed_artifact_exists_with_its_record(store: Store) -> None:
    store.workspace(IDENTITY)
    assert not store.has(IDENTITY)
    file = committed(store)
    assert store.has(IDENTITY)
    info = store.info(IDENTITY)
    assert info is not None
    assert (info["label"], info["seconds"]) == ("train x", 1.5)
    # sha256 of "content", by the sha256sum command
    expected = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert info["files"]["deep/file.txt"]["sha256"] == expected == file_hash(file)
    store.check(IDENTITY, thorough=True)


def test_a_commit_leaves_no_unfinished_work(store: Store) -> None:
    committed(store)
    assert list((store.root / "partial").iterdir()) == []


def test_uncommitted_work_leaves_journal_and_checkpoints_but_no_output(store: Store) -> None:
    folder = store.workspace(IDENTITY)
    for name in ("output/half.txt", "checkpoints/step.pt", "journal.jsonl"):
        (folder / name).write_text("x")
    again = store.workspace(IDENTITY)
    assert sorted(path.name for path in again.rglob("*") if path.is_file()) == ["journal.jsonl", "step.pt"]


def test_a_second_commit_replaces_the_artifact(store: Store) -> None:
    committed(store, "old")
    assert committed(store, "new").read_text() == "new"
    store.check(IDENTITY, thorough=True)


def test_a_commit_that_is_interrupted_leaves_no_artifact(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("synthbench.engine.store.write_sealed", fail)
    with pytest.raises(OSError, match="No space left"):
        committed(store)
    assert not store.has(IDENTITY)


def test_an_artifact_is_synced_before_its_rename(store: Store, disk: Disk) -> None:
    committed(store)
    store.addresses.remember("study", {"a": "1"})
    assert disk.faults() == []


def test_damage_is_found_by_size(store: Store) -> None:
    committed(store).write_text("short")
    worded(damage(store), "deep/file.txt", "5", "7")


def test_the_newest_artifacts_of_the_same_time_are_sorted_by_identity(store: Store) -> None:
    """The time of coarse clocks is the same for many artifacts of a run, and folders come in any order."""
    identities = [f"{number:02x}" * 32 for number in range(0, 200, 9)]
    for identity in reversed(identities):
        store.workspace(identity)
        store.commit(identity, {"label": "train x"})
        os.utime(store.folder(identity) / "stage.json", (1000, 1000))
    os.utime(store.folder(identities[5]) / "stage.json", (2000, 2000))
    assert store.newest(4) == [identities[5], *identities[:3]]


def test_damage_is_found_by_the_checksum_if_the_file_was_touched(store: Store) -> None:
    committed(store).write_text("CONTENT")
    assert damage(store) == "the checksum of deep/file.txt differs"


def test_hidden_damage_is_found_in_a_small_file(store: Store) -> None:
    flip(committed(store))
    assert damage(store) == "the checksum of deep/file.txt differs"


def test_only_a_thorough_check_finds_hidden_damage_in_a_large_file(
    store: Store,
) -> None:
    flip(committed(store, "x" * (SMALL + 1)))
    store.check(IDENTITY)
    assert damage(store, thorough=True) == "the checksum of deep/file.txt differs"


def test_a_changed_digit_in_the_record_is_damage(store: Store) -> None:
    committed(store)
    file = store.folder(IDENTITY) / "stage.json"
    file.write_text(file.read_text().replace("1.5", "7.5"))
    worded(damage(store), "stage.json", "checksum")
    assert store.info(IDENTITY) is None


def test_an_artifact_without_its_record_is_damaged_not_absent(store: Store) -> None:
    committed(store)
    (store.folder(IDENTITY) / "stage.json").unlink()
    assert store.has(IDENTITY)
    assert damage(store) == "stage.json is missing"


def test_an_unreadable_file_is_damage(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    committed(store)

    def fail(_: Path) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("synthbench.engine.local_artifacts.file_hash", fail)
    worded(damage(store), "deep/file.txt", "Input/output")


def test_records_and_addresses_of_earlier_versions_without_checksums_are_read(store: Store) -> None:
    committed(store)
    file = store.folder(IDENTITY) / "stage.json"
    record = json.loads(file.read_text())
    del record["checksum"]
    file.write_text(json.dumps(record))
    store.check(IDENTITY, thorough=True)
    assert store.info(IDENTITY) == record
    (store.root / "addresses").mkdir()
    (store.root / "addresses" / "study.json").write_text('{"a": "1"}')
    assert store.addresses.of("study") == {"a": "1"}


@pytest.mark.parametrize("old", ["checksum", "files", "size", "sha256"])
def test_a_damaged_key_of_a_record_is_detected(store: Store, old: str) -> None:
    committed(store)
    file = store.folder(IDENTITY) / "stage.json"
    file.write_text(file.read_text().replace(f'"{old}"', f'"x{old[1:]}"'))
    assert damage(store).startswith("stage.json ")


def test_a_copied_store_is_intact_despite_changed_file_times(store: Store) -> None:
    os.utime(committed(store), ns=(1, 1))
    store.check(IDENTITY)


def test_a_missing_file_is_damage(store: Store) -> None:
    committed(store).unlink()
    assert damage(store) == "deep/file.txt is missing"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\xff"])
def test_an_unreadable_record_is_damage(store: Store, text: str) -> None:
    committed(store)
    (store.folder(IDENTITY) / "stage.json").write_text(text, encoding="latin-1")
    assert damage(store) == "stage.json is unreadable"


def test_an_artifact_can_be_discarded_twice(store: Store) -> None:
    committed(store)
    store.discard(IDENTITY)
    store.discard(IDENTITY)
    assert not store.folder(IDENTITY).exists()
    assert list((store.root / "discarded").iterdir()) == []


def test_a_lock_excludes_other_processes_and_names_the_holder(store: Store, tmp_path: Path) -> None:
    marker = tmp_path / "held"
    holder = in_process(hold_lock, store.root, IDENTITY, marker)
    try:
        wait_for(marker)
        with refused(str(holder.pid), kind=StageBusyError), store.locks.stage(IDENTITY, "mine"):
            pass
        with store.locks.stage("cd" * 32, "another stage") as note:
            assert note == ""
        os.kill(int(holder.pid or 0), signal.SIGKILL)
        holder.join()
        with store.locks.stage(IDENTITY, "mine") as note:
            assert note.startswith(f"process {holder.pid} on ")
        with store.locks.stage(IDENTITY, "mine") as note:
            assert note == ""
    finally:
        holder.kill()
        holder.join()


def test_a_lock_is_free_after_an_exception_within_it(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.locks.stage(IDENTITY, "mine"):
        raise KeyboardInterrupt
    with store.locks.stage(IDENTITY, "mine") as note:
        assert note == ""


def test_addresses_of_later_runs_replace_earlier_ones(store: Store) -> None:
    assert store.addresses.of("study") == {}
    store.addresses.remember("study", {"a": "1", "b": "2"})
    store.addresses.remember("study", {"b": "3"})
    store.addresses.remember("other", {"a": "9"})
    assert store.addresses.of("study") == {"a": "1", "b": "3"}
    flip(store.root / "addresses" / "study.json")
    with pytest.raises(DamagedFileError, match=r"does not match its checksum|is unreadable"):
        store.addresses.of("study")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, "quota"),
        RuntimeError("SafetensorError: I/O error: No space left on device (os error 28)"),
    ],
)
def test_every_kind_of_full_disk_error_is_reported_in_one_line(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(UserError) as caught, disk_errors(tmp_path):
        raise error
    worded(caught.value.messages, str(tmp_path))


@pytest.mark.parametrize("name", ["store/artifacts/x", "store", "."])
def test_an_unwritable_store_is_reported_in_one_line(tmp_path: Path, name: str) -> None:
    with refused("SYNTHBENCH_HOME"), disk_errors(tmp_path / "store"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / name))


def test_other_errors_are_not_blamed_on_the_store(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), disk_errors(tmp_path / "store"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "data" / "gold.tsv"))
    with pytest.raises(ValueError, match="x"), disk_errors(tmp_path):
        raise ValueError("x")


def test_the_record_of_a_commit_is_readable_json(store: Store) -> None:
    committed(store)
    text = (store.folder(IDENTITY) / "stage.json").read_text()
    assert json.loads(text)["spec"] == {"kind": "train"}
    assert text.count("\n") > 5
