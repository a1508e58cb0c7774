"""Prompts of queries and passages: as sentence-transformers' own encode_query and encode_document."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_bert
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, RecordKind, ScoredPair
from synthbench.models.artifact import load, save_model
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder
from synthbench.models.interfaces import of_passages
from synthbench.models.pair_scorer import CosineScorer
from synthbench.models.pretrained import Pretrained, Prompts
from synthbench_reranking import Reranking
from synthbench_sts import STS

PROMPTS = Prompts(query="a man: ", passage="two dogs: ")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prompted")
    tiny_bert(folder, weights=0.3)
    return folder


@pytest.fixture(params=[False, True], ids=["transformer", "static"])
def encoder(request: pytest.FixtureRequest, bert: Path) -> LengthBatchedEncoder:
    base = Pretrained(model=str(bert), prompts=PROMPTS, static=request.param)
    return LengthBatchedEncoder(build_encoder(base, 0, "cpu"))


def test_vectors_of_queries_and_passages_equal_the_librarys(encoder: LengthBatchedEncoder) -> None:
    model = encoder.model
    np.testing.assert_allclose(encoder.encode(SENTENCES), model.encode_query(SENTENCES), atol=1e-5)
    passages = of_passages(encoder).encode(SENTENCES)
    np.testing.assert_allclose(passages, model.encode_document(SENTENCES), atol=1e-5)
    assert np.abs(passages - encoder.encode(SENTENCES)).max() > 0.01


def test_a_prompt_is_encoded_as_a_prefix_of_the_text(bert: Path, encoder: LengthBatchedEncoder) -> None:
    static = not hasattr(encoder.model[0], "auto_model")
    bare = LengthBatchedEncoder(build_encoder(Pretrained(model=str(bert), static=static), 0, "cpu"))
    prompted = bare.encode([PROMPTS.query + text for text in SENTENCES])
    np.testing.assert_allclose(encoder.encode(SENTENCES), prompted, atol=1e-5)
    assert of_passages(bare) is bare


def test_both_sentences_of_a_similarity_pair_are_encoded_as_queries(encoder: LengthBatchedEncoder) -> None:
    pairs = [ScoredPair(sentence1=a, sentence2=b, score=0.1 * n) for n, (a, b) in enumerate(_pairs())]
    task = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)
    found = STS().evaluate(CosineScorer(encoder), task)
    one_prompt = CosineScorer(_Fixed(encoder))
    assert found == STS().evaluate(one_prompt, task)


def test_candidates_of_a_ranking_are_encoded_as_passages(encoder: LengthBatchedEncoder) -> None:
    query, *candidates = SENTENCES[:5]
    ranking = Ranking(query=query, candidates=tuple(candidates), grades=(1.0, 0.0, 0.0, 0.0))
    scorer = CosineScorer(CachingEncoder(encoder))
    pairs = [(query, text) for text in candidates]
    expected = [
        float(np.dot(q, p) / np.linalg.norm(q) / np.linalg.norm(p))
        for q, p in zip(encoder.encode([query] * 4), of_passages(encoder).encode(candidates), strict=True)
    ]
    np.testing.assert_allclose(scorer.score_passages(pairs), expected, atol=1e-5)
    assert np.abs(scorer.score(pairs) - expected).max() > 1e-4
    found = Reranking().evaluate(scorer, SyntheticDataset.create(RecordKind.RANKING, [ranking]))
    place = 1 + sum(score > expected[0] for score in expected[1:])
    assert found.scores["mrr_answerable"] == pytest.approx(1 / place)


def test_a_saved_model_retains_its_prompts(encoder: LengthBatchedEncoder, tmp_path: Path) -> None:
    save_model(encoder.model, tmp_path)
    again = load(tmp_path, Runtime(device="cpu"))
    assert isinstance(again, LengthBatchedEncoder)
    np.testing.assert_allclose(again.encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-6)
    expected = of_passages(encoder).encode(SENTENCES)
    np.testing.assert_allclose(of_passages(again).encode(SENTENCES), expected, atol=1e-6)


def test_a_cross_encoder_takes_no_prompts(bert: Path) -> None:
    with refused("`prompts`", "a cross-encoder has no"):
        build_cross_encoder(Pretrained(model=str(bert), prompts=PROMPTS), 0, "cpu")


class _Fixed:
    """An encoder that always returns the queries' vectors."""

    def __init__(self, encoder: LengthBatchedEncoder) -> None:
        self.encode = encoder.encode


def _pairs() -> list[tuple[str, str]]:
    return list(pairwise(SENTENCES[:7]))
