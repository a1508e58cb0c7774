"""Which pairs the samplers choose."""

import math
from collections import Counter
from itertools import combinations, pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from wording import refused

from synthbench.api import GenerationContext, ScoredPair
from synthbench.base.errors import UserError
from synthbench_augsbert.gold import GoldSentences
from synthbench_augsbert.samplers import NO_COMMON_WORD as LACKING
from synthbench_augsbert.samplers import (
    BM25Sampler,
    BM25SemanticSampler,
    RandomSampler,
    SemanticSearchSampler,
)

NOTHING = cast("GenerationContext", None)
"""A context for samplers that do not use it."""
WORDS = ["man", "plays", "guitar", "a", "a", "dog", "runs", "the"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def pair(first: str, second: str, *, split: str = "train", id: str = "") -> ScoredPair:
    return ScoredPair(sentence1=first, sentence2=second, score=0.5, split=split, id=id)


@st.composite
def gold_sentences(draw: st.DrawFn) -> GoldSentences:
    sentences = draw(st.lists(SENTENCES, min_size=2, max_size=30, unique=True))
    chosen = draw(st.lists(st.tuples(st.sampled_from(sentences), st.sampled_from(sentences)), max_size=20))
    return GoldSentences.of([*(pair(text, text) for text in sentences), *(pair(a, b) for a, b in chosen)])


def shared_words(gold: GoldSentences) -> bool:
    words = [{*text.split()} for text in gold.texts]
    return any(one & other for one, other in combinations(words, 2))


def test_gold_sentences_are_distinct_training_sentences_with_their_first_record() -> None:
    records = [
        pair("b", "a", id="1"),
        pair("a", "c", id="2"),
        pair("c", "a", id="3"),
        pair("c", "c", id="4"),
        pair("a", "d", id="5", split="dev"),
    ]

    gold = GoldSentences.of(records)

    assert gold.texts == ("b", "a", "c")
    assert gold.source_ids == ("1", "1", "2")
    assert gold.pairs == {(0, 1), (1, 2)}


@pytest.mark.parametrize("records", [[], [pair("a", "a")], [pair("a", "b", split="test")]])
def test_fewer_than_two_gold_sentences_are_a_user_error(records: list[ScoredPair]) -> None:
    with refused("split", "'train'", "2"):
        GoldSentences.of(records)


@given(gold_sentences(), st.data())
def test_random_pairs_are_new_distinct_unordered_and_repeatable(
    gold: GoldSentences, data: st.DataObject
) -> None:
    available = math.comb(len(gold.texts), 2) - len(gold.pairs)
    sampler = RandomSampler(size=data.draw(st.integers(1, max(1, available))))
    seed = data.draw(st.integers(0, 3))
    if not available:
        return

    pairs = sampler.sample(gold, seed, NOTHING).pairs

    assert len(pairs) == len(set(pairs)) == sampler.size
    assert all(0 <= lower < higher < len(gold.texts) for lower, higher in pairs)
    assert gold.pairs.isdisjoint(pairs)
    assert list(sampler.sample(gold, seed, NOTHING).pairs) == list(pairs)


@given(gold_sentences())
def test_sampling_as_many_random_pairs_as_exist_gives_all(gold: GoldSentences) -> None:
    new = set(combinations(range(len(gold.texts)), 2)) - gold.pairs
    if new:
        assert set(RandomSampler(size=len(new)).sample(gold, 1, NOTHING).pairs) == new
    with pytest.raises(UserError, match=rf"{len(new) + 1} .* {len(new)} pairs"):
        RandomSampler(size=len(new) + 1).sample(gold, 1, NOTHING)


def test_every_new_pair_is_sampled_equally_often() -> None:
    gold = GoldSentences.of([pair("a", "b"), pair("c", "d"), pair("a", "e")])
    drawn = Counter(
        chosen for seed in range(2000) for chosen in RandomSampler(size=2).sample(gold, seed, NOTHING).pairs
    )

    assert len(drawn) == 7
    expected = 2 * 2000 / 7
    assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in drawn.values())


@given(gold_sentences().filter(shared_words), st.data())
def test_bm25_pairs_are_new_distinct_and_account_for_every_neighbour(
    gold: GoldSentences, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(gold.texts) - 1))

    candidates = BM25Sampler(k=k).sample(gold, 0, NOTHING)

    assert len(candidates.pairs) == len(set(candidates.pairs))
    assert all(0 <= lower < higher < len(gold.texts) for lower, higher in candidates.pairs)
    assert gold.pairs.isdisjoint(candidates.pairs)
    assert len(candidates.pairs) + sum(candidates.dropped.values()) == k * len(gold.texts)
    assert BM25Sampler(k=k).sample(gold, 9, NOTHING) == candidates


@given(gold_sentences().filter(shared_words))
def test_a_larger_k_only_adds_pairs(gold: GoldSentences) -> None:
    found = [set(BM25Sampler(k=k).sample(gold, 0, NOTHING).pairs) for k in range(1, len(gold.texts))]

    assert all(smaller <= larger for smaller, larger in pairwise(found))


def test_gold_pairs_among_the_neighbours_are_dropped_and_not_replaced() -> None:
    gold = GoldSentences.of(
        [pair("red fish", "blue fish"), pair("old house", "new house"), pair("tall tree", "oak tree")]
    )

    candidates = BM25Sampler(k=1).sample(gold, 0, NOTHING)

    assert candidates.pairs == ()
    assert candidates.dropped == {"neighbours of each other, kept once": 3, "gold pair": 3, LACKING: 0}


def test_a_pair_found_from_both_sentences_counts_once() -> None:
    sea, land = pair("red fish", "old house"), pair("new house", "blue fish")
    gold = GoldSentences.of([sea, land, pair("tall tree", "my boat"), pair("your boat", "oak tree")])

    candidates = BM25Sampler(k=1).sample(gold, 0, NOTHING)

    assert candidates.pairs == ((0, 3), (1, 2), (4, 7), (5, 6))
    assert candidates.dropped == {"neighbours of each other, kept once": 4, "gold pair": 0, LACKING: 0}


def test_directed_pairs_keep_both_orders_and_no_gold_pair_in_either() -> None:
    sea, land = pair("red fish", "old house"), pair("new house", "blue fish")
    gold = GoldSentences.of([sea, land, pair("tall tree", "oak tree")])

    candidates = BM25Sampler(k=1, directed=True).sample(gold, 0, NOTHING)

    assert candidates.pairs == ((0, 3), (1, 2), (2, 1), (3, 0))
    assert candidates.dropped == {"neighbours of each other, kept once": 0, "gold pair": 2, LACKING: 0}


@given(gold_sentences().filter(shared_words), st.data())
def test_directed_pairs_are_the_same_pairs_in_the_orders_found(
    gold: GoldSentences, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(gold.texts) - 1))

    both = BM25Sampler(k=k, directed=True).sample(gold, 0, NOTHING)

    once = BM25Sampler(k=k).sample(gold, 0, NOTHING)
    assert len(both.pairs) == len(set(both.pairs))
    assert tuple(dict.fromkeys(tuple(sorted(each)) for each in both.pairs)) == once.pairs
    assert len(both.pairs) + sum(both.dropped.values()) == k * len(gold.texts)


def test_samplers_whose_pairs_have_no_order_keep_their_settings_and_descriptions() -> None:
    bi_encoder = {"base": {"model": "m"}}
    for sampler in (BM25Sampler(k=3), SemanticSearchSampler(k=3, bi_encoder=bi_encoder)):
        directed = sampler.model_copy(update={"directed": True})
        assert "directed" not in sampler.model_dump(mode="json")
        assert directed.description == f"{sampler.description} directed"
    assert "directed" not in BM25SemanticSampler(k=3, bi_encoder=bi_encoder).model_dump(mode="json")
    others = BM25SemanticSampler(k=3, bi_encoder=bi_encoder, directed=True).others().values()
    assert [each["directed"] for each in others] == [True, True]


def test_sentences_without_a_common_word_are_no_neighbours_and_are_counted() -> None:
    gold = GoldSentences.of([pair("red fish", "blue fish"), pair("old house", "a tree"), pair("我", "red")])

    candidates = BM25Sampler(k=2).sample(gold, 0, NOTHING)

    assert candidates.pairs == ((0, 5),)
    assert candidates.dropped == {"neighbours of each other, kept once": 2, "gold pair": 1, LACKING: 8}


def test_sentences_without_any_common_word_are_refused() -> None:
    gold = GoldSentences.of([pair("red fish", "blue bird"), pair("old house", "我喜欢北京。")])
    with refused("bm25", "4 gold sentences", "share a word", "semantic-search"):
        BM25Sampler(k=1).check(gold)


def test_k_must_be_smaller_than_the_number_of_sentences() -> None:
    gold = GoldSentences.of([pair("a b", "a c"), pair("a b", "d")])

    with refused("3", "gold"):
        BM25Sampler(k=3).sample(gold, 0, NOTHING)


@pytest.mark.parametrize("settings", [{"k": 0}, {"k": "5"}, {"k": 5, "size": 3}, {}])
def test_impossible_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BM25Sampler.model_validate(settings)
