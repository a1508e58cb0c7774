"""Which of a row's seeds is exported."""

from collections.abc import Sequence

import pytest
from wording import refused

from synthbench.exporting.subject import BEST_ON_DEV, USUAL, _with_seed
from synthbench.reporting.results import RunResult


def runs(*dev_scores: float | None) -> Sequence[RunResult]:
    return [
        RunResult(variant="row", seed=seed, identity=str(seed), scores=(), dev_score=score)
        for seed, score in enumerate(dev_scores)
    ][::-1]


def test_the_default_seed_is_the_best_on_dev() -> None:
    run, why = _with_seed("row", runs(0.1, 0.3, 0.2), USUAL)
    assert (run.seed, "best of 3" in why) == (1, True)


@pytest.mark.parametrize("scores", [(None, None), (0.1, None), (0.1, float("nan"))])
def test_without_dev_scores_the_default_seed_is_the_first(scores: tuple[float | None, ...]) -> None:
    run, why = _with_seed("row", runs(*scores), USUAL)
    assert (run.seed, why) == (0, "")


def test_best_on_dev_without_dev_scores_is_an_error() -> None:
    with refused("no dev scores", "--seed", "1, 0"):
        _with_seed("row", runs(None, None), BEST_ON_DEV)


def test_a_row_that_is_the_same_for_every_seed_asks_for_none() -> None:
    (run,) = runs(None)
    unseeded = run.model_copy(update={"is_seeded": False})
    with refused("same for every seed", "leave out --seed"):
        _with_seed("row", [unseeded], "3")
