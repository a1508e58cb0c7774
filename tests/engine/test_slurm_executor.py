"""Stages in Slurm's tasks: against commands like Slurm's, and tasks of this process."""

import pickle
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fake_slurm
import fake_stages
import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME, Graph, diamond, names, names_of_failed, stage
from fakes import WORK_LOG, Lines
from shared_stores import contents, on_machine
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime, SlurmSettings, seconds_of_limit
from synthbench.config.load import load_experiment
from synthbench.engine import slurm_executor, slurm_pool, slurm_task
from synthbench.engine import workers as engine_workers
from synthbench.engine.cleaning import clean
from synthbench.engine.elsewhere import own_code
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.slurm import Script, Slurm, TaskState
from synthbench.engine.slurm_executor import SlurmArrays, kinds_of_tasks, slurm_arrays
from synthbench.engine.slurm_pool import MOST_FRUITLESS, TaskPool
from synthbench.engine.slurm_queue import Left, Queue, numbers
from synthbench.engine.slurm_task import EndingError, SlurmTask
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE

SMALL = Needs(1, 0, 1.0)


@pytest.fixture
def shared(tmp_path: Path) -> Store:
    """A shared store as this machine sees it."""
    (tmp_path / "shared").mkdir()
    return on_machine(str(tmp_path / "shared"), tmp_path / "cache")


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm's commands; returns the folder of its tasks' states."""
    return fake_slurm.install(tmp_path / "fake", monkeypatch)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often."""
    for module, name in (
        (slurm_executor, "SECONDS_BETWEEN_LOOKS"),
        (slurm_task, "SECONDS_BETWEEN_LOOKS"),
        (slurm_pool, "SECONDS_BETWEEN_COUNTS"),
    ):
        monkeypatch.setattr(module, name, 0.02)


def queue_of(store: Store) -> Queue:
    assert store.shared is not None
    queue = Queue(store.shared.objects, "0" * 32)
    queue.open(own_code())
    return queue


@dataclass
class InlineSlurm:
    """Stands for Slurm: a submitted task works at once, in this process, until it finds no job."""

    task: Callable[[str], None]
    settings: SlurmSettings = field(default_factory=SlurmSettings)
    logs: Path = Path("logs")
    arrays: list[int] = field(default_factory=list)
    states: dict[str, TaskState] = field(default_factory=dict)

    def submit(self, script: Script, needs: Needs, number: int) -> str:
        self.arrays.append(number)
        array = str(len(self.arrays))
        for index in range(number):
            self._start(f"{array}_{index}")
        return array

    def _start(self, name: str) -> None:
        self.states[name] = TaskState("RUNNING")
        try:
            self.task(name)
        except EndingError:
            self.states[name] = TaskState("PENDING", "BeginTime")
        except (UserError, KilledError):
            self.states[name] = TaskState("FAILED")
        else:
            self.states[name] = TaskState("COMPLETED")

    def tasks(self) -> dict[str, TaskState]:
        """Return the tasks; requeued ones start again."""
        for name, task in self.states.items():
            if task.reason == "BeginTime":
                self._start(name)
        return self.states

    def cancel(self) -> None:
        """Do nothing: no task is left."""


class KilledError(BaseException):
    """The end of a task's process."""


def executor_of(
    queue: Queue, slurm: Any, retries: int = 2, say: Callable[[str], None] = print
) -> SlurmArrays:
    pool = TaskPool(slurm, {0: SMALL}, lambda _: Script("task", (), {}), say)
    return SlurmArrays(pool, queue, lambda _: 0, retries, LocalProcesses(1))


def node(queue: Queue, tmp_path: Path) -> Callable[[str], None]:
    """Return a function that works as the task of this name, on a machine with a cache of its own."""

    def work(name: str) -> None:
        assert queue.objects.inner
        store = on_machine(str(tmp_path / "shared"), tmp_path / f"cache-{name}")
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += slurm_task.SECONDS_IDLE

        SlurmTask(queue, store, name, 0, print, sleep, lambda: now[0]).work()

    return work


def run(store: Store, executor: SlurmArrays, *targets: Stage) -> tuple[RunReport, list[str]]:
    lines = Lines()
    report = Runner(store, executor, RUNTIME, lines).run(Graph(targets))  # type: ignore[arg-type]
    return report, lines.said


def test_stages_run_in_tasks_with_the_bytes_of_a_local_run(shared: Store, tmp_path: Path) -> None:
    queue = queue_of(shared)
    slurm = InlineSlurm(node(queue, tmp_path))
    report, _ = run(shared, executor_of(queue, slurm), diamond(), stage("other"))
    assert sorted(names(report.executed)) == ["end", "left", "other", "right", "top"]
    end = diamond()
    assert contents(shared, end.identity) == {f"{end.identity}/name.txt": b"end"}
    assert max(slurm.arrays) == 2, "as many tasks as there are jobs"
    assert queue.look().jobs == {}, "what has ended is removed"


def test_a_failed_stage_stops_only_what_depends_on_it(shared: Store, tmp_path: Path) -> None:
    queue = queue_of(shared)
    bad, bug = stage("bad", behaviour="user error"), stage("bug", behaviour="bug")
    executor = executor_of(queue, InlineSlurm(node(queue, tmp_path)))
    report, _ = run(shared, executor, stage("after", bad), bug, stage("fine"))
    assert (names(report.executed), sorted(names_of_failed(report))) == (["fine"], ["bad", "bug"])
    assert names(report.skipped) == ["after"]
    assert "bad can't be done" in report.failed[bad.identity][1][0]
    assert "ZeroDivisionError" in report.failed[bug.identity][1][0]


def test_sources_are_read_on_the_runs_own_machine(
    shared: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_workers, "PRELOADED", fake_stages.__name__)
    queue = queue_of(shared)
    slurm = InlineSlurm(node(queue, tmp_path))
    first = stage("first", first=True)
    executor = executor_of(queue, slurm)
    report, _ = run(shared, executor, first)
    executor._beside.close()
    assert names(report.executed) == ["first"]
    assert slurm.arrays == []


@pytest.mark.parametrize("where", ["in the claim", "in the job"])
def test_a_preempted_task_is_no_loss_and_its_stage_runs_again(
    shared: Store, tmp_path: Path, where: str
) -> None:
    queue = queue_of(shared)
    works, ended = node(queue, tmp_path), list[str]()

    def task(name: str) -> None:
        if len(ended) < 5:
            ended.append(name)
            with pytest.MonkeyPatch.context() as patch:
                ending = EndingError("its time is nearly over")
                if where == "in the job":
                    patch.setattr(StageJob, "run", _raises(ending))
                else:
                    patch.setattr(Queue, "claim", _raises(ending, after=Queue.claim))
                works(name)
        works(name)

    report, said = run(shared, executor_of(queue, InlineSlurm(task), retries=0), stage("long"))
    assert names(report.executed) == ["long"]
    assert sum("its time is nearly over" in line for line in said) == 5


def _raises(error: BaseException, after: Callable[..., object] = lambda *_: None) -> Callable[..., Any]:
    def run(*arguments: object) -> JobOutcome:
        after(*arguments)
        raise error

    return run


def test_a_stage_whose_tasks_die_is_given_up_after_its_retries(shared: Store, tmp_path: Path) -> None:
    queue = queue_of(shared)
    works = node(queue, tmp_path)

    def task(name: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StageJob, "run", _raises(KilledError()))
            works(name)

    large = stage("large")
    report, said = run(shared, executor_of(queue, InlineSlurm(task), retries=1), large)
    (line,) = report.failed[large.identity][1]
    assert line.startswith("its worker was lost twice (task ")
    assert line.endswith(
        ": FAILED); it had 1 CPU core, 1 GB of memory. Run the same command again, or state more in"
        " runtime.resources.work"
    )
    assert said.count("starting work large again: task 1_0: FAILED") == 1


def test_a_task_that_slurm_restarts_gives_its_job_back(shared: Store, tmp_path: Path) -> None:
    queue = queue_of(shared)
    job = StageJob(shared, [stage("half")], RUNTIME, Lines())
    queue.put(1, 0, job)
    assert queue.claim(1, "7_0")
    node(queue, tmp_path)("7_0")
    assert queue.outcome(1) == Left("Slurm restarted task 7_0", is_loss=True)


def test_a_node_with_other_code_ends_the_run_in_one_line(
    shared: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = queue_of(shared)
    queue.open("1.0 (content abcdefgh, Python 3.11.7)")
    monkeypatch.setattr(slurm_task, "own_code", lambda: "1.1 (content zyxwvuts, Python 3.11.7)")
    executor = executor_of(queue, InlineSlurm(node(queue, tmp_path)))
    with pytest.raises(UserError) as caught:
        run(shared, executor, stage("any"))
    assert caught.value.messages == (
        f"node {socket.gethostname()}: has synthbench 1.1 (content zyxwvuts, Python 3.11.7), the run 1.0"
        " (content abcdefgh, Python 3.11.7); install the same on all nodes",
    )


def test_a_refusal_whose_reason_is_gone_names_the_task(shared: Store) -> None:
    worded(queue_of(shared).refusal("7_0"), "7_0")


def test_a_job_is_taken_once(shared: Store) -> None:
    queue = queue_of(shared)
    queue.put(1, 0, StageJob(shared, [stage("one")], RUNTIME, Lines()))
    assert [queue.claim(1, task) for task in ("1_0", "1_1", "1_2")] == [True, False, False]
    assert list(numbers(queue.look(), 0)) == []


@dataclass(frozen=True)
class Trap:
    """Fails the test when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a stranger's pickle was loaded",)


@pytest.mark.parametrize("signed_as", ["", "ended/2"])
def test_what_a_stranger_writes_into_the_queue_is_never_unpickled(shared: Store, signed_as: str) -> None:
    """Neither another key's content nor that of another name."""
    queue = queue_of(shared)
    content = pickle.dumps(Trap())
    signature = queue._signature(signed_as, content) if signed_as else bytes(32)
    queue.objects.write(f"slurm/{queue.run}/ended/1", signature + content)
    with refused("ended/1 is not by this run or its tasks"):
        queue.outcome(1)
    queue.objects.write(f"slurm/{queue.run}/ended/x", b"")
    queue.objects.write(f"slurm/{queue.run}/.nfs0001", b"")
    assert queue.look().ended == {1}


def test_tasks_of_a_run_that_is_over_end(shared: Store, tmp_path: Path) -> None:
    queue = queue_of(shared)
    queue.put(1, 0, StageJob(shared, [stage("one")], RUNTIME, Lines()))
    queue.close()
    node(queue, tmp_path)("1_0")
    assert list(queue.objects.list("slurm/")) == []


def test_clean_removes_the_queues_of_killed_runs(shared: Store) -> None:
    queue = queue_of(shared)
    queue.put(1, 0, StageJob(shared, [stage("one")], RUNTIME, Lines()))
    clean(shared, 0)
    assert list(queue.objects.list("slurm/")) == []


def pool_of(slurm: Any, said: list[str]) -> TaskPool:
    return TaskPool(slurm, {0: SMALL, 1: Needs(2, 1, 8.0)}, lambda _: Script("task", (), {}), said.append)


def test_no_more_tasks_are_submitted_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_pool, "SECONDS_BETWEEN_COUNTS", 0.0)
    waiting, said = InlineSlurm(lambda _: None, SlurmSettings(tasks=3)), list[str]()
    pool = pool_of(waiting, said)
    pool.look({0: 2})
    waiting.states = {"1_0": TaskState("PENDING", "Priority"), "1_1": TaskState("PENDING", "Resources")}
    pool.look({0: 5, 1: 5})
    assert waiting.arrays == [2, 1]
    assert said == [
        "submitted 2 tasks to Slurm (job 1), each with 1 CPU core, 1 GB of memory",
        "waiting for Slurm: 2 tasks pending (Priority, Resources)",
        "submitted 1 task to Slurm (job 2), each with 1 CPU core, 1 GB of memory",
    ]


def test_a_refused_array_ends_the_run_only_if_no_task_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_pool, "SECONDS_BETWEEN_COUNTS", 0.0)
    slurm, said = InlineSlurm(lambda _: None), list[str]()
    pool = pool_of(slurm, said)
    pool.look({0: 1})
    slurm.states = {"1_0": TaskState("RUNNING")}
    monkeypatch.setattr(InlineSlurm, "submit", _raises(UserError("too many jobs")))
    pool.look({0: 2})
    assert said[-1] == "going on with 1 tasks: too many jobs"
    slurm.states = {"1_0": TaskState("COMPLETED")}
    with pytest.raises(UserError, match="too many jobs"):
        pool.look({0: 2})


def test_tasks_that_end_before_they_take_a_stage_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_pool, "SECONDS_BETWEEN_COUNTS", 0.0)
    slurm = InlineSlurm(lambda _: None)
    pool = pool_of(slurm, [])
    with refused("end before they take a stage; their logs: logs"):
        for _ in range(MOST_FRUITLESS + 1):
            pool.look({0: 1})
    assert len(slurm.arrays) == MOST_FRUITLESS


def test_a_controller_that_is_away_is_waited_for(
    states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_pool, "SECONDS_BETWEEN_COUNTS", 0.0)
    said = list[str]()
    pool = pool_of(Slurm("name", SlurmSettings(), tmp_path), said)
    pool._gpus_of["1"] = 0
    (tmp_path / "fake" / "bin" / "squeue").write_text("#!/bin/sh\necho down >&2\nexit 1\n")
    assert [pool.look({0: 1}) for _ in range(2)] == [None, None]
    assert said == ["waiting for Slurm's controller, which does not answer"]


def test_tasks_have_the_largest_needs_of_their_number_of_gpus() -> None:
    kinds = kinds_of_tasks([Needs(1, 0, 4.0), Needs(4, 0, 1.0), Needs(2, 0.5, 8.0), Needs(8, 2, 1.0)])
    assert kinds == {0: Needs(4, 0, 4.0), 1: Needs(2, 1, 8.0), 2: Needs(8, 2, 1.0)}


def arrays(shared: Store, tmp_path: Path, needs: Needs = SMALL, **settings: Any) -> None:
    runtime = Runtime(executor="slurm", slurm=SlurmSettings(**settings))
    with slurm_arrays(runtime, [stage("one")], lambda *_: needs, shared, tmp_path / "logs", 1):
        pytest.fail("not refused")


@dataclass(frozen=True)
class Asking(fake_stages.Work):
    """Work that asks an LLM."""

    @property
    def asked_llm(self) -> Any:
        return "an LLM"


def test_no_task_is_sized_for_a_stage_that_runs_on_the_runs_own_machine(
    states: Path, shared: Store, tmp_path: Path
) -> None:
    large = {"here": Needs(1, 0, 500.0), "first": Needs(1, 0, 500.0), "there": SMALL}
    stages = [Stage(Asking("here")), stage("first", first=True), stage("there")]
    needs = lambda each, _: large[each.operation.component]  # noqa: E731
    runtime = Runtime(executor="slurm", slurm=SlurmSettings())
    with slurm_arrays(runtime, stages, needs, shared, tmp_path / "logs", 1) as arrays:
        assert arrays._pool.kinds == {0: SMALL}


def test_what_slurm_does_not_know_is_refused_before_anything_runs(
    states: Path, shared: Store, tmp_path: Path
) -> None:
    with refused("runtime.slurm.partition nope: Slurm refuses it", "invalid partition", "sinfo"):
        arrays(shared, tmp_path, partition="nope")
    with refused("runtime.slurm.account else: Slurm refuses it", "Invalid account", "sacctmgr"):
        arrays(shared, tmp_path, account="else")
    with refused(
        "Slurm refuses tasks with 1 CPU core, 500 GB of memory: ", "node configuration", "runtime.resources"
    ):
        arrays(shared, tmp_path, Needs(1, 0, 500.0))
    assert fake_slurm.tasks(states) == {}
    assert not (tmp_path / "logs").exists()


def test_a_machine_without_slurm_and_a_store_of_its_own_are_refused(
    store: Store, shared: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused("SYNTHBENCH_STORE"):
        arrays(store, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused("there is no sbatch here; run it on a login node"):
        arrays(shared, tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 5400), ("90:30", 5430), ("04:00:00", 14_400), ("1-12", 129_600), ("1-00:30", 88_200)),
        *(("2-01:02:03", 176_523), ("4h", None), ("", None), ("-1", None), ("1:2:3:4", None)),
    ],
)
def test_time_limits_are_read_as_sbatch_reads_them(text: str, seconds: int | None) -> None:
    assert seconds_of_limit(text) == seconds


@pytest.mark.parametrize(("time", "says"), [("2:00", "2:00 is too short"), ("4h", "is no time limit")])
def test_a_time_limit_without_room_for_a_checkpoint_is_refused_with_its_line(
    experiment: ExperimentFile, time: str, says: str
) -> None:
    slurm = f"runtime: {{executor: slurm, slurm: {{time: '{time}'}}}}"
    experiment.change("runtime: {threads: null}", slurm)
    with refused("study.yaml:28: runtime.slurm.time", says):
        load_experiment(experiment.file)


def test_a_task_writes_a_log_of_its_own_and_its_key_is_in_no_command_line(
    states: Path, shared: Store, tmp_path: Path
) -> None:
    found = Slurm("name", SlurmSettings(partition="gpu", account="lab", time="30"), tmp_path)
    array = found.submit(Script("platform", ("a b",), {"KEY": "sec ret"}), Needs(3, 1, 2.5), 2)
    fake_slurm.wait_for_state(states, 2, "COMPLETED")
    assert found.tasks() == {f"{array}_{index}": TaskState("COMPLETED", "Resources") for index in (0, 1)}
    assert [(tmp_path / f"{array}_{index}.log").read_text() != "" for index in (0, 1)] == [True, True]
    (submitted,) = (states / "submitted").read_text().splitlines()
    assert "sec ret" not in submitted
    for option in (
        "--requeue",
        "--signal=B:USR1@90",
        "--mem=2500M",
        "--cpus-per-task=3",
        "--gpus-per-node=1",
    ):
        assert option in submitted


def test_signals_end_the_work_once() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM)}
    try:
        with pytest.raises(EndingError, match="its time is nearly over"), slurm_task.heeding_slurm():
            try:
                signal.raise_signal(signal.SIGUSR1)
            finally:
                signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.experiments
def test_tasks_that_are_killed_or_signalled_lose_no_stage(
    states: Path, shared: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm restarts the task that it signalled before its limit, and gets a new one for the killed one."""
    began, gate = tmp_path / "began", tmp_path / "gate"
    for name, value in {
        WORK_LOG: str(began),
        CACHE_VARIABLE: str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(fake_stages.__file__).parent),
    }.items():
        monkeypatch.setenv(name, value)
    targets = [stage(name, behaviour=f"waits for {gate}") for name in ("killed", "signalled")]

    def harm() -> str:
        wait_for_lines(began, 2)
        killed, signalled = (taker(tmp_path, number) for number in (1, 2))
        fake_slurm.signal_task(states, killed, signal.SIGKILL)
        fake_slurm.signal_task(states, signalled, signal.SIGUSR1)
        wait_for_lines(began, 4)
        gate.touch()
        return signalled

    runtime = Runtime(executor="slurm", slurm=SlurmSettings(tasks=4), device="cpu")
    with (
        slurm_arrays(runtime, targets, lambda *_: SMALL, shared, tmp_path / "logs", 1) as arrays,
        ThreadPoolExecutor(1) as operator,
    ):
        signalled = operator.submit(harm)
        report, said = run(shared, arrays, *targets)
    assert sorted(names(report.executed)) == ["killed", "signalled"]
    name = signalled.result()
    assert f"starting work signalled again: task {name}: its time is nearly over" in said
    assert fake_slurm.tasks(states)[name]["starts"] == 2
    (log,) = (tmp_path / "logs").glob(f"*/{name}.log")
    assert log.read_text().count("task ") >= 2
    assert "this task ends: its time is nearly over" in log.read_text()
    assert sorted(began.read_text().split()) == ["killed", "killed", "signalled", "signalled"]
    fake_slurm.wait_for_state(states, len(fake_slurm.tasks(states)), "FAILED", "COMPLETED", "CANCELLED")


def taker(folder: Path, number: int) -> str:
    (claim,) = (folder / "shared" / "slurm").glob(f"*/claims/{number}")
    return str(pickle.loads(claim.read_bytes()[32:]))  # after the signature


def wait_for_lines(file: Path, number: int) -> None:
    end = time.monotonic() + 120
    while not file.exists() or len(file.read_text().splitlines()) < number:
        assert time.monotonic() < end, "the stages never began"
        time.sleep(0.02)
