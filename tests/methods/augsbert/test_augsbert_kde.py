"""KDE's selection of labelled random pairs: densities as in scipy, draws, classes, errors."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from augsbert_context import Context, Told
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy, gaussian_kde

from synthbench.api import GeneratedData, RecordKind, ScoredPair, SyntheticDataset, UserError
from synthbench_augsbert import AugSBERT
from synthbench_augsbert.kde import Density, choose, draws

SETTINGS: dict[str, Any] = {"cross_encoder": {"base": {"model": "sandbox/encoder"}}}


def kde(**changes: Any) -> AugSBERT:
    return AugSBERT(sampler={"name": "kde", **changes}, **SETTINGS)


def dataset(scores: "np.ndarray | list[float]", name: str = "s") -> SyntheticDataset:
    records = (
        ScoredPair(sentence1=f"{name} {index}", sentence2=f"{name} {index} again", score=float(score))
        for index, score in enumerate(scores)
    )
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def select(gold: "np.ndarray | list[float]", silver: "np.ndarray | list[float]", **changes: Any) -> Context:
    """Run the method on gold and labelled pairs of these scores; the context holds what came of it."""
    context = Context(datasets={"labelled": dataset(silver)}, progress=Told())
    context.made = list(kde(**changes).generate({"gold": dataset(gold, "gold")}, context))
    return context


@pytest.mark.parametrize(
    ("shape", "number"), [((2.0, 5.0), 300), ((0.4, 6.0), 3000), ((5.0, 0.5), 300), ((1.0, 1.0), 2)]
)
def test_the_density_equals_scipys_with_reflection_at_both_ends(
    shape: tuple[float, float], number: int
) -> None:
    scores = np.random.default_rng(0).beta(*shape, number)
    estimate = gaussian_kde(scores)  # Scott's rule
    points = np.linspace(0, 1, 101)
    expected = estimate(points) + estimate(-points) + estimate(2 - points)

    found = Density(scores, "scott")

    assert found.width == pytest.approx(np.sqrt(estimate.covariance[0, 0]))
    np.testing.assert_allclose(found.at(points), expected, rtol=0, atol=1e-3 * expected.max())


def test_a_configured_bandwidth_is_the_kernels_standard_deviation() -> None:
    found = Density(np.array([0.5, 0.5]), 0.05)

    peak = 1 / (0.05 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(found.at(np.array([0.5, 0.45])), [peak, peak * np.exp(-0.5)], rtol=1e-4)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(0.001, 1))
@settings(max_examples=25)
def test_no_probability_mass_is_lost_at_the_ends(scores: list[float], width: float) -> None:
    middles = (np.arange(4_000) + 0.5) / 4_000

    assert Density(np.array(scores), width).at(middles).mean() == pytest.approx(1, abs=1e-3)


def test_pairs_are_selected_with_the_ratio_of_the_densities() -> None:
    generator = np.random.default_rng(0)
    gold, silver = generator.random(4000), generator.beta(1, 3, 40_000)

    kept = choose(gold, silver, generator.random(len(silver)), 0.02).kept

    # Beta(1, 3) has the density 3 (1 - s)^2, which is 1 at s = 0.423; below, 1 / density is kept.
    for low, high in ((0.1, 0.12), (0.2, 0.22), (0.3, 0.32)):
        within = (silver >= low) & (silver < high)
        expected = 1 / (3 * (1 - (low + high) / 2) ** 2)
        assert kept[within].mean() == pytest.approx(expected, abs=0.1)
    assert kept[(silver > 0.55) & (silver < 0.8)].mean() > 0.95


def test_selected_scores_are_nearer_to_golds_and_the_run_reports_the_divergence() -> None:
    generator = np.random.default_rng(1)
    gold, silver = generator.beta(2, 2, 300), generator.beta(1, 4, 1000)

    found = select(gold, silver)

    scores = np.array([record.score for record in found.made])
    of_gold, *others = (np.histogram(each, 20, (0, 1))[0] for each in (gold, silver, scores))
    before, after = (entropy(each, of_gold + 0.5) for each in others)
    assert after < before / 2
    (line,) = found.progress.said
    assert f"kept {len(scores):,} of 1,000 random pairs by densities of bandwidths" in line
    assert line.endswith(f"gold's (20 bins): {before:.3f} nats before, {after:.3f} after")
    assert found.dropped == {"kde: too many pairs of such a score": 1000 - len(scores)}
    assert found.measured == {
        "kde: KL divergence before, nats": pytest.approx(before),
        "kde: KL divergence after, nats": pytest.approx(after),
        "kde: bandwidth, gold": pytest.approx(gold.std(ddof=1) * 300**-0.2),
        "kde: bandwidth, silver": pytest.approx(silver.std(ddof=1) * 1000**-0.2),
    }


def test_the_selection_depends_only_on_seed_and_sentences() -> None:
    pairs = list(dataset(np.zeros(50)))
    swapped = [ScoredPair(sentence1=p.sentence2, sentence2=p.sentence1, score=0.9) for p in pairs]

    drawn = draws(pairs, seed=3)

    np.testing.assert_array_equal(draws(pairs[::-1], seed=3)[::-1], drawn)
    np.testing.assert_array_equal(draws(swapped, seed=3), drawn)
    assert not np.isin(draws(pairs, seed=4), drawn).any()
    assert (drawn >= 0).all() and (drawn < 1).all()
    assert 0.3 < drawn.mean() < 0.7


def test_with_two_classes_all_positives_stay_and_negatives_at_golds_ratio() -> None:
    gold = [1.0] * 40 + [0.0] * 60
    silver = np.r_[np.linspace(0.5, 1, 20), np.linspace(0, 0.49, 180)]

    found = select(gold, silver)

    scores = [record.score for record in found.made]
    assert Counter(score >= 0.5 for score in scores) == {True: 20, False: 30}
    assert set(scores) <= set(silver.tolist()), "labels stay soft"
    assert "by class; KL divergence" in found.progress.said[0]
    assert found.progress.said[0].endswith(" 0.000 after")
    assert list(found.measured) == ["kde: KL divergence before, nats", "kde: KL divergence after, nats"]


def test_if_negatives_are_too_few_all_are_selected() -> None:
    found = select([1.0, 0.0, 0.0, 0.0], [0.9, 0.8, 0.1])

    assert [record.score for record in found.made] == [0.9, 0.8, 0.1]


def test_records_are_the_labelled_pairs_that_kde_selected() -> None:
    found = select([0.0, 0.5, 1.0], [0.2, 0.6, 0.9], bandwidth=0.5)

    for record in found.made:
        assert record.instruction == "kde size=200000 bandwidth=0.5"
        assert record.sentence2 == f"{record.sentence1} again"
        assert record.id == ""


@pytest.mark.parametrize(
    ("gold", "silver", "message"),
    [
        ([0.1, 0.7], [0.3, 0.3], "all 2 random pairs have the score 0.3; the cross-encoder has learned"),
        ([0.0, 1.0], [0.3, 0.2], "none of 2 random pairs is a positive one"),
    ],
)
def test_constant_scores_are_refused(gold: list[float], silver: list[float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        select(gold, silver)


def test_kde_shares_the_random_pairs_of_the_random_sampler() -> None:
    chosen, random = kde(size=50), AugSBERT(sampler={"name": "random", "size": 50}, **SETTINGS)

    (need,) = chosen.needs().values()

    assert isinstance(need, GeneratedData)
    assert AugSBERT.model_validate(need.config) == random
    assert need.sources == {"gold": "gold", "dev": "dev", "sentences": "sentences"}
    assert list(chosen.cost({"gold": 100})) == []
    (line,) = random.cost({"gold": 100})
    assert line.startswith("at most 50 pairs to label, 100 inputs of ")
