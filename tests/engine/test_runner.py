import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from disks import flip
from fake_stages import (
    RUNTIME,
    Graph,
    Together,
    Work,
    carry_out,
    diamond,
    hold_lock,
    in_process,
    names,
    names_of_failed,
    run_diamond,
    run_job,
    run_with_workers,
    stage,
    wait_for,
)
from fakes import Lines, work_done
from wording import refused

from synthbench.base.errors import UserError
from synthbench.engine.jobs import StageJob
from synthbench.engine.leases import StageBusyError
from synthbench.engine.local_artifacts import SMALL
from synthbench.engine.local_executors import InProcess, executor
from synthbench.engine.locks import Locks
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.runner import Runner, matching
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace


def forced(graph: Graph, *patterns: str) -> frozenset[str]:
    return frozenset(matching(graph, patterns))  # type: ignore[arg-type]


def test_every_stage_is_executed_once_inputs_first(store: Store, work_log: Path) -> None:
    report, _ = carry_out(store, diamond())
    assert not report.failed
    done = work_done(work_log)
    assert (done[0], done[-1], sorted(done[1:3])) == ("top", "end", ["left", "right"])


def test_equal_stages_of_several_targets_are_one(store: Store, work_log: Path) -> None:
    carry_out(store, stage("a", stage("shared")), stage("b", stage("shared")))
    assert sorted(work_done(work_log)) == ["a", "b", "shared"]


def test_a_second_run_executes_no_stage(store: Store, work_log: Path) -> None:
    carry_out(store, stage("b", stage("a")))
    report, said = carry_out(store, stage("b", stage("a")))
    assert (report.executed, said) == ([], [])
    assert len(work_done(work_log)) == 2


def test_a_later_run_executes_only_new_stages(store: Store, work_log: Path) -> None:
    carry_out(store, stage("b", stage("a")))
    report, _ = carry_out(store, stage("c", stage("b", stage("a"))))
    assert names(report.executed) == ["c"]


def test_an_unneeded_input_is_not_made_again(store: Store) -> None:
    first = stage("a")
    carry_out(store, stage("b", first))
    store.discard(first.identity)
    report, _ = carry_out(store, stage("b", stage("a")))
    assert report.executed == []


def test_a_failure_stops_only_dependent_stages(store: Store) -> None:
    broken = stage("broken", behaviour="bug")
    report, _ = carry_out(store, stage("after", stage("next", broken)), stage("other"), broken)
    assert names(report.executed) == ["other"]
    assert names_of_failed(report) == ["broken"]
    assert sorted(names(report.skipped)) == ["after", "next"]
    assert not report.only_user_errors
    (_, lines) = report.failed[broken.identity]
    assert "ZeroDivisionError: broken" in lines[0]


def test_a_failed_stage_is_tried_again_by_the_next_run(store: Store, work_log: Path) -> None:
    for _ in range(2):
        carry_out(store, stage("broken", behaviour="user error"))
    assert work_done(work_log) == ["broken", "broken"]


@dataclass(frozen=True)
class Wordless(Work):
    """Work that fails with these messages."""

    messages: tuple[str, ...] = ()

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        raise UserError(*self.messages)


@pytest.mark.parametrize("messages", [(), ("",), (" \n", "")])
def test_a_stage_that_fails_without_a_reason_is_reported(store: Store, messages: tuple[str, ...]) -> None:
    failing = Stage(Wordless("failing", messages=messages), label="failing")
    report, _ = carry_out(store, failing, stage("other"))
    assert report.failure_lines == ("work failing: no reason was given",)
    assert names(report.executed) == ["other"]


def test_a_faulty_source_stops_the_run_before_later_stages(store: Store, work_log: Path) -> None:
    good, bad = stage("good", first=True), stage("bad", behaviour="user error", first=True)
    report, _ = carry_out(store, stage("training", good), stage("other", bad))
    assert report.only_user_errors
    assert report.failed[bad.identity][1] == ("bad can't be done", "and this is why")
    assert sorted(work_done(work_log)) == ["bad", "good"]
    assert sorted(names(report.skipped)) == ["other", "training"]


def test_sources_are_read_before_anything_else(store: Store, work_log: Path) -> None:
    carry_out(store, stage("training", stage("one", first=True)), stage("two", first=True))
    assert work_done(work_log) == ["one", "two", "training"]


def test_unusable_data_stop_the_run_before_any_stage(store: Store, work_log: Path) -> None:
    data, training = stage("data", first=True), stage("training", stage("other", first=True))
    picky = stage("picky", data, training, behaviour="refuses its data")
    report, _ = carry_out(store, stage("end", picky))
    assert report.is_data_faulty
    assert report.failed[picky.identity][1] == ("picky can do nothing with data",)
    assert sorted(work_done(work_log)) == ["data", "other"]
    assert sorted(names(report.skipped)) == ["end", "training"]


def test_data_of_cached_stages_are_not_checked(store: Store) -> None:
    done, data = stage("done", stage("data", first=True)), stage("data", first=True)
    carry_out(store, done)
    report, _ = carry_out(store, stage("done", data, behaviour="refuses its data"), stage("more"))
    assert names(report.executed) == ["more"]


def test_forcing_a_stage_executes_it_and_its_dependents(store: Store, work_log: Path) -> None:
    graph = Graph([diamond(), stage("other")])
    carry_out(store, *graph.targets)
    report, _ = carry_out(store, *graph.targets, forced=forced(graph, "work l*"))
    assert names(report.executed) == ["left", "end"]
    report, _ = carry_out(store, *graph.targets, forced=forced(graph, "work"))
    assert len(report.executed) == 5
    report, _ = carry_out(store, *graph.targets)
    assert report.executed == []


def test_forcing_an_unknown_stage_is_an_error_with_a_hint() -> None:
    with refused("--force", "'work'"):
        forced(Graph([stage("a")]), "wrok")


def test_a_stage_whose_title_has_brackets_is_forced_by_its_title() -> None:
    graph = Graph([Stage(Work(name), label=f"x [base={name}] seed 1") for name in ("static", "other")])
    assert forced(graph, "work x [base=static] seed 1") == {graph.targets[0].identity}


def test_a_forced_stage_that_fails_keeps_its_old_artifact(store: Store) -> None:
    carry_out(store, stage("a"))
    broken = stage("a", behaviour="bug")  # the same work, by its identity
    report, _ = carry_out(store, broken, forced=frozenset([broken.identity]))
    assert names_of_failed(report) == ["a"]
    store.check(broken.identity)


def test_a_damaged_target_is_reported_and_executed_again(store: Store) -> None:
    target = stage("b", stage("a"))
    carry_out(store, target)
    (store.folder(target.identity) / "name.txt").write_text("longer than it was")
    report, said = carry_out(store, target)
    assert names(report.executed) == ["b"]
    assert said[0] == (
        "the stored artifact of work b is damaged (name.txt has 18 bytes, 1 were written); computing it again"
    )


@pytest.mark.parametrize("is_target", [False, True])
def test_hidden_damage_of_an_input_is_found_when_it_is_needed(store: Store, *, is_target: bool) -> None:
    """Same size and time, other bytes: the checksum finds it before any use."""
    source = stage("source")
    carry_out(store, stage("old", source))
    file = store.folder(source.identity) / "name.txt"
    changed = file.stat().st_mtime_ns
    file.write_text("SOURCE")
    os.utime(file, ns=(changed, changed))
    also = [source] if is_target else []
    report, said = carry_out(store, *also, stage("old", source), stage("new", source))
    assert names(report.executed) == ["source", "new"]
    assert "the checksum of name.txt differs" in said[0]


def test_stages_of_a_group_share_one_job(store: Store) -> None:
    targets = [Stage(Together(name), label=name) for name in ("a", "b")]
    _, said = carry_out(store, *targets)
    assert said[:2] == ["running work a [1/2]", "running work b [2/2]"]
    assert said[2].startswith("done work a and 1 more in ")
    more = Stage(Together("c"), label="c")
    report, _ = carry_out(store, *targets, more)
    assert names(report.executed) == ["c"]


def test_a_failure_in_a_group_is_not_blamed_on_what_another_process_computed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Stage(Together("first"), label="first")
    bad = Stage(Together("bad", behaviour="user error"), label="bad")

    class Late(InProcess):
        def submit(self, job: StageJob) -> None:
            run_job(store, first)
            super().submit(job)

    runner = Runner(store, Late(), RUNTIME, Lines())
    report = runner.run(Graph([stage("after", first), bad]))  # type: ignore[arg-type]
    assert (names(report.shared), names(report.executed)) == (["first"], ["after"])
    assert (names_of_failed(report), report.skipped) == (["bad"], [])


def test_each_stage_is_announced_with_its_number(store: Store) -> None:
    carry_out(store, stage("old", first=True))
    broken = stage("broken", behaviour="bug")
    _, said = carry_out(store, stage("old", first=True), stage("new", first=True), stage("after", broken))
    running = [line for line in said if line.startswith("running ")]
    assert running == ["running work new [1/3]", "running work broken [2/3]"]


@pytest.mark.parametrize("behaviour", ["", "user error"])
def test_the_overall_progress_is_completed_despite_failures(store: Store, behaviour: str) -> None:
    lines = Lines()
    graph = Graph(
        [stage("end", stage("broken", behaviour="bug")), stage("a", first=True, behaviour=behaviour)]
    )
    runner = Runner(store, InProcess(), RUNTIME, lines)
    runner.run(graph)  # type: ignore[arg-type]
    assert runner.monitor.counts == (3, 3)


def test_a_damaged_artifact_locked_by_another_process_is_left_alone(store: Store, tmp_path: Path) -> None:
    target = stage("a")
    carry_out(store, target)
    (store.folder(target.identity) / "name.txt").write_text("longer than it was")
    marker, lines = tmp_path / "held", Lines()
    holder = in_process(hold_lock, store.root, target.identity, marker)
    wait_for(marker)
    runner = Runner(store, InProcess(), RUNTIME, lines)
    assert list(runner.needed(Graph([target]))) == [target.identity]  # type: ignore[arg-type]
    assert store.has(target.identity)
    who = f"process {holder.pid} on {socket.gethostname()}"
    (line,) = lines.said
    assert line.startswith(f"the stored artifact of work a is damaged; {who} (since ")
    assert line.endswith(" is computing it again")
    holder.kill()
    holder.join()


def test_a_damaged_artifact_replaced_by_another_process_is_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, lines = stage("a"), Lines()
    carry_out(store, target)
    file = store.folder(target.identity) / "name.txt"
    file.write_text("b")
    lock = Locks.stage

    @contextmanager
    def late_lock(self: Locks, identity: str, label: str) -> Iterator[str]:
        file.write_text("a")  # as the other process does before it lets go
        with lock(self, identity, label) as note:
            yield note

    monkeypatch.setattr(Locks, "stage", late_lock)
    runner = Runner(store, InProcess(), RUNTIME, lines)
    assert runner.needed(Graph([target])) == {}  # type: ignore[arg-type]
    assert (store.has(target.identity), lines.said) == (True, [])


@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_damaged_artifact_that_another_process_holds_is_computed_again_after_it(
    store: Store, work_log: Path, monkeypatch: pytest.MonkeyPatch, *, is_foreign: bool
) -> None:
    target = Stage(Work("a" * (SMALL + 1)), label="large")
    carry_out(store, target)
    if not is_foreign:
        flip(store.folder(target.identity) / "name.txt")
    lock, is_held = Locks.stage, [True]

    @contextmanager
    def held_at_first(self: Locks, identity: str, label: str) -> Iterator[str]:
        if is_held.pop() if is_held else False:
            raise StageBusyError("another process")
        with lock(self, identity, label) as note:
            yield note

    monkeypatch.setattr(Locks, "stage", held_at_first)
    damage = ArtifactDamagedError(target.identity, "is another stage's", is_foreign=is_foreign)
    report = Runner(store, InProcess(), RUNTIME, Lines()).compute_again(target, damage)
    assert report.executed == [target]
    assert work_done(work_log) == [target.operation.component] * 2
    store.check(target.identity, thorough=True)


def test_an_interruption_leaves_no_lock_and_keeps_finished_stages(store: Store, work_log: Path) -> None:
    graph = stage("b", stage("a"), stage("never", behaviour="interrupt"))
    with pytest.raises(KeyboardInterrupt):
        carry_out(store, graph)
    assert store.has(stage("a").identity)
    with store.locks.stage(stage("never", behaviour="interrupt").identity, "free") as note:
        assert note == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full, which Linux has")
@pytest.mark.parametrize("behaviour", ["full disk", "full disk in words"])
def test_a_full_disk_is_reported_in_one_line_and_the_store_stays_usable(store: Store, behaviour: str) -> None:
    full = stage("big", behaviour=behaviour)
    report, _ = carry_out(store, full, stage("small"))
    message = f"no space left on the disk of {store.root}; free some and run the same command again"
    assert report.failed[full.identity][1] == (message,)
    assert report.only_user_errors
    assert names(report.executed) == ["small"]
    assert not (store.root / "partial" / full.identity / "output").exists()


def test_the_work_of_a_killed_process_is_resumed_with_a_message(store: Store, tmp_path: Path) -> None:
    marker = tmp_path / "held"
    holder = in_process(hold_lock, store.root, stage("a").identity, marker)
    wait_for(marker)
    os.kill(int(holder.pid or 0), signal.SIGKILL)
    holder.join()
    report, said = carry_out(store, stage("a"))
    assert names(report.executed) == ["a"]
    assert said[0].startswith(f"taking over work a: process {holder.pid} on ")
    assert said[0].endswith(" left it unfinished")


def test_a_run_executes_other_stages_while_it_awaits_one_in_progress_elsewhere(
    store: Store, tmp_path: Path, work_log: Path
) -> None:
    start, said = tmp_path / "start", tmp_path / "said.json"
    start.touch()
    other = in_process(run_diamond, store.root, said, start)
    wait_for(work_log)
    report, lines = carry_out(store, diamond(), stage("own"))
    other.join()
    assert not report.failed
    assert sum(line.startswith(f"waiting for work top: process {other.pid} on ") for line in lines) == 1
    assert work_done(work_log)[:2] == ["top", "own"]


def test_two_runs_at_once_in_one_store_share_the_work(store: Store, tmp_path: Path, work_log: Path) -> None:
    start, files = tmp_path / "start", [tmp_path / "one.json", tmp_path / "two.json"]
    processes = [in_process(run_diamond, store.root, file, start) for file in files]
    start.touch()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    (first, no_failures, lines), (second, none_either, more) = (
        json.loads(file.read_text()) for file in files
    )
    assert (no_failures, none_either) == ([], [])
    assert sorted(work_done(work_log)) == sorted(first + second) == ["end", "left", "right", "top"]
    assert any("waiting for" in line or "shared" in line for line in lines + more)


def test_a_dead_process_fails_only_its_own_job(store: Store, work_log: Path) -> None:
    died = stage("dies", behaviour="exit")
    report, _ = carry_out(
        store, died, stage("beside", behaviour="sleep 1"), *(stage(f"later {n}") for n in range(2)), jobs=2
    )
    (message,) = report.failed[died.identity][1]
    assert message.startswith("its process was killed (out of memory?)")
    assert sorted(names(report.executed)) == ["beside", "later 0", "later 1"]
    again, _ = carry_out(store, stage("dies", behaviour="exit"), stage("later 0"), jobs=2)
    assert names_of_failed(again) == ["dies"]
    assert again.executed == []


def test_errors_in_other_processes_are_raised_unchanged(store: Store) -> None:
    user, bug = stage("user", behaviour="user error"), stage("bug", behaviour="bug")
    report, _ = carry_out(store, user, bug, jobs=2)
    assert report.failed[user.identity][1] == ("user can't be done", "and this is why")
    assert "ZeroDivisionError: bug" in report.failed[bug.identity][1][0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_code_that_exits_the_process_is_a_failure(store: Store, jobs: int) -> None:
    ending, other = stage("ending", behaviour="sys.exit"), stage("other")
    report, _ = carry_out(store, ending, other, jobs=jobs)
    (line,) = report.failed[ending.identity][1]
    assert line == "its code ended the process (sys.exit(0)) instead of returning"
    assert names(report.executed) == ["other"]


def test_lines_of_other_processes_are_printed_above_bars(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    with executor(2, lines.append) as workers:
        for name in ("one", "two"):
            workers.submit(StageJob(store, [stage(name)], RUNTIME, Lines()))
        while workers.capacity < 2:
            workers.wait()
    end = time.monotonic() + 30
    while len(lines) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert sorted(line.partition(" ")[2] for line in lines) == [
        "running work one [1/1]",
        "running work two [1/1]",
    ]
    assert "running" not in capfd.readouterr().err


def test_closing_the_executor_ends_running_work_and_frees_its_locks(store: Store, work_log: Path) -> None:
    running = [stage(f"long {n}", behaviour="sleep 600") for n in range(2)]
    with executor(2) as workers:
        for each in running:
            workers.submit(StageJob(store, [each], RUNTIME, Lines()))
        assert workers.capacity == 0
        end = time.monotonic() + 30
        while len(work_done(work_log)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    assert len(work_done(work_log)) == 2
    for each in running:
        with store.locks.stage(each.identity, "mine") as note:
            assert note == ""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc, which Linux has")
def test_workers_end_with_a_parent_that_is_killed(store: Store, tmp_path: Path, work_log: Path) -> None:
    parent = in_process(run_with_workers, store.root)
    end = time.monotonic() + 120
    while len(work_done(work_log)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    children = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
    os.kill(int(parent.pid or 0), signal.SIGKILL)
    parent.join()
    assert len(children) >= 2
    while any(is_running(child) for child in children) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(is_running(child) for child in children)
