"""How far a run is: what runs, and the time left, by what such stages took."""

from collections.abc import Collection, Sequence

from fake_stages import stage

from synthbench.engine.progress import RunMonitor
from synthbench.engine.stage import Stage


class Told:
    """An estimator that knows the seconds of stages by their first letter, until it learns others."""

    def __init__(self, **seconds: float | None) -> None:
        self.known = seconds

    def sort(self, each: Stage) -> str:
        return each.operation.component[0]

    def seconds(self, each: Stage) -> float | None:
        return self.known[self.sort(each)]

    def learn(self, each: Stage, seconds: float) -> None:
        self.known[self.sort(each)] = seconds


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


def test_the_time_left_is_that_of_the_stages_left_not_of_their_number() -> None:
    quick, slow = [stage(f"q{n}") for n in range(4)], stage("slow")
    found = monitor([*quick, slow], Clock(), q=1.0, s=600.0)
    assert str(found) == "0 of 5 stages, about 10 minutes left"
    for each in quick:
        found.started([each])
        finish(found, [each], 1.0)
    assert str(found) == "4 of 5 stages, about 10 minutes left"


def test_what_a_stage_took_in_this_run_decides_how_long_the_others_take() -> None:
    stages = [stage(f"t{n}") for n in range(3)]
    found = monitor(stages, Clock(), t=10.0)
    found.started(stages[:1])
    finish(found, stages[:1], 100.0)
    assert found.left.seconds == 200.0


def test_a_running_stage_is_named_and_its_time_counts_down_but_never_to_nothing() -> None:
    clock, stages = Clock(), [stage("train"), stage("twin")]
    found = monitor(stages, clock, t=100.0)
    found.started(stages)
    clock.now = 60.0
    assert str(found) == "0 of 2 stages, about 2.3 minutes left; now: work train and 1 more, 60 s"
    clock.now = 1000.0
    assert found.left.seconds == 100.0


def test_several_processes_share_what_is_left() -> None:
    stages = [stage(f"t{n}") for n in range(4)]
    found = monitor(stages, Clock(), processes=2, t=10.0)
    found.started(stages[:1])
    found.started(stages[1:2])
    assert found.left.seconds == 20.0
    assert found.now == "work t0, 0 s; work t1, 0 s"


def test_what_nobody_can_tell_makes_the_rest_the_least_that_is_left() -> None:
    stages = [stage("train"), stage("unknown")]
    assert str(monitor(stages, Clock(), t=90.0, u=None).left) == "at least 90 s left"
    assert str(monitor(stages[1:], Clock(), u=None).left) == "time left unknown"


def test_a_stage_that_waits_again_or_is_left_out_is_counted_rightly() -> None:
    stages = [stage("t1"), stage("t2")]
    found = monitor(stages, Clock(), t=10.0)
    found.started(stages[:1])
    found.ended(stages[:1], [], 0.0)
    found.put_back(stages[:1], "process 7 on a machine")
    assert (found.counts, found.left.seconds) == ((0, 2), 20.0)
    found.left_out([stages[1].identity])
    assert (found.counts, found.left.seconds) == ((1, 2), 10.0)
