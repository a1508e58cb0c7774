from synthbench.recommending.curves import Forecast
from synthbench.recommending.race import standing
from synthbench.statistics.differences import Noise


def told(value: float, error: float = 0.005, why: str = "") -> Forecast:
    return Forecast(900, value, Noise(error**2, 4), why)


def test_a_recipe_that_can_no_longer_win_is_dropped_with_the_reason() -> None:
    found = standing({"dino": told(0.60), "syncse": told(0.70), "claif": told(0.695)}, most=3)
    assert found.running == ("syncse", "claif")
    assert found.dropped == {"dino": "its forecast, 60.0, is 10.0 (9.0 to 11.0) below that of syncse"}


def test_a_recipe_whose_forecast_can_not_be_told_stays() -> None:
    found = standing({"dino": told(0.60, why="a single seed"), "syncse": told(0.70)}, most=3)
    assert found.running == ("syncse", "dino")
    assert not found.dropped


def test_no_more_recipes_run_than_the_round_has_room_for() -> None:
    found = standing({"a": told(0.70), "b": told(0.702), "c": told(0.701), "d": told(0.70)}, most=2)
    assert found.running == ("b", "c")
    assert found.dropped == {
        "a": "its forecast, 70.0, ranks 3; 2 go on",
        "d": "its forecast, 70.0, ranks 4; 2 go on",
    }


def test_exact_scores_drop_what_is_below() -> None:
    found = standing({"a": told(0.70, 0.0), "b": told(0.69, 0.0), "c": told(0.70, 0.0)}, most=3)
    assert found.running == ("a", "c")
