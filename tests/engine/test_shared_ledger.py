"""One ledger for all machines of a shared store: answers are paid once, and budgets hold on all together."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from fake_stages import RUNTIME, Graph, names, stage
from fakes import Lines
from faulty_server import FaultyServer, Reply, echo, faulty_server, said
from shared_stores import on_machine
from wording import refused

from synthbench.base.durability import seal
from synthbench.base.errors import UserError
from synthbench.base.mounts import network_file_system
from synthbench.engine import runner, shared_ledger
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.leases import StageBusyError
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.shared_ledger import CountedHold, SharedLedger
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, VARIABLE, open_store
from synthbench.llm import ledger_copy
from synthbench.llm.accounts import Cost
from synthbench.llm.answers import Answer
from synthbench.llm.cache import FILE, AnswerCache, OverBudgetError
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.ledger import StageAttempts, entries
from synthbench.llm.ledger_copy import LedgerCopy
from synthbench.llm.prices import Price
from synthbench.llm.requests import ChatRequest

PRICE = Price(input=1, output=1, date="2026-01-01")
ENDPOINT = Endpoint("mine", "http://127.0.0.1:1/v1", "model", pacing=Pacing(budget_usd=10.0, price=PRICE))
STUDY = Account("study", "stage")


def machine(folder: Path, name: str) -> Store:
    """Return the store as a machine with a disk of its own sees it."""
    (folder / "shared").mkdir(exist_ok=True)
    return on_machine(str(folder / "shared"), folder / name)


def cache_of(store: Store) -> AnswerCache:
    return AnswerCache(store.answers, ENDPOINT, STUDY, print, store.ledger.send)


def begin(cache: AnswerCache, key: str, usd: float) -> int:
    attempt = cache.begin_attempt(key, Cost(1, 1, usd))
    assert attempt is not None
    cache.share()
    return attempt


def pay(store: Store, key: str, usd: float = 1.0) -> None:
    """Get an answer for so much money."""
    with store.ledger.held(), cache_of(store) as cache:
        cache.record_answer(begin(cache, key, usd), key, Answer(f"text of {key}", "", 1, 1), usd)


def taken_over(store: Store) -> SharedLedger:
    """Return the ledger of a machine that does not see the leases of others."""
    assert store.shared is not None
    return SharedLedger(store.shared.objects, store.answers, lambda *_: nullcontext())


def found(store: Store, key: str) -> str | None:
    store.ledger.receive()
    with cache_of(store) as cache:
        answer = cache.find(key)
    return None if answer is None else answer.text


def total(store: Store) -> StageAttempts:
    store.ledger.receive()
    (entry,) = entries(store.answers)
    return entry


def objects(folder: Path) -> list[str]:
    root = folder / "shared"
    return sorted(str(file.relative_to(root)) for file in (root / "ledger").rglob("*") if file.is_file())


def test_an_answer_paid_on_one_machine_is_free_on_another_and_both_spend_one_budget(tmp_path: Path) -> None:
    one, other = machine(tmp_path, "one"), machine(tmp_path, "other")
    pay(one, "a", 6.0)
    with other.ledger.held(), cache_of(other) as cache:
        answer = cache.find("a")
        assert answer is not None
        assert answer.text == "text of a"
        with pytest.raises(OverBudgetError):
            cache.begin_attempt("b", Cost(1, 1, 6.0))
        assert cache.begin_attempt("c", Cost(1, 1, 3.0)) is not None
    pay(one, "d", 0.5)
    assert found(other, "d") == "text of d"
    assert (total(one).paid.usd, total(one).in_doubt.usd) == (6.5, 3.0)
    assert total(other) == total(one)


def test_one_machine_at_a_time_asks(tmp_path: Path) -> None:
    one, other = machine(tmp_path, "one"), machine(tmp_path, "other")
    with one.ledger.held(), pytest.raises(StageBusyError, match=f"process {os.getpid()} on "):
        other.ledger.held().__enter__()
    with other.ledger.held():
        pass


@pytest.mark.parametrize("has_turn_ids", [True, False], ids=["", "began with an earlier version"])
@pytest.mark.parametrize("reads", [False, True], ids=["", "reads the others' entries"])
def test_a_former_holder_that_still_lives_sends_nothing_and_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads: bool, has_turn_ids: bool
) -> None:
    """Its lease expired while it was stopped; nobody's clock or lease decides what counts."""
    if not has_turn_ids:
        monkeypatch.setattr(SharedLedger, "_turn", lambda _: "")
    one, other = machine(tmp_path, "one"), machine(tmp_path, "other")
    taken_over(one)._begin()
    with cache_of(one) as slow:
        begin(slow, "a", 1.0)
        for key in ("b", "c", "d"):
            pay_without_leases(other, key)
        taken_over(other)._merge()
        if reads:
            one.ledger.receive()
        with refused("another machine took over the ledger of LLM answers"):
            begin(slow, "e", 1.0)
    assert found(other, "e") is None
    assert total(other).answered.num_attempts == 3
    assert total(other).in_doubt.num_attempts == 1, "it was in flight when the other machine took over"


@pytest.mark.parametrize("reads", [False, True], ids=["", "reads the ledger"])
def test_a_process_that_is_killed_while_it_sends_ends_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    """Its entry is in the store, but the machine's copy does not know."""
    one = machine(tmp_path, "one")
    with one.ledger.held(), cache_of(one) as cache:
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(LedgerCopy, "sent", lambda *_: 1 / 0)
            begin(cache, "a", 2.0)
        if reads:
            one.ledger.receive()
        cache.record_answer(begin(cache, "b", 1.0), "b", Answer("text", "", 1, 1), 1.0)
    other = machine(tmp_path, "other")
    assert found(other, "b") == "text"
    assert (total(other).answered.usd, total(other).in_doubt.usd) == (1.0, 2.0)


def pay_without_leases(store: Store, key: str) -> None:
    taken_over(store)._begin()
    with cache_of(store) as cache:
        cache.record_answer(begin(cache, key, 1.0), key, Answer("text", "", 1, 1), 1.0)
    store.ledger.send()


def test_what_a_dead_machine_had_in_flight_is_in_doubt_until_it_comes_back_with_the_answer(
    tmp_path: Path,
) -> None:
    one, other = machine(tmp_path, "one"), machine(tmp_path, "other")
    taken_over(one)._begin()
    killed = cache_of(one)
    attempt = begin(killed, "a", 2.0)
    killed.record_answer(attempt, "a", Answer("late", "", 1, 1), 1.5)
    # It dies here, before it sends the answer.
    with other.ledger.held(), cache_of(other):
        pass
    assert (found(other, "a"), total(other).in_doubt.usd) == (None, 2.0)
    with one.ledger.held():
        pass
    assert (found(other, "a"), total(other).answered.usd) == ("late", 1.5)
    assert total(other).in_doubt.num_attempts == 0


def test_entries_are_merged_at_the_end_of_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn begins with an entry that stays, so that no former holder can take its number."""
    monkeypatch.setattr(ledger_copy, "MOST_ROWS", 2)
    one = machine(tmp_path, "one")
    with one.ledger.held(), cache_of(one) as cache:
        for number in range(8):
            key = f"k{number}"
            cache.record_answer(begin(cache, key, 0.1), key, Answer(key, "", 1, 1), 0.1)
        assert len(objects(tmp_path)) > 10
    assert len(objects(tmp_path)) == 2
    pay(one, "more", 0.1)
    assert len(objects(tmp_path)) == 4
    new = machine(tmp_path, "new")
    assert found(new, "k7") == "k7"
    assert found(new, "more") == "text of more"
    assert total(new) == total(one)
    assert total(new).answered.num_attempts == 9


def test_a_long_turn_is_merged_into_entries_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_ledger, "BYTES_OF_A_MERGED_ENTRY", 2000)
    one = machine(tmp_path, "one")
    with one.ledger.held(), cache_of(one) as cache:
        for number in range(12):
            key = f"k{number}"
            cache.record_answer(begin(cache, key, 0.1), key, Answer("x" * 500, "", 1, 1), 0.1)
    assert 3 <= sum("merged" in name for name in objects(tmp_path)) <= 6
    assert total(machine(tmp_path, "new")) == total(one)


def test_a_kill_while_entries_are_merged_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(tmp_path, "one")
    assert one.shared is not None
    with pytest.raises(ZeroDivisionError), one.ledger.held(), cache_of(one) as cache:
        for key in ("a", "b"):
            cache.record_answer(begin(cache, key, 0.1), key, Answer(key, "", 1, 1), 0.1)
        monkeypatch.setattr(one.shared.objects, "delete", lambda keys: 1 / 0)
    monkeypatch.undo()
    assert any("merged" in name for name in objects(tmp_path))
    pay(one, "c", 0.1)
    new = machine(tmp_path, "new")
    assert [found(new, key) for key in ("a", "b", "c")] == ["a", "b", "text of c"]
    assert total(new).answered.num_attempts == 3


ODD_ROWS = {
    "other rows": ["sqlite_master", ["x"], ["y"]],
    "no values": ["answers", ["k"], []],
    "a missing value": ["answers", ["k"], ["k", "text", None, 1, 1, None]],
    "a number that is too large": ["answers", ["k"], ["k", "text", "", 2**63, 1, None]],
}


@pytest.mark.parametrize("harm", ["cut", "removed", "no rows", *ODD_ROWS])
def test_damage_is_reported_in_one_line(tmp_path: Path, harm: str) -> None:
    for key in ("a", "b"):
        pay(machine(tmp_path, "one"), key)
    file = min((tmp_path / "shared" / "ledger" / "merged").iterdir())
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:50])
    elif harm == "removed":
        file.unlink()
    else:
        rows = [ODD_ROWS[harm]] if harm in ODD_ROWS else "text"
        file.write_text(seal({"rows": rows}))
    with refused("ledger"):
        machine(tmp_path, "other").ledger.receive()


def test_a_copy_whose_tables_a_kill_left_half_made_has_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of its triggers, an attempt would never reach the other machines."""
    one = machine(tmp_path, "one")
    with monkeypatch.context() as patch:
        patch.setattr(ledger_copy, "_triggers", lambda: ["killed here"])
        with pytest.raises(UserError, match="syntax error"):
            pay(one, "a")
    pay(one, "a")
    assert found(machine(tmp_path, "other"), "a") == "text of a"


def test_strangers_objects_beside_the_entries_are_ignored(tmp_path: Path) -> None:
    pay(machine(tmp_path, "one"), "a")
    for name in (".DS_Store", "1", "merged/.nfs01", "merged/0000000001", "../ledgers"):
        (tmp_path / "shared" / "ledger" / name).write_text("x")
    assert found(machine(tmp_path, "other"), "a") == "text of a"


def write_mounts(folder: Path, table: str) -> None:
    """Write Linux's table of mounts, where `folder` stands for /proc."""
    (folder / "self").mkdir()
    (folder / "self" / "mounts").write_text(table, encoding="utf-8")


def mount(at: Path, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file system of this kind be mounted there, and nothing else."""
    as_in_the_table = str(at).replace(" ", "\\040")
    write_mounts(folder, f"server:/export {as_in_the_table} {kind} rw 0 0\n")
    monkeypatch.setattr("psutil.PROCFS_PATH", str(folder))


@pytest.mark.parametrize("kind", ["ext4", "nfs4"])
def test_answers_of_the_homes_earlier_ledger_are_not_paid_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Earlier versions kept it on a network file system, too, where no SQLite file is opened now."""
    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path / "home"))
    with AnswerCache(tmp_path / "home" / "store" / "llm", ENDPOINT, STUDY) as cache:
        attempt = cache.begin_attempt("a", Cost(1, 1, 1.0))
        assert attempt is not None
        cache.record_answer(attempt, "a", Answer("earlier", "", 1, 1), 1.0)
    mount(tmp_path / "home", kind, tmp_path, monkeypatch)
    one = machine(tmp_path, "one")
    with one.ledger.held():
        pass
    assert found(machine(tmp_path, "other"), "a") == "earlier"


NFS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw,vers=4.2 0 0
tmpfs /mnt/nfs/local tmpfs rw 0 0
server:/a\\040b /mnt/a\\040b lustre rw 0 0
server:/c /mnt/données ceph rw 0 0
"""


def test_network_file_systems_are_told_by_their_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.PROCFS_PATH", str(tmp_path))
    assert network_file_system(Path("/mnt/nfs")) == ""
    write_mounts(tmp_path, NFS)
    kinds = {
        "/mnt/nfs/home/store": "nfs4",
        "/mnt/nfs/local/x": "",
        "/mnt/a b/x": "lustre",
        "/mnt/données/x": "ceph",
        "/mnt/nfs2": "",
        "/home": "",
    }
    assert {path: network_file_system(Path(path)) for path in kinds} == kinds


def test_no_sqlite_file_is_made_on_a_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local store there refuses to ask; a shared one keeps its copy on the local disk instead."""
    network, local = tmp_path / "network", tmp_path / "local"
    (network / "shared").mkdir(parents=True)
    local.mkdir()
    mount(network, "nfs4", tmp_path, monkeypatch)
    with refused("nfs4", "SYNTHBENCH_STORE"):
        AnswerCache(Store(network / "store").answers, ENDPOINT, STUDY)
    monkeypatch.setenv(VARIABLE, str(network / "shared"))
    monkeypatch.setenv(CACHE_VARIABLE, str(network / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(local))
    pay(open_store(), "a")
    assert list(network.rglob("*.sqlite*")) == []
    (copy,) = local.rglob(FILE)
    assert copy.stat().st_mode & 0o077 == 0
    monkeypatch.setattr("tempfile.tempdir", str(network))
    monkeypatch.setattr("os.getuid", lambda: 0)  # its number is in the folder's name, and so in the message
    with refused("nfs4", CACHE_VARIABLE):
        open_store()


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")], ids=["file", "link"])
def test_what_lies_in_the_way_of_the_ledgers_copy_is_refused_in_one_line(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may write to the folder of temporary files."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "shared"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.getuid", lambda: 0)  # its number is in the message
    make(tmp_path / "synthbench-0")
    with refused("is not yours", CACHE_VARIABLE):
        open_store()


def chat(store: Store, server: FaultyServer, pacing: Pacing, number: int) -> int:
    client = ChatClient(
        Endpoint("mine", server.base_url, "model", pacing=pacing),
        store.answers,
        STUDY,
        print,
        store.ledger.send,
    )
    with store.ledger.held():
        return sum(each.text is not None for each in client.answers(texts(number)))


def texts(number: int) -> list[ChatRequest]:
    return [ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(number)]


def test_the_store_knows_of_each_request_before_the_service_does(tmp_path: Path) -> None:
    one = machine(tmp_path, "one")
    missing = list[str]()

    def checking(number: int, body: dict[str, Any]) -> Reply:
        """Answer, and note if fewer attempts are in the store than requests have come."""
        texts = [(tmp_path / "shared" / name).read_text() for name in objects(tmp_path)]
        known = sum(text.count('"sent"') for text in texts)
        if known < number + 1:
            missing.append(f"request {number + 1}: {known} known")
        return echo(number, body)

    with faulty_server(checking) as server:
        assert chat(one, server, Pacing(concurrency=4), 12) == 12
    assert missing == []


def test_machines_that_ask_in_turn_spend_one_budget(tmp_path: Path) -> None:
    """A text of 6 or 7 bytes may cost as many tokens and 8 more, an answer at most 100: 25 fit into 3,000."""
    stores = [machine(tmp_path, name) for name in ("one", "other")]
    pacing = Pacing(concurrency=4, budget_tokens=3000)
    with faulty_server(echo) as server:
        assert chat(stores[0], server, pacing, 10) == 10
        spent = total(stores[0]).paid
        assert spent.num_attempts == len(server.bodies) == 10
        with refused("llm.budget_tokens: 3,000 tokens"):
            chat(stores[1], server, pacing, 1000)
        paid, doubt = total(stores[1]).paid, total(stores[1]).in_doubt
        assert paid.num_attempts + doubt.num_attempts == len(server.bodies)
        assert paid.prompt_tokens + paid.completion_tokens <= 3000
        assert len({said(body) for body in server.bodies}) == len(server.bodies), "none was asked twice"


class Asks(type(stage("any").operation)):  # type: ignore[misc]
    """Work that is said to ask an LLM."""

    asked_llm = object()


@contextmanager
def held_until_it_is_waited_for(lease: AbstractContextManager[object], lines: Lines) -> Iterator[None]:
    """Let another thread hold a lease until a run says that it waits."""
    is_held = threading.Event()

    def hold() -> None:
        with lease:
            is_held.set()
            while not any(line.startswith("waiting for work asks") for line in lines.said):
                time.sleep(0.01)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert is_held.wait(30)
    yield
    holder.join(30)
    assert not holder.is_alive()


@pytest.fixture
def _few_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SECONDS_BETWEEN_ATTEMPTS", 0.01)
    monkeypatch.setattr(Runner, "_check_llms", lambda *_: None)


@pytest.mark.usefixtures("_few_pauses")
def test_a_stage_that_asks_waits_while_another_machine_does(tmp_path: Path) -> None:
    one, other, lines = machine(tmp_path, "one"), machine(tmp_path, "other"), Lines()
    asking = stage("asks")
    asking = type(asking)(Asks("asks"), {}, "asks")
    with held_until_it_is_waited_for(other.ledger.held(), lines):
        report = Runner(one, InProcess(), RUNTIME, lines).run(Graph([stage("free"), asking]))  # type: ignore[arg-type]
    assert names(report.executed) == ["free", "asks"]
    (line,) = (line for line in lines.said if line.startswith("waiting for work asks: process "))
    assert line.endswith(" asks an LLM")


class AsksAndTells(Asks):
    """Work that makes the file `behaviour`."""

    def run(self, inputs: Any, work: Any) -> None:
        super().run(inputs, work)
        Path(self.behaviour).touch()


class InThreads:
    """Runs two jobs at a time, in threads."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(2)
        self.running: dict[Future[JobOutcome], StageJob] = {}

    @property
    def capacity(self) -> int:
        return 2 - len(self.running)

    def fits(self, _: Stage) -> bool:
        return True

    def submit(self, job: StageJob) -> None:
        self.running[self.threads.submit(job.run)] = job

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        done, _ = wait(self.running, seconds, FIRST_COMPLETED)
        return [(self.running.pop(each), each.result()) for each in done]


@pytest.mark.usefixtures("_few_pauses")
@pytest.mark.parametrize("lease", ["ledger", "stage"])
def test_a_free_worker_takes_what_another_machine_frees_while_its_neighbour_works(
    tmp_path: Path, lease: str
) -> None:
    """The neighbour works until the other stage has run."""
    one, other, lines = machine(tmp_path, "one"), machine(tmp_path, "other"), Lines()
    has_asked = tmp_path / "asked"
    long = stage("long", behaviour=f"waits for {has_asked}")
    asking = type(long)(AsksAndTells("asks", behaviour=str(has_asked)), {}, "asks")
    of_other = other.ledger.held() if lease == "ledger" else other.locks.stage(asking.identity, "work asks")
    with held_until_it_is_waited_for(of_other, lines):
        report = Runner(one, InThreads(), RUNTIME, lines).run(Graph([long, asking]))  # type: ignore[arg-type]
    assert sorted(names(report.executed)) == ["asks", "long"]


class Interrupted(InProcess):
    """Ctrl-C comes while a job runs."""

    def submit(self, job: StageJob) -> None:
        pass

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        raise KeyboardInterrupt


def test_a_turn_ends_after_the_workers_whose_last_answers_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "_check_llms", lambda *_: None)
    one, other = machine(tmp_path, "one"), machine(tmp_path, "other")
    asking = stage("asks")
    asking = type(asking)(Asks("asks"), {}, "asks")
    with pytest.raises(KeyboardInterrupt), CountedHold(one.ledger.held) as turn, cache_of(one) as worker:
        try:
            Runner(one, Interrupted(), RUNTIME, Lines(), asking=turn).run(Graph([asking]))  # type: ignore[arg-type]
        finally:
            with pytest.raises(StageBusyError):
                other.ledger.held().__enter__()
            worker.record_answer(begin(worker, "a", 1.0), "a", Answer("last", "", 1, 1), 1.0)
    assert found(other, "a") == "last"


PROGRAM = """
import sys
from pathlib import Path
from synthbench.engine.leases import StageBusyError
from synthbench.engine.stores import open_store
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.prices import Price
from synthbench.llm.requests import ChatRequest
store = open_store()
pacing = Pacing(concurrency=int(sys.argv[3]))
client = ChatClient(Endpoint("mine", sys.argv[1], "model", pacing=pacing), store.answers,
                    Account("study", "stage"), print, store.ledger.send)
number = int(sys.argv[2])
asked = [ChatRequest(f"r{i}", ({"role": "user", "content": f"text {i}"},), {}) for i in range(number)]
while True:
    try:
        with store.ledger.held():
            print(len([each for each in client.answers(asked) if each.text]))
        break
    except StageBusyError:
        pass
"""


@pytest.mark.experiments
def test_machines_killed_in_turn_pay_twice_only_what_was_in_flight_at_the_kills(tmp_path: Path) -> None:
    """Each kill hits another of three machines, which have disks of their own.

    A request is in flight from its entry in the store until its answer's: an answer is sent there before
    another request takes its place, so a kill leaves at most `concurrency` texts without an answer.
    """
    (tmp_path / "shared").mkdir()
    num_kills, number, concurrency = 15, 400, 8
    in_flight = concurrency * num_kills

    def slow(_: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.01)
        return echo(_, body)

    def start(name: str) -> "subprocess.Popen[str]":
        variables = {
            **{VARIABLE: str(tmp_path / "shared"), CACHE_VARIABLE: str(tmp_path / name)},
            "SYNTHBENCH_LEASE_SECONDS": "0.5",
        }
        command = [sys.executable, "-c", PROGRAM, server.base_url, str(number), str(concurrency)]
        return subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)

    with faulty_server(slow) as server:
        for kill in range(num_kills):
            process, before = start(f"machine{kill % 3}"), len(server.bodies)
            while len(server.bodies) < before + 15 and process.poll() is None:
                time.sleep(0.005)
            assert process.poll() is None, process.communicate()
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        # Those killed last come back, too, with answers that the store lacks.
        for name in ("machine0", "machine1", "machine2"):
            output, _ = start(name).communicate()
            assert output.splitlines()[-1] == str(number)
        asked = [said(body) for body in server.bodies]
        new = machine(tmp_path, "new")
        assert chat(new, server, Pacing(concurrency=concurrency), number) == number
        assert len(server.bodies) == len(asked), "each text's answer is in the ledger"
    ledger = total(new)
    with closing(sqlite3.connect(new.answers / FILE)) as database:
        [(num_answers,)] = database.execute("SELECT count(*) FROM answers")
    counted = ledger.answered.num_attempts + ledger.in_doubt.num_attempts
    print(
        f"{num_kills} kills, {number} texts: {len(asked)} requests, {counted} attempts in the ledger,"
        f" {ledger.in_doubt.num_attempts} in doubt, {ledger.answered.num_attempts - number} answers paid"
        f" twice, {num_answers} answers; at most {in_flight} in flight at the kills"
    )
    assert num_answers == len(set(asked)) == number
    assert number <= ledger.answered.num_attempts <= len(asked) <= number + in_flight
    # A kill may come between an entry in the store and its requests: these are in doubt, and cost nothing.
    assert 0 <= counted - len(asked) <= in_flight
