import random

import pytest

from synthbench.recommending.curves import forecast


def curve(size: float, top: float = 0.75, gap: float = 0.3, rate: float = 0.6) -> float:
    return top - gap * (size / 10) ** -rate


def noisy(seed: int, deviation: float, **shape: float) -> dict[int, list[float]]:
    draw = random.Random(seed)
    return {
        size: [curve(size, **shape) + draw.gauss(0, deviation) for _ in range(5)] for size in (10, 30, 90)
    }


def test_a_measured_amount_is_forecast_as_measured() -> None:
    found = forecast({10: [0.5, 0.6], 90: [0.7, 0.8]}, 90)
    assert found.value == pytest.approx(0.75)
    assert not found.why_unknown
    assert found.noise.half_width == pytest.approx(0.635, abs=0.001)


def test_the_noise_of_a_single_seed_is_unknown_unless_the_seed_has_no_effect() -> None:
    assert forecast({90: [0.7]}, 90).why_unknown == "a single seed"
    assert not forecast({90: [0.7]}, 90, is_seeded=False).why_unknown


def test_without_noise_the_curve_is_found() -> None:
    found = forecast({size: [curve(size)] * 5 for size in (10, 30, 90)}, 600)
    assert found.value == pytest.approx(curve(600), abs=1e-3)


def test_a_flat_curve_stays_flat() -> None:
    found = forecast({size: [0.6, 0.61, 0.6, 0.59, 0.6] for size in (10, 30, 90)}, 900)
    assert found.value == pytest.approx(0.6, abs=1e-3)
    assert not found.why_unknown


def test_a_falling_curve_is_not_forecast_to_fall() -> None:
    found = forecast({10: [0.62, 0.63], 30: [0.61, 0.62], 90: [0.60, 0.61]}, 300)
    assert 0.60 < found.value < 0.63


def test_intervals_cover_the_truth_in_about_95_of_100() -> None:
    found = [forecast(noisy(seed, 0.004), 300) for seed in range(60)]
    told = [each for each in found if not each.why_unknown]
    assert len(told) > 40
    covered = sum(abs(each.value - curve(300)) <= each.noise.half_width for each in told)
    assert covered >= 0.85 * len(told)


@pytest.mark.parametrize(
    ("scores", "amount", "why"),
    [
        ({10: [0.5, 0.6], 90: [0.7, 0.8]}, 200, "only 2 amounts measured"),
        ({90: [0.7, 0.8]}, 200, "only 1 amount measured"),
        ({10: [0.5], 30: [0.6], 90: [0.7]}, 200, "a single seed"),
        ({10: [0.5] * 5, 30: [0.6] * 5, 90: [0.7] * 5}, 901, "more than 10 times what was measured"),
    ],
)
def test_it_says_why_it_can_not_tell(scores: dict[int, list[float]], amount: int, why: str) -> None:
    found = forecast(scores, amount)
    assert found.why_unknown == why
    assert found.value == pytest.approx(sum(scores[90]) / len(scores[90]))


def test_a_wide_interval_tells_nothing() -> None:
    found = forecast(noisy(1, 0.08), 800)
    assert "points wide" in found.why_unknown
