"""Foreign files in a store: reported in one line, and ignored."""

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_stages import carry_out, diamond, names, stage
from s3 import log_in, make_bucket, s3_server
from shared_stores import new_prefix, on_machine
from small_experiment import Project

from synthbench.base.durability import CHECKSUM, file_hash, seal
from synthbench.base.errors import UserError
from synthbench.engine.cleaning import clean, discard_damaged, take_inventory
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.progress import PlainProgress
from synthbench.engine.records import ArtifactDamagedError, fault_of
from synthbench.engine.store import Store

ARTIFACTS = ("artifacts/.DS_Store", "artifacts/ab/.nfs000001", f"artifacts/ab/{'ab' * 32}x/Thumbs.db")
ELSEWHERE = ("attempts/.DS_Store", "leases/.DS_Store", "used/.DS_Store", "addresses/.DS_Store")
WORK = stage("work")
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server with a bucket."""
    with s3_server() as address:
        make_bucket(address)
        yield address


@pytest.fixture(params=["local", "folder", "s3"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store of each kind."""
    if request.param == "local":
        return Store(tmp_path / "store")
    if request.param == "s3":
        log_in(monkeypatch, request.getfixturevalue("server"))
        return on_machine(new_prefix(), tmp_path / "here")
    (tmp_path / "network").mkdir()
    return on_machine(str(tmp_path / "network"), tmp_path / "here")


def write(store: Store, key: str, content: bytes) -> None:
    """Write an object, or a file of a local store."""
    if store.shared:
        store.shared.objects.write(key, content)
    else:
        (store.root / key).parent.mkdir(parents=True, exist_ok=True)
        (store.root / key).write_bytes(content)


def everything(store: Store) -> None:
    """Do all that commands do with a store as a whole."""
    with store.listed():
        identities = store.find()
        assert all(len(identity) == 64 for identity in identities)
        for identity in identities:
            store.info(identity)
    store.newest(9)
    store.find("ab")
    take_inventory(store)
    discard_damaged(store, PlainProgress())
    clean(store, 1000)


def test_stray_files_are_ignored_and_named(any_store: Store, work_log: Path) -> None:
    carry_out(any_store, diamond())
    for key in (*ARTIFACTS, *(ELSEWHERE if any_store.shared else ())):
        write(any_store, key, b"Bud1")
    everything(any_store)
    assert len(any_store.find()) == 4
    assert set(any_store.contents.strays()) >= {"artifacts/.DS_Store", "artifacts/ab/.nfs000001"}
    report, said = carry_out(any_store, diamond())
    assert (report.executed, said) == ([], [])


def test_clean_prints_one_line_on_stray_files(tmp_path: Path, store: Store) -> None:
    carry_out(store, WORK)
    for key in ARTIFACTS:
        write(store, key, b"Bud1")
    home = store.root.parent
    called = Project(tmp_path, home).call("clean")
    assert called.code == 0
    assert called.out.splitlines()[-1] == "passed over, for it is no artifact: artifacts/.DS_Store and 2 more"


def test_clean_removes_empty_folders_of_killed_runs(store: Store) -> None:
    store.workspace("ab" * 32)
    (store.workspace("cd" * 32) / "journal.jsonl").write_text("{}")
    clean(store, 1000)
    assert [path.name for path in (store.root / "partial").iterdir()] == ["cd" * 32]
    clean(store, 0)
    assert not (store.root / "partial").exists()


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


FILE = {"size": 4, "mtime_ns": 1, "sha256": "0" * 64}
EDITS: dict[str, Edit] = {
    "files of a list": lambda r: r.update(files=[]),
    "no files": lambda r: r.pop("files"),
    "a file of null": lambda r: r["files"].update(x=None),
    "a size of true": lambda r: r["files"]["name.txt"].update(size=True),
    "a negative size": lambda r: r["files"]["name.txt"].update(size=-1),
    "a time beyond all times": lambda r: r["files"]["name.txt"].update(mtime_ns=10**40),
    "a hash of a number": lambda r: r["files"]["name.txt"].update(sha256=7),
    "a parent": lambda r: r["files"].update({"../evil": FILE}),
    "a parent within": lambda r: r["files"].update({"a/../../evil": FILE}),
    "an absolute path": lambda r: r["files"].update({"/tmp/evil": FILE}),
    "a backslash": lambda r: r["files"].update({"..\\evil": FILE}),
    "an empty name": lambda r: r["files"].update({"": FILE}),
    "a dot": lambda r: r["files"].update({"./evil": FILE}),
    "a line end": lambda r: r["files"].update({"a\nb": FILE}),
    "a lone surrogate": lambda r: r["files"].update({"\ud800": FILE}),
    "a long name": lambda r: r["files"].update({"x" * 300: FILE}),
    "the record's own name": lambda r: r["files"].update({"STAGE.json": FILE}),
    "a file that is a folder": lambda r: r["files"].update({"name.txt/x": FILE}),
    "a spec of a list": lambda r: r.update(spec=[1]),
    "inputs that are no identities": lambda r: r["spec"].update(inputs={"data": "../../x"}),
    "inputs of a list": lambda r: r["spec"].update(inputs=["x"]),
    "a config of a text": lambda r: r["spec"].update(config="x"),
    "a kind of a mapping": lambda r: r["spec"].update(kind={}),
    "code of lists": lambda r: r["spec"].update(code={"x": ["y"]}),
    "a label of a list": lambda r: r.update(label=["x"]),
    "seconds of a text": lambda r: r.update(seconds="soon"),
    "seconds without end": lambda r: r.update(seconds=float("inf")),
    "seconds beyond all numbers": lambda r: r.update(seconds=10**400),
    "a lone surrogate with a size of true": lambda r: r["files"].update({"\ud800": {**FILE, "size": True}}),
    "versions of numbers": lambda r: r.update(by={"python": 3}),
    "deep nesting": lambda r: r["spec"].update(config=deep(200)),
}
OF_SHARED: dict[str, Edit] = {
    "an attempt elsewhere": lambda r: r.update(attempt="../../x"),
    "an attempt of a number": lambda r: r.update(attempt=7),
    "no attempt": lambda r: r.pop("attempt"),
}


def edited(record: dict[str, Any], edit: Edit) -> bytes:
    """Return a record with a change and a right seal."""
    found = json.loads(json.dumps({name: value for name, value in record.items() if name != CHECKSUM}))
    edit(found)
    return seal(found).encode()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_record_that_matches_no_stage_is_damage(store: Store, edit: Edit) -> None:
    carry_out(store, WORK)
    record = store.record(WORK.identity)
    assert fault_of(record) == ""
    write(store, f"artifacts/{WORK.identity[:2]}/{WORK.identity}/stage.json", edited(record, edit))
    everything(store)
    assert not store.has(WORK.identity)
    with pytest.raises(ArtifactDamagedError):
        store.record(WORK.identity)


@pytest.mark.parametrize("edit", [*EDITS.values(), *OF_SHARED.values()], ids=[*EDITS, *OF_SHARED])
def test_a_forged_record_in_a_shared_folder_is_ignored_and_its_stage_recomputed(
    tmp_path: Path, work_log: Path, edit: Edit
) -> None:
    (tmp_path / "network").mkdir()
    here, there = (on_machine(str(tmp_path / "network"), tmp_path / place) for place in ("here", "there"))
    carry_out(here, WORK)
    key = f"artifacts/{WORK.identity[:2]}/{WORK.identity}/stage.json"
    write(there, key, edited(here.record(WORK.identity), edit))
    before = sorted(path for path in tmp_path.rglob("*") if "network" not in path.parts)
    report, said = carry_out(there, stage("next", WORK))
    assert names(report.executed) == ["work", "next"]
    assert len([line for line in said if "is damaged" in line]) == 1
    new = {path for path in tmp_path.rglob("*") if "network" not in path.parts} - set(before)
    assert all(path.is_relative_to(tmp_path / "there") or path.name == "log" for path in new)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\x00" * 100, b"null", b'"x"', b"1" * 10_000])
def test_a_record_with_other_fields_is_damage_in_every_store(any_store: Store, content: bytes) -> None:
    carry_out(any_store, WORK)
    write(any_store, f"artifacts/{WORK.identity[:2]}/{WORK.identity}/stage.json", content)
    report, said = carry_out(any_store, stage("next", WORK))
    assert names(report.executed) == ["work", "next"]
    assert len([line for line in said if "is damaged" in line]) == 1


def test_a_giant_record_is_not_read_whole(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("synthbench.base.durability", "synthbench.engine.patience"):
        monkeypatch.setattr(f"{module}.MOST_BYTES", 5_000)
    carry_out(any_store, WORK)
    write(any_store, f"artifacts/{WORK.identity[:2]}/{WORK.identity}/stage.json", b" " * 100_000)
    with pytest.raises(ArtifactDamagedError, match="is too large"):
        any_store.record(WORK.identity)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as found:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            found.bind(path.name)
        finally:
            os.chdir(here)


def loop(path: Path) -> None:
    path.symlink_to(path.parent.parent)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)


SPECIAL = [pipe, a_socket, loop, dangling, endless, a_folder]


@pytest.mark.parametrize("make", SPECIAL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("place", ["stage.json", "name.txt"])
def test_special_files_in_a_local_store_are_never_opened(
    store: Store, make: Callable[[Path], None], place: str
) -> None:
    carry_out(store, WORK)
    file = store.folder(WORK.identity) / place
    file.unlink()
    make(file)
    report, said = carry_out(store, stage("next", WORK))
    assert names(report.executed) == ["work", "next"]
    assert len([line for line in said if "is damaged" in line]) == 1
    everything(store)


@pytest.mark.parametrize("make", SPECIAL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("place", ["artifacts", "attempts", "leases", "used", "addresses"])
def test_special_files_in_a_shared_folder_are_never_opened(
    tmp_path: Path, make: Callable[[Path], None], place: str
) -> None:
    network = tmp_path / "network"
    network.mkdir()
    store = on_machine(str(network), tmp_path / "here")
    carry_out(store, WORK)
    for folder in [network / place, *sorted(path for path in (network / place).rglob("*") if path.is_dir())]:
        folder.mkdir(exist_ok=True)
        make(folder / uuid.uuid4().hex[:8])
    everything(store)
    report, said = carry_out(store, stage("next", WORK))
    assert (names(report.executed), [line for line in said if "damaged" in line]) == (["next"], [])


@pytest.mark.parametrize("make", [pipe, loop, dangling, endless], ids=lambda make: make.__name__)
@pytest.mark.parametrize("place", ["artifacts", "attempts"])
def test_stages_with_special_files_in_place_of_shared_ones_are_computed_again(
    tmp_path: Path, make: Callable[[Path], None], place: str
) -> None:
    network = tmp_path / "network"
    network.mkdir()
    carry_out(on_machine(str(network), tmp_path / "here"), WORK)
    (file,) = (path for path in (network / place).rglob("*") if path.is_file())
    file.unlink()
    make(file)
    report, _ = carry_out(on_machine(str(network), tmp_path / "there"), stage("next", WORK))
    assert names(report.executed) == ["work", "next"]


def test_a_link_in_a_shared_folder_is_not_followed(tmp_path: Path) -> None:
    """A peer's link must not let this machine write, read or delete its user's files."""
    own, network = tmp_path / "own", tmp_path / "network"
    own.mkdir()
    network.mkdir()
    (own / "secret").write_text("secret")
    (network / "leases").symlink_to(own)
    (network / "attempts").mkdir()
    (network / "attempts" / "x").symlink_to(own)
    objects = PatientObjects(FolderObjects(network))
    for request in (objects.create, objects.write):
        with pytest.raises(UserError, match="a link leads out of the store"):
            request("leases/x", b"x")
    with pytest.raises(UserError, match="a link leads out of the store"):
        objects.delete(["attempts/x/secret"])
    for key in ("leases/secret", "attempts/x/secret"):
        with pytest.raises(FileNotFoundError):
            objects.read(key)
        with pytest.raises(FileNotFoundError):
            objects.download(key, tmp_path / "copy", 10)
    assert [entry.key for entry in objects.list("attempts/")] == []
    assert sorted(path.name for path in own.iterdir()) == ["secret"]


def test_a_file_larger_than_recorded_is_not_fetched_whole(tmp_path: Path) -> None:
    objects = PatientObjects(FolderObjects(tmp_path))
    objects.write("key", b"x" * 10_000)
    objects.download("key", tmp_path / "copy", 10)
    assert (tmp_path / "copy").stat().st_size == 11
    assert file_hash(tmp_path / "copy")


@pytest.mark.parametrize(
    "note", [b"{", b"null", b'{"a": 1}', b"[1, null, []]", b"[" * 100_000, b'["../../x"]', b"7"]
)
def test_invalid_notes_of_runs_are_removed(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "network").mkdir()
    store = on_machine(str(tmp_path / "network"), tmp_path / "here")
    carry_out(store, WORK)
    store.shared.objects.write(f"used/{uuid.uuid4().hex}.json", note)
    everything(store)
    assert not list(store.shared.objects.list("used/"))


@pytest.mark.parametrize("addresses", [[], "x", {"a": 1}, None])
def test_malformed_addresses_are_reported_and_no_artifact_is_removed(
    any_store: Store, addresses: object
) -> None:
    carry_out(any_store, WORK)
    any_store.addresses.remember("study", {"a": WORK.identity})
    key = "addresses/study.json"
    if any_store.shared:
        (key,) = (entry.key for entry in any_store.shared.objects.list("addresses/"))
    write(any_store, key, seal({"addresses": addresses}).encode())
    with pytest.raises(UserError, match="unknown what study uses"):
        clean(any_store, 0)
    assert any_store.has(WORK.identity)


@pytest.mark.parametrize("name", ["../../x", "/etc", "x", "AB" * 32, "", "ab" * 32 + "\n"])
def test_a_file_name_that_is_no_identity_is_ignored_by_every_store(any_store: Store, name: str) -> None:
    assert not any_store.has(name)
    assert any_store.info(name) is None
    with pytest.raises(ArtifactDamagedError):
        any_store.folder(name)
