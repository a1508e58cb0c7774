"""Families of comparisons: adjusted p values and simultaneous intervals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import dunnett, norm

from synthbench.statistics.differences import Difference, Noise
from synthbench.statistics.families import Simultaneous, simultaneous

Matrix = NDArray[np.float64]
MANY = 1e9
"""Degrees of freedom with which Student's t is normal."""
SAMPLED = 0.002
"""The most by which a figure of the sample may be off."""

values = st.floats(-6, 6)
noises = st.builds(lambda error, freedom: Noise(error**2, freedom), st.floats(0.1, 3), st.floats(1, 60))
differences = st.builds(
    lambda value, noise: Difference(value, tuple(noise)), values, st.lists(noises, min_size=1, max_size=2)
)


def normal(value: float) -> Difference:
    return Difference(value, (Noise(1.0, MANY),))


def common_baseline(number: int) -> Matrix:
    """The correlations of rows of equal noise, each minus the same baseline."""
    return np.full((number, number), 0.5) + 0.5 * np.eye(number)


def critical(correlations: list[Matrix] | None, number: int) -> float:
    """The half width of the family's intervals in standard errors."""
    return simultaneous([normal(0.0)] * number, correlations)[0].half_width


@st.composite
def families(draw: st.DrawFn) -> tuple[list[Difference], list[Matrix] | None]:
    """Differences with correlations in blocks, of any rank, or unknown."""
    listed = draw(st.lists(differences, min_size=1, max_size=6))
    if draw(st.booleans()):
        return listed, None
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    cut = draw(st.integers(0, len(listed) - 1))
    blocks = []
    for number in filter(None, (cut, len(listed) - cut)):
        loadings = generator.normal(size=(number, draw(st.integers(1, 3))))
        loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
        blocks.append(loadings @ loadings.T)
    return listed, blocks


@pytest.mark.parametrize("blocks", [[np.eye(4)], [np.eye(2), np.eye(2)], [np.eye(1)] * 4])
def test_independent_differences_are_adjusted_by_sidak(blocks: list[Matrix]) -> None:
    found = simultaneous([normal(value) for value in (0.5, 2.0, 2.6, -3.2)], blocks)

    alone = 2 * norm.sf([0.5, 2.0, 2.6, 3.2])
    assert [each.p_value for each in found] == pytest.approx(1 - (1 - alone) ** 4, abs=SAMPLED)
    assert found[0].half_width == pytest.approx(norm.isf((1 - 0.95**0.25) / 2), abs=0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_perfectly_correlated_differences_need_no_adjustment(sign: float) -> None:
    listed = [normal(2.1), normal(sign * 1.9)]

    found = simultaneous(listed, [np.array([[1.0, sign], [sign, 1.0]])])

    assert [each.p_value for each in found] == pytest.approx([each.p_value for each in listed], abs=SAMPLED)
    assert found[0].half_width == pytest.approx(norm.isf(0.025), abs=0.02)


def test_the_critical_values_of_a_common_baseline_are_dunnetts() -> None:
    """Dunnett (1964), two-sided 5 %, infinitely many degrees of freedom, 1 to 9 rows."""
    found = [critical([common_baseline(number)], number) for number in range(1, 10)]

    assert found == pytest.approx([1.96, 2.21, 2.35, 2.44, 2.51, 2.57, 2.61, 2.65, 2.69], abs=0.012)


def test_p_values_of_a_common_baseline_are_those_of_scipys_dunnett() -> None:
    generator = np.random.default_rng(3)
    baseline, *rows = (generator.normal(shift, 1, 40) for shift in (0.0, 0.2, 0.5, 0.75))
    pooled = float(np.mean([sample.var(ddof=1) for sample in (baseline, *rows)]))
    listed = [
        Difference(float(row.mean() - baseline.mean()), (Noise(pooled * 2 / 40, 4 * 39),)) for row in rows
    ]

    found = simultaneous(listed, [common_baseline(3)])

    expected = dunnett(*rows, control=baseline, random_state=0)
    assert [each.p_value for each in found] == pytest.approx(expected.pvalue, abs=2 * SAMPLED)
    interval = expected.confidence_interval(0.95)
    assert [each.half_width for each in found] == pytest.approx((interval.high - interval.low) / 2, rel=0.01)


def test_unknown_correlations_give_bonferroni() -> None:
    listed = [normal(value) for value in (0.1, 2.0, 3.0)]

    found = simultaneous(listed, None)

    expected = [min(1.0, 3 * each.p_value) for each in listed]
    assert [each.p_value for each in found] == pytest.approx(expected)
    assert found[0].half_width == pytest.approx(norm.isf(0.05 / 6))


def test_a_family_of_one_is_not_adjusted() -> None:
    one = Difference(2.0, (Noise(1.0, 3.0), Noise(0.5, 40.0)))

    for correlations in ([np.eye(1)], None):
        (found,) = simultaneous([one], correlations)
        assert found.p_value == pytest.approx(one.p_value)
        assert found.half_width == pytest.approx(one.half_width)
    assert simultaneous([], []) == ()


def test_correlations_that_no_distribution_has_are_taken_as_those_nearby() -> None:
    """Each two of three can't have a correlation of -0.9; the nearest is -0.5."""
    matrix = np.full((3, 3), -0.9) + 1.9 * np.eye(3)

    found = critical([matrix], 3)

    assert found == pytest.approx(critical([np.full((3, 3), -0.5) + 1.5 * np.eye(3)], 3), abs=0.01)


@settings(deadline=None)
@given(families())
def test_p_values_lie_between_a_differences_own_and_bonferronis_in_the_same_order(
    family: tuple[list[Difference], list[Matrix] | None],
) -> None:
    listed, correlations = family

    found = simultaneous(listed, correlations)

    for own, adjusted in zip(listed, found, strict=True):
        assert own.p_value * (1 - 1e-9) <= adjusted.p_value
        assert adjusted.p_value <= min(1.0, len(listed) * own.p_value) * (1 + 1e-9)
        assert adjusted.half_width >= own.half_width * (1 - 1e-9)
    order = sorted(range(len(listed)), key=lambda index: listed[index].p_value)
    ordered = [found[index].p_value for index in order]
    assert ordered == sorted(ordered)


@settings(deadline=None)
@given(families())
def test_an_interval_excludes_0_if_and_only_if_the_p_value_is_below_5_percent(
    family: tuple[list[Difference], list[Matrix] | None],
) -> None:
    def agree(each: Simultaneous) -> bool:
        return each.is_real == (each.p_value <= 0.05) or math.isclose(
            abs(each.value), each.half_width, rel_tol=1e-6
        )

    assert all(map(agree, simultaneous(*family)))


@settings(deadline=None)
@given(families())
def test_equal_inputs_give_equal_figures(family: tuple[list[Difference], list[Matrix] | None]) -> None:
    assert simultaneous(*family) == simultaneous(*family)


@settings(deadline=None)
@given(families(), st.floats(0.5, 2))
def test_units_do_not_matter(family: tuple[list[Difference], list[Matrix] | None], unit: float) -> None:
    listed, correlations = family
    scaled = [
        Difference(
            each.value * unit,
            tuple(Noise(one.squared_error * unit**2, one.degrees_of_freedom) for one in each.noise),
        )
        for each in listed
    ]

    for one, other in zip(
        simultaneous(listed, correlations), simultaneous(scaled, correlations), strict=True
    ):
        assert other.half_width == pytest.approx(unit * one.half_width, rel=1e-6)
        assert other.p_value == pytest.approx(one.p_value, abs=SAMPLED)


def test_95_percent_of_families_err_nowhere() -> None:
    """Five rows with a common baseline, four seeds each, no true difference; Welch's test."""
    generator = np.random.default_rng(1)
    critical_level = 2 * norm.sf(critical([common_baseline(5)], 5))
    errs = 0
    for _ in range(2000):
        scores = generator.normal(size=(6, 4))
        means, parts = scores.mean(axis=1), scores.var(axis=1, ddof=1) / 4
        errors = parts[1:] + parts[0]
        freedoms = errors**2 / (parts[1:] ** 2 / 3 + parts[0] ** 2 / 3)
        listed = [
            Difference(value, (Noise(error, freedom),))
            for value, error, freedom in zip(means[1:] - means[0], errors, freedoms, strict=True)
        ]
        errs += any(abs(each.value) > each.half_width_at(critical_level) for each in listed)

    assert errs / 2000 <= 0.06
