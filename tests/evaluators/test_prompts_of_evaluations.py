"""Prompts of an evaluation, which replace the model's own prompts on some test sets."""

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_bert

from synthbench.engine.stage import Stage
from synthbench.models.building import build_encoder
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder
from synthbench.models.interfaces import of_passages
from synthbench.models.pretrained import Pretrained, Prompts
from synthbench.stages.evaluation import Evaluate
from synthbench_reranking import Reranking
from synthbench_sts import STS

OWN = Prompts(query="a man: ", passage="two dogs: ")
PROMPTS = Prompts(query="the children: ", passage="")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("prompted")
    tiny_bert(folder, weights=0.3)
    return str(folder)


def encoder(bert: str, prompts: Prompts | None) -> LengthBatchedEncoder:
    return LengthBatchedEncoder(build_encoder(Pretrained(model=bert, prompts=prompts), 0, "cpu"))


@pytest.mark.parametrize("own", [None, OWN], ids=["a model without prompts", "a model with its own"])
def test_texts_are_encoded_with_the_evaluations_prompts(bert: str, own: Prompts | None) -> None:
    plain = encoder(bert, None)
    prompted = CachingEncoder(encoder(bert, own).with_prompts(PROMPTS))
    queries = plain.encode([PROMPTS.query + text for text in SENTENCES])
    np.testing.assert_allclose(prompted.encode(SENTENCES), queries, atol=1e-5)
    np.testing.assert_allclose(of_passages(prompted).encode(SENTENCES), plain.encode(SENTENCES), atol=1e-5)
    assert np.abs(queries - plain.encode(SENTENCES)).max() > 0.01


def test_equal_query_and_passage_prompts_share_one_cache(bert: str) -> None:
    prompted = encoder(bert, None).with_prompts(Prompts(query="x: ", passage="x: "))
    assert of_passages(prompted) is prompted


def test_only_prompts_that_are_set_are_part_of_the_identity() -> None:
    def identity(operation: Evaluate) -> str:
        return Stage(operation, {}).identity

    plain, other = Evaluate("sts", STS()), Evaluate("sts", STS(), Prompts(query="x"))
    assert dict(plain.config()) == STS().model_dump(mode="json")
    assert len({identity(plain), identity(other), identity(Evaluate("sts", STS(), PROMPTS))}) == 3
    model = {"model": Stage(plain)}
    assert plain.group(model) == Evaluate("reranking", Reranking()).group(model) != other.group(model)
