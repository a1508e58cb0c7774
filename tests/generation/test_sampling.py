"""The next token's distribution on vocabularies that are searched by blocks, and at their limits."""

import pytest
import torch
from plain_dino import distribution

from synthbench.generation.sampling import Sampler, Sampling

VOCABULARY = 5_003
END = (7,)


@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("top_k", [1, 5, 768, 769, 1_000, VOCABULARY - 1, VOCABULARY + 1])
def test_any_top_k_keeps_the_most_probable_tokens(top_k: int, spread: float) -> None:
    drawn = torch.randn(3, VOCABULARY, generator=torch.Generator().manual_seed(0)) * spread
    sampler = Sampler(Sampling(decay=100.0, top_k=top_k, top_p=None, max_new_tokens=1), END)
    tokens, chances = sampler.candidates(drawn.clone(), torch.tensor([0]), torch.tensor([[1, 2]]))
    expected = distribution(drawn.double(), 100.0, min(top_k, VOCABULARY), None, END)
    ours = {
        token: chance
        for token, chance in zip(tokens[0].tolist(), chances[0].tolist(), strict=True)
        if chance > 0
    }
    # Single precision may exchange the last tokens, whose weights differ in the seventh decimal.
    assert len(ours) == len(expected)
    assert sum(ours.values()) == pytest.approx(1, abs=1e-5)
    assert max(abs(ours.get(token, chance) - chance) for token, chance in expected.items()) < 1e-5
    assert len(ours.keys() - expected.keys()) <= len(expected) // 100
