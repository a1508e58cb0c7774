"""DINO's next-token distribution by the formula, slowly: one row at a time, no cache, nothing shared.

Written from the paper (Schick and Schütze 2021, section 3) and from what its text leaves to the code: the end
of text is never written, a factor is never below 0.01, and filters come last, in transformers' order.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from transformers import TopKLogitsWarper, TopPLogitsWarper

SMALLEST_FACTOR = 0.01


def logits_after(model: Any, prompt: Sequence[int], written: Sequence[int]) -> torch.Tensor:
    """Return the logits after `prompt` and after each written token; shape (1 + written, vocabulary).

    One full forward pass of this row suffices: a causal model predicts the next token at every position.
    """
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=torch.tensor([[*prompt, *written]]), use_cache=False).logits[0]
    return logits[len(prompt) - 1 :].double()


def next_distribution(
    model: Any,
    regular: Sequence[int],
    counters: Sequence[Sequence[int]],
    written: Sequence[int],
    decay: float,
    top_k: int | None,
    top_p: float | None,
    eos: Sequence[int],
) -> dict[int, float]:
    """Return the probability of each token that may follow `written`.

    `regular` and `counters` are token ids of the prompts; `eos` the tokens that are never written.
    """
    logits = torch.stack([logits_after(model, prompt, written)[-1] for prompt in (regular, *counters)])
    return distribution(logits, decay, top_k, top_p, eos)


def distribution(
    logits: torch.Tensor, decay: float, top_k: int | None, top_p: float | None, eos: Sequence[int]
) -> dict[int, float]:
    """Return the probability of each token, from the logits after each prompt.

    `logits` are in double precision, shape (prompts, vocabulary), the regular prompt's first.
    """
    p, *others = logits.index_fill(1, torch.tensor(eos, dtype=torch.long), -math.inf).softmax(-1)
    q = torch.zeros_like(p)
    for other in others:
        q = torch.maximum(q, other)
    delta = p - q
    penalised = p * torch.exp(decay * delta).clamp(min=SMALLEST_FACTOR)
    weights = torch.where(delta < 0, penalised, p)
    scores = torch.log(weights / weights.sum())[None]
    ids = torch.zeros(1, 1, dtype=torch.long)
    if top_k is not None:
        scores = TopKLogitsWarper(top_k)(ids, scores)
    if top_p is not None:
        scores = TopPLogitsWarper(top_p)(ids, scores)
    return {token: chance for token, chance in enumerate(scores.softmax(-1)[0].tolist()) if chance > 0}
