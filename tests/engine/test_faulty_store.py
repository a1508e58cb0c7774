"""A failing store server: results are committed once it recovers; other machines lose nothing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_stages import carry_out, diamond, names, names_of_failed, stage
from fakes import work_done
from faulty_s3 import EXPIRED, KINDS, Faults, faulty_s3
from s3 import log_in, make_bucket, s3_server
from shared_stores import contents, new_prefix, on_machine
from wording import refused

from synthbench.engine import cloud_objects
from synthbench.engine.objects import FolderObjects, UnavailableError
from synthbench.engine.patience import Patience, PatientObjects
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.slurm_queue import Left, Queue
from synthbench.engine.store import Store

A = "a" * 64


@dataclass
class Clock:
    """A clock that only sleeping moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(scope="module")
def server() -> Iterator[Faults]:
    """A server with a bucket, behind a proxy."""
    with s3_server() as address, faulty_s3(address) as faults:
        make_bucket(address)
        yield faults


@pytest.fixture
def faults(server: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Faults on the way to the server; none at first."""
    log_in(monkeypatch, server.address)
    monkeypatch.setattr(cloud_objects, "RETRIES", 0)
    server.log.clear()
    yield server
    server.up()


@pytest.fixture
def clock() -> Clock:
    """The clock of both machines' patience."""
    return Clock()


def machine(cache: Path, clock: Clock, said: list[str] | None = None) -> Store:
    store = on_machine(new_prefix(), cache)
    store.shared.objects.patience = Patience(clock=clock, sleep=clock.sleep)
    store.say = (said if said is not None else []).append
    assert not store.contents.exists()
    return store


@pytest.fixture
def here(faults: Faults, clock: Clock, tmp_path: Path) -> Store:
    """The store as this machine sees it, which it has reached once."""
    return machine(tmp_path / "here", clock)


@pytest.fixture
def there(here: Store, clock: Clock, tmp_path: Path) -> Store:
    """The store as another machine sees it."""
    return machine(tmp_path / "there", clock)


def finish(store: Store, content: bytes = b"x" * 1000) -> None:
    (store.workspace(A) / "output" / "data").write_bytes(content)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "attempts/"), ("PUT", "artifacts/"), ("GET", "artifacts/"), ("", "")]
)
def test_a_commit_succeeds_despite_three_faults_on_the_way(
    here: Store, there: Store, faults: Faults, kind: str, method: str, path: str
) -> None:
    finish(here)
    faults.stall_seconds = 0.01
    faults.next(method, path, *[kind] * (1 if kind == "short" else 3))
    assert here.commit(A, {"label": "work"})
    faults.up()
    assert (there.fetch(A) / "data").read_bytes() == b"x" * 1000
    there.verify(A)
    assert len(list(here.shared.objects.list(f"attempts/{A}/"))) == 1


def test_an_outage_of_most_of_an_hour_loses_no_work(
    here: Store, faults: Faults, clock: Clock, work_log: Path
) -> None:
    end = clock.now + 3540

    def sleep(seconds: float) -> None:
        clock.now += seconds
        if clock.now >= end:
            faults.up()

    here.shared.objects.patience = Patience(clock=clock, sleep=sleep)
    said: list[str] = []
    here.say = said.append
    finish(here)
    faults.down()
    assert here.commit(A, {})
    assert 3540 <= clock.now < 3600
    (line,) = said
    assert "trying again for 60 min" in line


def test_work_left_by_a_longer_outage_is_committed_by_the_next_run(
    here: Store, there: Store, faults: Faults, work_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three seconds of 503 once threw a training away."""
    work = stage("work")
    real = Store.commit

    def commit_in_an_outage(self: Store, identity: str, record: dict[str, object]) -> bool:
        faults.down()
        try:
            return real(self, identity, record)
        finally:
            faults.up()

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit_in_an_outage)
        report, _ = carry_out(here, work)
    assert names_of_failed(report) == ["work"]
    assert "the same command goes on" in report.failure_lines[0]
    report, said = carry_out(here, work)
    assert names(report.executed) == ["work"]
    assert work_done(work_log) == ["work"]
    assert "committed work work, which a former run had finished" in said
    assert (there.fetch(work.identity) / "name.txt").read_text() == "work"
    assert not here.unfinished.folder(work.identity).exists()


def test_finished_work_that_was_damaged_is_computed_again(here: Store, work_log: Path) -> None:
    work = stage("work")
    output = here.workspace(work.identity) / "output"
    (output / "name.txt").write_text("work")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(UnavailableError):
        patch.setattr(Store, "_publish", _unavailable)
        here.commit(work.identity, {})
    (output / "name.txt").write_text("WORK")
    report, _ = carry_out(here, work)
    assert names(report.executed) == work_done(work_log) == ["work"]
    assert (here.fetch(work.identity) / "name.txt").read_text() == "work"


def _unavailable(*_: object) -> bool:
    raise UnavailableError("away")


def test_a_local_stage_whose_rename_failed_is_finished_by_the_next_run(
    store: Store, work_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = stage("work")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_publish", _unavailable)
        assert names_of_failed(carry_out(store, work)[0]) == ["work"]
    assert names(carry_out(store, work)[0].executed) == work_done(work_log) == ["work"]


def test_an_http_conflict_is_retried_and_deletes_nothing(here: Store, there: Store, faults: Faults) -> None:
    """AWS documents 409 at a conditional put as "retry"."""
    there.shared.objects.write(f"attempts/{A}/{'b' * 32}/data", b"another machine's upload")
    finish(here)
    faults.next("PUT", "artifacts/", "409", "409")
    assert here.commit(A, {})
    assert (there.fetch(A) / "data").read_bytes() == b"x" * 1000
    assert len(list(here.shared.objects.list(f"attempts/{A}/"))) == 2


def test_a_commit_that_another_machine_won_is_not_ours(here: Store, there: Store, faults: Faults) -> None:
    finish(here, b"slow")
    finish(there, b"fast")
    assert there.commit(A, {})
    faults.next("PUT", "artifacts/", "409")
    assert not here.commit(A, {})
    assert (here.fetch(A) / "data").read_bytes() == b"fast"
    assert len(list(here.shared.objects.list(f"attempts/{A}/"))) == 1


def test_artifacts_committed_first_by_another_machine_are_shared(
    here: Store, there: Store, work_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = stage("work")
    real = Store.commit

    def second(self: Store, identity: str, record: dict[str, object]) -> bool:
        (there.workspace(identity) / "output" / "name.txt").write_text("work")
        assert real(there, identity, record)
        return real(self, identity, record)

    monkeypatch.setattr(Store, "commit", second)
    report, _ = carry_out(here, work)
    assert (names(report.executed), names(report.shared)) == ([], ["work"])


def test_discarding_an_unreadable_artifact_deletes_no_attempt(here: Store) -> None:
    key = f"artifacts/aa/{A}/stage.json"
    here.shared.objects.write(key, b"{")
    here.shared.objects.write(f"attempts/{A}/{'b' * 32}/data", b"another machine's upload")
    here.discard(A)
    assert [entry.key for entry in here.shared.objects.list("")] == [f"attempts/{A}/{'b' * 32}/data"]


def test_a_truncated_download_withdraws_nothing(here: Store, there: Store, faults: Faults) -> None:
    finish(here)
    here.commit(A, {})
    faults.next("GET", "attempts/", "short", "truncated", "short")
    assert (there.fetch(A) / "data").read_bytes() == b"x" * 1000
    assert here.has(A)


def test_a_truncated_record_is_read_again(here: Store, there: Store, faults: Faults) -> None:
    finish(here)
    here.commit(A, {"label": "work"})
    faults.next("GET", "stage.json", "short", "truncated", "short")
    assert there.record(A)["label"] == "work"
    with there.listed():
        there.check(A)


def test_truncated_ledgers_queues_notes_and_work_are_read_again(
    here: Store, there: Store, faults: Faults
) -> None:
    assert here.shared is not None
    faults.next("PUT", "", "lost")
    faults.next("GET", "", *["short", "truncated", ""] * 40)
    with here.ledger.held():
        pass
    with there.ledger.held():
        pass
    here.addresses.remember("study", {"row": A})
    assert there.addresses.of("study") == {"row": A}
    with pytest.raises(KeyError), here.saving([A]):
        (here.workspace(A) / "journal.jsonl").write_text("unit")
        raise KeyError
    assert (there.workspace(A) / "journal.jsonl").read_text() == "unit"
    queue = Queue(here.shared.objects)
    queue.open("code")
    queue.end(1, Left("why"))
    assert queue.claim(1, "1_0")
    assert (queue.code(), queue.taker(1), queue.outcome(1)) == ("code", "1_0", Left("why"))


@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_random_faults_change_no_bytes_and_repeat_no_finished_stage(
    store: Store,
    faults: Faults,
    clock: Clock,
    seed: int,
    share: float,
    work_log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Faults of all kinds, credentials that expire among them."""
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = k\naws_secret_access_key = s\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    here, there = (machine(tmp_path / name, clock) for name in ("here", "there"))
    faults.stall_seconds = 0.01
    faults.seeded(seed, share=share, kinds=(*KINDS, EXPIRED), most_in_a_row=2)
    for computer, end in (
        (here, diamond()),
        (there, stage("more", diamond())),
        (here, stage("last", diamond())),
    ):
        with computer.locks.run("experiment", []):
            report, _ = carry_out(computer, end)
        assert not report.failed
    assert sorted(work_done(work_log)) == ["end", "last", "left", "more", "right", "top"]
    assert sum(faults.counts().values()) > faults.counts()[""] + 20 * share
    faults.up()
    carry_out(store, diamond())
    end = diamond()
    assert contents(there, end.identity) == {
        f"{end.identity}/name.txt": (store.folder(end.identity) / "name.txt").read_bytes()
    }


def test_the_same_seed_draws_the_same_faults() -> None:
    drawn = []
    for _ in range(2):
        faults = Faults()
        faults.seeded(5, share=0.5, most_in_a_row=2)
        drawn.append([faults.decide("PUT", f"/bucket/attempts/{number}") for number in range(50)])
    assert drawn[0] == drawn[1]
    assert {"", *drawn[0]} == {"", *KINDS}
    assert all(any(not fault for fault in drawn[0][at : at + 3]) for at in range(48))


def test_a_store_that_never_responds_fails_soon(faults: Faults, clock: Clock, tmp_path: Path) -> None:
    store = on_machine(new_prefix(), tmp_path)
    store.shared.objects.patience = Patience(clock=clock, sleep=clock.sleep)
    faults.down("closed")
    with refused("can't be reached", "AWS_ENDPOINT_URL"):
        store.prepare()
    assert clock.now <= 21


def test_a_refusal_is_not_retried(tmp_path: Path, clock: Clock) -> None:
    class Refusing(FolderObjects):
        def parts(self, key: str) -> Iterator[bytes]:
            raise ArtifactDamagedError(key, "no")

    with pytest.raises(ArtifactDamagedError):
        PatientObjects(Refusing(tmp_path), Patience(clock=clock, sleep=clock.sleep)).read("key")
    assert clock.now == 0


def test_a_lease_that_can_not_be_released_delays_no_run(here: Store, faults: Faults) -> None:
    with here.locks.stage(A, "work"):
        faults.down()
    faults.up()
    (entry,) = here.shared.objects.list("leases/")
    assert json.loads(here.shared.objects.read(entry.key))["stage"] == "work"
