"""Progress of a run: running stages, and the time left, estimated from past stages."""

from collections.abc import Collection, Sequence

import pytest
from fake_stages import carry_out, stage
from fakes import Lines

from synthbench.engine.monitor import RunMonitor
from synthbench.engine.progress import StageProgress
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store


class Told:
    """An estimator of seconds by a stage's first letter, until it learns others."""

    def __init__(self, **seconds: float | None) -> None:
        self.known = seconds

    def seconds(self, each: Stage) -> float | None:
        return self.known[each.operation.component[0]]

    def learn(self, each: Stage, seconds: float) -> None:
        self.known[each.operation.component[0]] = seconds


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def monitor(
    stages: Collection[Stage], clock: Clock, processes: int = 1, **seconds: float | None
) -> RunMonitor:
    found = RunMonitor(lambda _: Told(**seconds), processes, clock)
    found.begin(stages)
    return found


def finish(found: RunMonitor, stages: Sequence[Stage], seconds: float) -> None:
    found.ended(stages, [each.identity for each in stages], seconds)


def test_the_time_left_depends_on_the_stages_not_their_number() -> None:
    quick, slow = [stage(f"q{n}") for n in range(4)], stage("slow")
    found = monitor([*quick, slow], Clock(), q=1.0, s=600.0)
    assert str(found) == "0 of 5 stages, about 10 minutes left"
    for each in quick:
        found.started([each])
        finish(found, [each], 1.0)
    assert str(found) == "4 of 5 stages, about 10 minutes left"


def test_before_the_stages_are_known_there_is_no_number_of_them() -> None:
    assert str(RunMonitor()) == "getting ready"


def test_stage_times_of_this_run_correct_later_estimates() -> None:
    stages = [stage(f"t{n}") for n in range(3)]
    found = monitor(stages, Clock(), t=10.0)
    found.started(stages[:1])
    finish(found, stages[:1], 100.0)
    assert found.left.seconds == 200.0


def test_a_running_stage_is_named_and_its_time_left_never_reaches_zero() -> None:
    clock, stages = Clock(), [stage("train"), stage("twin")]
    found = monitor(stages, clock, t=100.0)
    found.started(stages)
    clock.now = 60.0
    assert str(found) == "0 of 2 stages, about 2.3 minutes left; now: work train and 1 more, 60 s"
    clock.now = 1000.0
    assert found.left.seconds == 100.0


def test_several_processes_divide_the_time_left() -> None:
    stages = [stage(f"t{n}") for n in range(4)]
    found = monitor(stages, Clock(), processes=2, t=10.0)
    found.started(stages[:1])
    found.started(stages[1:2])
    assert found.left.seconds == 20.0
    assert found.now == "work t0, 0 s; work t1, 0 s"


def test_a_stage_without_estimate_makes_the_time_left_a_lower_bound() -> None:
    stages = [stage("train"), stage("unknown")]
    assert str(monitor(stages, Clock(), t=90.0, u=None).left) == "at least 90 s left"
    assert str(monitor(stages[1:], Clock(), u=None).left) == "time left unknown"


def test_waiting_and_skipped_stages_are_counted_correctly() -> None:
    stages = [stage("t1"), stage("t2")]
    found = monitor(stages, Clock(), t=10.0)
    found.started(stages[:1])
    found.ended(stages[:1], [], 0.0)
    found.put_back(stages[:1], "process 7 on a machine")
    assert (found.counts, found.left.seconds) == ((0, 2), 20.0)
    found.left_out([stages[1].identity])
    assert (found.counts, found.left.seconds) == ((1, 2), 10.0)


def test_a_stage_that_ran_in_another_group_no_longer_waits() -> None:
    stages = [stage("t1"), stage("t2")]
    found = monitor(stages, Clock(), t=10.0)
    found.put_back(stages[1:], "process 7 on a machine")
    assert found.waits == "work t2: process 7 on a machine"
    found.started(stages)
    finish(found, stages, 1.0)
    assert found.waits == ""


def test_a_running_stage_counts_down_by_its_own_progress_not_the_estimate() -> None:
    clock, stages = Clock(), [stage("train"), stage("next")]
    found = monitor(stages, clock, t=13.0, n=None)
    found.started(stages[:1])
    for clock.now, done in ((4.0, 1), (116.0, 29)):
        found.advanced(stages[0].identity, done, 40)
    assert str(found.left) == "at least 44 s left"
    clock.now = 126.0
    assert found.left.seconds == 34.0
    found.advanced(stages[0].identity, 0, 0)
    assert found.left.seconds == pytest.approx(12.6), "as an overdue stage without a task"


def test_a_running_stage_shows_its_steps_and_moves_the_bar() -> None:
    stages = [stage("train"), stage("next")]
    found = monitor(stages, Clock(), t=13.0, n=1.0)
    found.started(stages[:1])
    assert (found.now, found.share) == ("work train, 0 s", 0.0)
    found.advanced(stages[0].identity, 1000, 4000)
    assert found.now == "work train, 1,000/4,000, 0 s"
    assert found.share == 0.125
    finish(found, stages[:1], 13.0)
    assert found.share == 0.5


def test_a_stage_that_resumes_from_a_checkpoint_has_a_pace_again() -> None:
    stages, clock = [stage("a")], Clock()
    found = monitor(stages, clock, a=1.0)
    found.started(stages)
    for now, done, rate in ((0.0, 80, None), (10.0, 100, 2.0), (20.0, 60, None), (30.0, 90, 3.0)):
        clock.now = now
        found.advanced(stages[0].identity, done, 120)
        (task,) = found.tasks
        assert (task.done, task.rate) == (done, rate)
    assert found.left.seconds == 10.0


def test_a_negative_number_of_units_counts_as_none() -> None:
    found = monitor([stage("a")], Clock(), a=1.0)
    found.started([stage("a")])
    found.advanced(stage("a").identity, -1, 120)
    assert [(task.done, task.total) for task in found.tasks] == [(0, 120)]


def test_stages_that_run_together_count_down_by_their_common_task() -> None:
    clock, stages = Clock(), [stage("a-test"), stage("another")]
    found = monitor(stages, clock, a=1000.0)
    found.started(stages)
    for clock.now, done in ((1.0, 100), (11.0, 200)):
        found.advanced(stages[0].identity, done, 400)
    assert found.left.seconds == 20.0
    assert found.now == "work a-test and 1 more, 200/400, 11 s"


def test_a_stages_progress_is_the_progress_of_its_outermost_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synthbench.engine.progress.SECONDS_BETWEEN_REPORTS", 0.0)
    told: list[tuple[int, int]] = []
    progress = StageProgress(Lines(), lambda *report: told.append(report))
    with progress.task("training", 40) as outer:
        outer.advance(20)
        with progress.task("encode", 7) as inner:
            inner.advance(7)
        outer.advance()
    assert told == [(20, 40), (21, 40), (0, 0)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_stages_of_any_process_report_their_progress_to_the_monitor(
    store: Store, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(RunMonitor, "advanced", lambda _, *report: told.append(report))
    each = stage("a", behaviour="counts")
    carry_out(store, each, jobs=jobs)
    assert told == [(each.identity, 1, 3), (each.identity, 0, 0)]
