from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.sampling import Relation, draw_event, draw_partner, split_of
from synthbench.worlds.sandbox.vocabulary import domain_names

SEEDS = st.integers(0, 10**9)
SLICING = Event(
    domain="cooking",
    number="one",
    attribute="young",
    agent="chef",
    action="slice",
    object="potatoes",
    place="in the kitchen",
    time="at noon",
)


def drawn(seed: int) -> Event:
    return draw_event(domain_names(), Random(seed))


@given(SEEDS, SEEDS)
def test_similarity_is_symmetric_within_0_to_1_and_1_only_for_equal_events(one: int, other: int) -> None:
    first, second = drawn(one), drawn(other)
    assert similarity(first, second) == similarity(second, first)
    assert 0 <= similarity(first, second) <= 1
    assert (similarity(first, second) == 1) == (first == second)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 1.0),
        ({"object": "carrots"}, 0.71 + 0.29 * 0.4),  # of the same scene
        ({"object": "a cake", "action": "bake"}, 0.46 + 0.54 * 0.25),  # of another scene
        ({"agent": "baker"}, 0.82 + 0.18 * 0.25),
        ({"place": "in a restaurant"}, 0.88 + 0.12 * 0.2),
        ({"place": None}, 0.88 + 0.12 * 0.5),
        ({"attribute": "old"}, 0.94),
        ({"number": "two"}, 0.95 + 0.05 * 2 / 3),
        ({"number": "several"}, 0.95),
        ({"time": "at night"}, 0.95),
        ({"is_negative": True}, 0.73),
        ({"is_negative": True, "time": "at night"}, 0.95 * 0.73),
    ],
)
def test_a_changed_slot_reduces_similarity_by_its_weight(change: dict[str, Any], expected: float) -> None:
    assert similarity(SLICING, replace(SLICING, **change)) == pytest.approx(expected, abs=1e-6)


def test_a_slot_that_neither_event_fills_has_no_weight() -> None:
    bare = replace(SLICING, attribute=None, place=None, time=None)
    expected = (0.29 + 0.18 + 0.05 + 0.25 * 0.4) / 0.77
    assert similarity(bare, replace(bare, action="peel")) == pytest.approx(expected, abs=1e-6)


def test_agents_of_different_domains_are_compared_like_those_of_one() -> None:
    cook = replace(SLICING, agent="man", attribute=None, place=None, time=None)
    sailor = Event("sea", "one", None, "woman", "feed", "a seal", None, None)
    assert similarity(cook, replace(sailor, agent="man")) == pytest.approx(0.23 / 0.77, abs=1e-6)
    assert similarity(cook, sailor) == pytest.approx((0.05 + 0.18 * 0.3) / 0.77, abs=1e-6)
    assert similarity(cook, replace(sailor, agent="sailor")) == pytest.approx(0.05 / 0.77, abs=1e-6)


@given(SEEDS)
def test_partners_have_the_requested_relation(seed: int) -> None:
    random = Random(seed)
    event = drawn(seed)
    partner = {relation: draw_partner(event, relation, domain_names(), random) for relation in Relation}
    assert partner[Relation.PARAPHRASE] == event
    assert partner[Relation.RELATED].domain == event.domain
    assert partner[Relation.UNRELATED].domain != event.domain
    negative = partner[Relation.HARD_NEGATIVE]
    decisive = [event.action, event.object, event.agent, event.is_negative]
    changed = [negative.action, negative.object, negative.agent, negative.is_negative]
    assert 1 <= sum(a != b for a, b in zip(decisive, changed, strict=True)) <= 2
    same = replace(
        negative,
        action=event.action,
        object=event.object,
        agent=event.agent,
        is_negative=event.is_negative,
    )
    assert same == event


def test_splits_have_their_configured_shares() -> None:
    splits = [split_of(drawn(seed)) for seed in range(2000)]
    shares = [splits.count(split) / 2000 for split in ("train", "dev", "test")]
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.03)
