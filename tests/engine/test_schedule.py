"""The order in which stages start, whichever stages finish, fail or are locked."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from fake_stages import Together, Work
from hypothesis import given
from hypothesis import strategies as st

from synthbench.engine.schedule import Schedule
from synthbench.engine.stage import Stage


@dataclass(frozen=True)
class Grouped(Work):
    """Work that runs together with all whose name begins with the same letter."""

    def group(self, inputs: Mapping[str, Stage]) -> str:
        return self.name[0]


def stages(*inputs: tuple[int, ...], operation: type[Work] = Work) -> list[Stage]:
    """Return stages "0", "1" ..., each on those of the given numbers."""
    made: list[Stage] = []
    for number, needed in enumerate(inputs):
        made.append(Stage(operation(str(number)), {str(each): made[each] for each in needed}))
    return made


def schedule(made: list[Stage]) -> Schedule:
    return Schedule({stage.identity: stage for stage in made})


def started(given: Schedule, capacity: int = 100) -> list[list[str]]:
    groups = iter(lambda: given.start(), [])
    return [[stage.operation.component for stage in group] for group in islice(groups, capacity)]


@st.composite
def graphs(draw: st.DrawFn) -> list[Stage]:
    inputs: list[tuple[int, ...]] = []
    for number in range(draw(st.integers(1, 12))):
        inputs.append(tuple(draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else ()))
    return stages(*inputs)


@given(graphs(), st.integers(1, 3), st.data())
def test_each_stage_starts_once_after_its_inputs_unless_one_fails(
    made: list[Stage], capacity: int, data: st.DataObject
) -> None:
    plan = schedule(made)
    there: set[str] = set()
    lost: set[str] = set()
    running: list[Stage] = []
    while plan or running:
        while len(running) < capacity and (group := plan.start()):
            for stage in group:
                inputs = {source.identity for source in stage.inputs.values()}
                assert inputs <= there
                assert stage.identity not in there | lost
                running.append(stage)
        ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
        if data.draw(st.booleans()):
            there.add(ended.identity)
            plan.finish([ended.identity])
        else:
            lost |= {ended.identity, *(stage.identity for stage in plan.drop([ended.identity]))}
    assert there | lost == {stage.identity for stage in made}
    for stage in made:
        if {source.identity for source in stage.inputs.values()} & lost:
            assert stage.identity in lost


def test_stages_start_in_plan_order_as_long_as_they_fit() -> None:
    plan = schedule(stages((), (), (0,), (1,)))
    assert started(plan, 1) == [["0"]]
    assert started(plan, 3) == [["1"]]
    plan.finish([Stage(Work("1")).identity])
    plan.finish([Stage(Work("0")).identity])
    assert started(plan) == [["2"], ["3"]]
    assert not plan


def test_inputs_outside_the_plan_count_as_done() -> None:
    _first, second = stages((), (0,))
    assert started(schedule([second])) == [["1"]]


def test_dependents_of_a_failed_input_do_not_start() -> None:
    first, second, third = stages((), (0,), (1,))
    plan = schedule([second, third])
    assert plan.drop([first.identity]) == [second, third]
    assert not plan
    assert started(plan) == []


def test_a_group_starts_with_its_first_member_that_is_ready() -> None:
    made = [Stage(Grouped(name)) for name in ("a1", "b1", "a2", "c1", "b2")]
    plan = schedule(made)
    assert started(plan, 2) == [["a1", "a2"], ["b1", "b2"]]
    assert started(plan, 2) == [["c1"]]


def test_a_late_stage_of_a_group_runs_by_itself() -> None:
    early, source = Stage(Together("early")), Stage(Work("source"))
    late = Stage(Together("late"), {"source": source})
    plan = schedule([early, source, late])
    assert started(plan) == [["early"], ["source"]]
    plan.finish([source.identity])
    assert started(plan) == [["late"]]


def test_a_postponed_stage_follows_all_ready_stages() -> None:
    made = [Stage(Grouped(name)) for name in ("a1", "a2", "b1", "c1")]
    plan = schedule(made)
    group = plan.start()
    plan.put_back(group)
    assert started(plan, 1) == [["b1"]]
    assert started(plan, 1) == [["c1"]]
    assert started(plan, 1) == [["a1", "a2"]]
