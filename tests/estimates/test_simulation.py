"""The simulated schedule: rounds, chains, several GPUs a stage, and what can never run."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from fake_stages import Work

from synthbench.base.errors import UserError
from synthbench.engine.stage import Stage
from synthbench.estimates.simulation import simulated


@dataclass(frozen=True)
class Wide(Work):
    """A stage that divides its work among several devices."""

    number: int = 2

    @property
    def num_devices(self) -> int:  # type: ignore[override]
        return self.number


def alone(number: int) -> list[Stage]:
    return [Stage(Work(f"train-{index}", {"index": index})) for index in range(number)]


def run(
    stages: list[Stage], num_gpus: int, seconds: Callable[[Stage], float | None] = lambda _: 10.0
) -> tuple[float, float]:
    return simulated(stages, seconds, lambda _: True, num_gpus)


@pytest.mark.parametrize(
    ("num_gpus", "seconds", "busy"),
    [
        (1, 250, 1.0),
        (12, 30, 25 / 36),
        (13, 20, 25 / 26),
        (16, 20, 25 / 32),
        (24, 20, 25 / 48),
        (25, 10, 1.0),
    ],
)
def test_equal_trainings_run_in_whole_rounds(num_gpus: int, seconds: float, busy: float) -> None:
    assert run(alone(25), num_gpus) == (seconds, pytest.approx(busy))


def test_a_stage_waits_for_its_inputs_but_not_for_the_others() -> None:
    long, short = alone(2)
    after = Stage(Work("after"), {"data": short})
    found = run([long, short, after], 2, lambda stage: 25.0 if stage is long else 10.0)
    assert found == (25.0, pytest.approx(45 / 50))


def test_a_stage_on_two_gpus_takes_half_the_time_and_waits_for_both() -> None:
    one, wide = Stage(Work("one")), Stage(Wide("wide"))
    assert run([one, wide], 2) == (15.0, pytest.approx(20 / 30))


def test_stages_without_a_gpu_never_wait() -> None:
    stages = alone(5)
    assert simulated(stages, lambda _: 10.0, lambda _: False, 1) == (10.0, 0.0)


def test_unknown_seconds_count_as_none_and_nothing_to_run_takes_no_time() -> None:
    assert run(alone(3), 1, lambda _: None) == (0.0, 0.0)
    assert run([], 4) == (0.0, 0.0)


def test_a_stage_that_takes_more_gpus_than_there_are_is_refused() -> None:
    with pytest.raises(UserError, match="takes 2 GPUs, and this machine has 1 GPU"):
        run([Stage(Wide("wide"))], 1)
