"""Leases of a shared store: they expire by the observer's own clock, whatever the store's says."""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname

import pytest
from wording import refused

from synthbench.engine.leases import StageBusyError, described, this_process
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.locks import Locks
from synthbench.engine.objects import FolderObjects, ListedObject
from synthbench.engine.patience import PatientObjects
from synthbench.engine.shared_leases import SharedLeases, Watch, cache_id

NAME = "a" * 64
KEY = f"leases/{NAME}/00000000"


@dataclass
class Observer:
    """A process that watches leases, with a clock of its own."""

    root: Path
    now: float = 1000.0
    said: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.objects = PatientObjects(FolderObjects(self.root))
        watch = Watch(clock=lambda: self.now, sleep=self.sleep)
        self.leases = SharedLeases(self.objects, "here", 60.0, watch)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()

    def can_take(self) -> bool:
        try:
            with self.leases.hold(NAME, "work"):
                return True
        except StageBusyError:
            return False

    def awaited(self) -> str:
        return self.leases.worker(self.said.append)


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    """An observer of an empty store."""
    return Observer(tmp_path)


def write(observer: Observer, key: str = KEY, modified: float | None = None, **changes: object) -> None:
    """Write a lease as a process on another machine does."""
    holder = {**this_process("work"), "host": "elsewhere", "place": "there", "token": "t", **changes}
    observer.objects.write(key, json.dumps(holder).encode())
    if modified is not None:
        os.utime(observer.root / key, (modified, modified))


@pytest.mark.parametrize("off_by", [0.0, -86_400.0, 86_400.0])
def test_a_lease_expires_after_its_seconds_however_wrong_the_stores_clock_is(
    observer: Observer, off_by: float
) -> None:
    write(observer, modified=time.time() + off_by)
    assert not observer.can_take()
    observer.now += 59
    assert not observer.can_take()
    observer.now += 2
    assert observer.can_take()


def test_a_renewed_lease_is_alive_even_if_the_stores_clock_stops(observer: Observer) -> None:
    for number in range(5):
        write(observer, modified=1.0, renewed=number)
        assert not observer.can_take()
        observer.now += 50
    observer.now += 11
    assert observer.can_take()


def test_a_lease_of_an_earlier_version_is_alive_while_it_is_written(observer: Observer) -> None:
    """Such a lease never changes its content, only its modification time."""
    for number in range(5):
        write(observer, modified=1000.0 + number, since=1.0)
        assert not observer.can_take()
        observer.now += 50


def test_a_held_lease_is_renewed_with_another_content(tmp_path: Path) -> None:
    objects = PatientObjects(FolderObjects(tmp_path))
    leases = SharedLeases(objects, "here", 0.03)
    with leases.hold(NAME, "work"):
        first = objects.read(KEY)
        end = time.monotonic() + 20
        while objects.read(KEY) == first:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert not list(objects.list(""))
    while leases._renewer is not None:
        assert time.monotonic() < end
        time.sleep(0.01)


class SlowToWrite(FolderObjects):
    """Objects that reach their store only when they may, if a text is in their key."""

    def __init__(self, root: Path, text: str = "") -> None:
        super().__init__(root)
        self.text = text
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def write(self, key: str, content: bytes | Path) -> None:
        if self.text in key:
            self.began.set()
            assert self.may_end.wait(30)
        super().write(key, content)
        if self.text in key:
            self.ended.set()


def test_a_lease_released_during_its_renewal_is_gone(tmp_path: Path) -> None:
    """Else the next command of the same process finds "another `clean`" at work: itself, a moment ago."""
    slow = SlowToWrite(tmp_path)
    leases = SharedLeases(PatientObjects(slow), "here", seconds=0.3)
    with leases.hold(NAME, "work"):
        assert slow.began.wait(30)
    assert not (tmp_path / KEY).exists()
    slow.may_end.set()
    assert slow.ended.wait(30)
    assert leases.holder(NAME) == ""
    with leases.hold(NAME, "work"):
        assert list(leases.objects.list(f"leases/{NAME}/"))


class GoneWhenRead(FolderObjects):
    """Objects that another process deletes after each listing."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        found = list(super().list(prefix))
        self.delete([entry.key for entry in found])
        yield from found


def test_a_lease_that_is_released_while_leases_are_read_is_not_held(tmp_path: Path) -> None:
    lease = json.dumps({**this_process("work"), "host": "elsewhere", "place": "there", "token": "t"}).encode()
    objects = GoneWhenRead(tmp_path)
    leases = SharedLeases(PatientObjects(objects), "here")
    objects.write(KEY, lease)
    assert leases.holder(NAME) == ""
    objects.write(KEY, lease)
    assert leases.held() == []
    objects.write(KEY, lease)
    assert leases.worker(pytest.fail) == ""
    objects.write(KEY, lease)
    with leases.hold(NAME, "work") as left_behind:
        assert left_behind == ""


def test_a_stalled_renewal_delays_neither_the_stage_nor_other_renewals(tmp_path: Path) -> None:
    """Renewals that stalled 45 s once made a stage of 6 s take 48."""
    slow = SlowToWrite(tmp_path, text="aaa")
    leases = SharedLeases(PatientObjects(slow), "here", seconds=0.3)
    with leases.hold("b" * 64, "another"):
        key = f"leases/{'b' * 64}/00000000"
        first = leases.objects.read(key)
        with leases.hold(NAME, "work"):
            assert slow.began.wait(30)
            while leases.objects.read(key) == first:
                assert not slow.ended.is_set()
        assert not (tmp_path / KEY).exists()
    slow.may_end.set()


def test_leases_that_expired_during_a_run_are_removed_at_its_end(observer: Observer) -> None:
    locks = Locks("store", LocalLeases(observer.root / "locks"), print, lambda _: None, observer.leases)
    write(observer)
    with locks.run("experiment", []):
        observer.now += 61
    assert not list(observer.objects.list("leases/"))


def test_a_process_that_waits_removes_a_lease_that_it_saw_expire(observer: Observer, tmp_path: Path) -> None:
    """Each try of a waiting stage may run in a new process, which sees the lease for the first time."""
    locks = Locks("store", LocalLeases(tmp_path / "locks"), print, lambda _: None, observer.leases)
    write(observer)
    for seconds, num_left in ((0, 1), (59, 1), (2, 0)):
        observer.now += seconds
        holder = locks.remove_dead(NAME)
        assert len(list(observer.objects.list("leases/"))) == num_left
        assert holder.startswith("process ") is (num_left == 0)
    assert Observer(observer.root).can_take()


def test_a_cleaner_waits_for_a_renewal_and_names_the_holder(observer: Observer) -> None:
    write(observer, "leases/run-1/00000000", pid=77)
    assert observer.awaited() == ""
    assert 60 <= observer.now - 1000 <= 63
    (line,) = observer.said
    assert line.startswith("waiting up to 60 s for a sign of process 77 on elsewhere (since ")
    observer.leases.remove_dead()
    assert not list(observer.objects.list(""))


def test_a_cleaner_detects_a_live_run(observer: Observer) -> None:
    write(observer, "leases/run-1/00000000", pid=77)
    observer.meanwhile = lambda: write(observer, "leases/run-1/00000000", pid=77, renewed=1)
    assert observer.awaited().startswith("process 77 on elsewhere (since ")
    assert observer.now - 1000 < 5
    assert [entry.key for entry in observer.objects.list("leases/")] == ["leases/run-1/00000000"]


def test_the_lease_of_a_run_that_was_killed_here_is_removed_at_once(observer: Observer) -> None:
    write(observer, "leases/run-1/00000000", place="here", host=gethostname(), pid=2**22 + 1)
    write(observer, "leases/run-2/00000000", pid=2**22 + 1)
    observer.leases.remove_dead()
    assert [entry.key for entry in observer.objects.list("leases/")] == ["leases/run-2/00000000"]


def test_a_machine_with_the_same_home_folder_has_its_own_processes(observer: Observer) -> None:
    write(observer, place="here", host="elsewhere", pid=2**22 + 1)
    assert not observer.can_take()
    write(observer, place="here", host=gethostname(), pid=2**22 + 1)
    assert observer.can_take()


@pytest.mark.parametrize(
    "name",
    [
        "leases/.DS_Store",
        f"leases/{NAME}/.nfs0001",
        f"leases/{NAME}/soon",
        "leases/run-1/00000000/deep",
        f"leases/{NAME}/{'9' * 5000}"[:240],
    ],
)
def test_stray_files_among_leases_are_ignored(observer: Observer, name: str) -> None:
    observer.objects.write(name, b"x")
    assert observer.leases.holder(NAME) == ""
    assert observer.can_take()
    assert observer.awaited() == ""
    assert observer.now == 1000.0, "nothing was watched"


@pytest.mark.parametrize(
    "content", [b"", b"[" * 5000, b"null", b'{"pid": [], "host": 1, "place": "here"}', b"\xff", b"9" * 9000]
)
def test_a_stray_object_expires_like_a_lease(observer: Observer, content: bytes) -> None:
    observer.objects.write(KEY, content)
    with refused("another process", kind=StageBusyError), observer.leases.hold(NAME, "work"):
        pass
    observer.now += 61
    assert observer.can_take()


def test_processes_that_start_at_once_get_the_same_cache_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, draw = list[str](), uuid.uuid4
    other = threading.Thread(target=lambda: found.append(cache_id(tmp_path)))

    def slow_draw() -> uuid.UUID:
        if not other.ident:
            other.start()
            other.join(0.05)
        return draw()

    monkeypatch.setattr(uuid, "uuid4", slow_draw)
    own = cache_id(tmp_path)
    other.join()
    assert found == [own]
    assert own != ""


def test_a_holder_is_named_with_its_time_and_without_control_characters() -> None:
    today = this_process("work")
    assert described(json.dumps(today).encode()).endswith(time.strftime(" (since %H:%M)", time.localtime()))
    old = {"pid": 7, "host": "node\x1b[31m", "since": 0}
    assert described(json.dumps(old).encode()) == time.strftime(
        r"process 7 on node\u001b[31m (since %Y-%m-%d %H:%M)", time.localtime(0)
    )
    for since in ("soon", None, 1e300, float("nan"), [1]):
        assert described(json.dumps({**old, "since": since}).encode()) == r"process 7 on node\u001b[31m"
    assert len(described(json.dumps({**old, "host": "x" * 10_000}).encode())) < 200
