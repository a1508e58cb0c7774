"""Semantic search: neighbours by cosine, exact and approximate, and the pairs that are made of them."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from augsbert_context import Context, Vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from wording import refused

from synthbench.api import GeneratedData, RecordKind, ScoredPair, SyntheticDataset, TrainedModel, UserError
from synthbench_augsbert import AugSBERT, neighbours
from synthbench_augsbert.gold import GoldSentences
from synthbench_augsbert.neighbours import nearest
from synthbench_augsbert.samplers import SemanticSearchSampler

BI_ENCODER = {"base": {"model": "sandbox/encoder"}}
VECTORS = arrays(
    np.float32, st.tuples(st.integers(2, 30), st.just(3)), elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0])
)


def in_clusters(number: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((12, 16))
    noise = generator.standard_normal((number, 16))
    return (centres[generator.integers(0, 12, number)] + 0.6 * noise).astype(np.float32)


def gold_of(*pairs: tuple[str, str]) -> GoldSentences:
    return GoldSentences.of(ScoredPair(sentence1=a, sentence2=b, score=0.5) for a, b in pairs)


def context_of(vectors: dict[str, tuple[float, float]]) -> Context:
    return Context(models={"sampler.bi_encoder": Vectors(vectors)})


@given(VECTORS, st.data())
@settings(max_examples=60)
def test_neighbours_are_ordered_by_cosine_then_by_index(vectors: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(vectors) - 1))
    norms = np.linalg.norm(vectors.astype(float), axis=1)
    norms[norms == 0] = 1
    cosines = np.round((vectors @ vectors.T) / norms / norms[:, None], 5)

    found = nearest(vectors, k, exact_up_to=100, seed=0)

    for query, others in enumerate(found.indices.tolist()):
        rest = [other for other in range(len(vectors)) if other != query]
        assert others == sorted(rest, key=lambda other: (-cosines[query, other], other))[:k]
    assert (found.recall, found.how) == (1.0, "exact")


@given(st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=15)
def test_neighbours_do_not_depend_on_the_block_size_of_products(k: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    few_directions = generator.integers(-2, 3, (90, 3)).astype(np.float32)
    expected = nearest(few_directions, k, exact_up_to=100, seed=0).indices

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(neighbours, "TILE", 16)
        np.testing.assert_array_equal(nearest(few_directions, k, exact_up_to=100, seed=0).indices, expected)


def test_large_corpora_use_an_approximate_index_with_measured_recall() -> None:
    vectors = in_clusters(2400)
    exact = nearest(vectors, 5, exact_up_to=2400, seed=0)

    found = nearest(vectors, 5, exact_up_to=2399, seed=0, threads=1)

    shared = [len(set(a) & set(b)) / 5 for a, b in zip(exact.indices, found.indices, strict=True)]
    assert np.mean(shared) > 0.96
    assert found.recall == pytest.approx(np.mean(shared), abs=0.02)
    assert found.how.startswith("inverted file, ")
    assert all(query not in others for query, others in enumerate(found.indices.tolist()))
    again = nearest(vectors, 5, exact_up_to=0, seed=0, threads=1)
    np.testing.assert_array_equal(again.indices, found.indices)


def test_missing_neighbours_in_short_lists_are_found_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "FIRST_PROBES", 1)
    monkeypatch.setattr(neighbours, "GOAL", 0.0)
    monkeypatch.setattr(neighbours, "SPARE", 0)
    vectors = in_clusters(200)

    found = nearest(vectors, 60, exact_up_to=0, seed=0)

    assert all(len(set(others)) == 60 and min(others) >= 0 for others in found.indices.tolist())


def test_if_nearby_clusters_do_not_suffice_all_sentences_are_compared() -> None:
    without_clusters = np.random.default_rng(0).standard_normal((1600, 64)).astype(np.float32)

    found = nearest(without_clusters, 3, exact_up_to=0, seed=0, threads=1)

    assert (found.recall, found.how) == (1.0, "exact")


@pytest.mark.parametrize("k", [0, 3])
def test_k_must_be_smaller_than_the_number_of_sentences(k: int) -> None:
    with refused(f"k is {k}", "2", kind=ValueError):
        nearest(np.eye(3, dtype=np.float32), k, exact_up_to=10, seed=0)


def test_pairs_are_new_and_unordered_and_dropped_gold_pairs_are_not_replaced() -> None:
    gold = gold_of(("a", "b"), ("c", "d"))
    context = context_of({"a": (1, 0), "b": (0.99, 0.1), "c": (0, 1), "d": (0.3, 1)})

    found = SemanticSearchSampler(k=1, bi_encoder=BI_ENCODER).sample(gold, 0, context)

    assert found.pairs == ()
    assert found.dropped == {"neighbours of each other, kept once": 2, "gold pair": 2}
    assert context.progress.said == ["  semantic search: 1 neighbours of 4 sentences (exact), recall 1.000"]
    assert context.measured == {"semantic search: recall": 1.0}


def labelled(by: str, *pairs: tuple[str, str, float]) -> SyntheticDataset:
    records = [ScoredPair(sentence1=a, sentence2=b, score=score, instruction=by) for a, b, score in pairs]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def test_pairs_found_by_both_samplers_count_once_and_bm25s_come_first() -> None:
    found = {
        "bm25": labelled("bm25", ("red fish", "old fish", 0.5), ("red fish", "red tree", 0.25)),
        "semantic-search": labelled(
            "semantic", ("old house", "new tree", 0.75), ("red fish", "red tree", 0.25)
        ),
    }
    gold = labelled("", ("red fish", "new tree", 1.0))
    sampler = {"name": "bm25+semantic-search", "k": 2, "bi_encoder": BI_ENCODER}
    context = Context(datasets=found)

    made = list(AugSBERT(sampler=sampler, cross_encoder={}).generate({"gold": gold}, context))

    assert [(pair.sentence1, pair.sentence2, pair.score, pair.instruction) for pair in made] == [
        ("red fish", "old fish", 0.5, "bm25"),
        ("red fish", "red tree", 0.25, "bm25"),
        ("old house", "new tree", 0.75, "semantic"),
    ]
    assert context.dropped == {"found in both ways, kept once": 1}


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ({"name": "semantic-search", "k": 4}, "sampler semantic-search: k 4 needs more than 4 distinct gold"),
        (
            {"name": "bm25+semantic-search", "k": 3, "semantic_k": 7},
            r"sampler bm25\+semantic-search: semantic_k 7 needs more than 7 distinct",
        ),
    ],
)
def test_fewer_sentences_than_neighbours_are_a_user_error(sampler: dict[str, object], message: str) -> None:
    configured = AugSBERT(sampler={**sampler, "bi_encoder": BI_ENCODER}, cross_encoder={})

    with pytest.raises(UserError, match=message):
        configured.sampler.check(gold_of(("a", "b"), ("c", "d")))


def test_the_bi_encoder_is_trained_on_gold() -> None:
    sampler = {"name": "semantic-search", "k": 3, "bi_encoder": BI_ENCODER}
    needs = AugSBERT(sampler=sampler, cross_encoder={}, seed=5).needs()
    assert list(needs) == ["cross_encoder", "sampler.bi_encoder"]
    assert needs["sampler.bi_encoder"] == TrainedModel(
        trainer="bi-encoder", config=BI_ENCODER, data=("gold",), seed=5, evaluator="sts", selection="dev"
    )


def test_a_combined_sampler_reuses_the_data_of_both_samplers() -> None:
    both = {"name": "bm25+semantic-search", "k": 3, "semantic_k": 7, "bi_encoder": BI_ENCODER}
    alone = (
        {"name": "bm25", "k": 3},
        {"name": "semantic-search", "k": 7, "bi_encoder": BI_ENCODER},
    )
    rows = [AugSBERT(sampler=sampler, cross_encoder={}, seed=5) for sampler in (both, *alone)]
    assert rows[0].needs() == {
        row.sampler.name: GeneratedData(
            "augsbert", row.model_dump(mode="json"), {"gold": "gold", "dev": "dev", "sentences": "sentences"}
        )
        for row in rows[1:]
    }
    assert list(rows[0].cost({"gold": 100})) == []


def test_a_killed_runs_labels_are_matched_by_sentences_not_positions() -> None:
    class Half:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.full(len(pairs), 0.5)

    generator = np.random.default_rng(0)
    vectors = {f"sentence {number}": generator.standard_normal(2) for number in range(12)}
    gold = SyntheticDataset.create(
        RecordKind.SCORED_PAIR,
        [ScoredPair(sentence1=text, sentence2="sentence 0", score=0.5, split="train") for text in vectors],
    )
    sampler = {"name": "semantic-search", "k": 3, "bi_encoder": BI_ENCODER}
    method = AugSBERT(sampler=sampler, cross_encoder={}, both_orders=False)
    models = {"cross_encoder": Half(), "sampler.bi_encoder": Vectors(vectors)}
    expected = list(method.generate({"gold": gold}, Context(models)))
    finished = frozenset(unit.key for unit in expected[::2])

    after = list(method.generate({"gold": gold}, Context(models, finished_units=finished)))

    assert after == expected[1::2]
    assert len({unit.key for unit in expected}) == len(expected)
    assert all(re.fullmatch(r"\d+-\d+", unit.key) for unit in expected)
