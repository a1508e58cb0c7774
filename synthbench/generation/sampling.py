"""Draw the next token: self-debiasing, then top-k, then top-p; exact, but rarely sorts the vocabulary."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

SMALLEST_FACTOR = 0.01
"""The smallest debiasing factor; in the authors' code, not in the paper."""
BLOCK = 32
NUM_BLOCKS = 24
NUM_CANDIDATES = 1024


def uniforms(count: int, *of: object) -> "NDArray[np.float64]":
    """Return `count` numbers in [0, 1) that depend only on `of` (seed, input, label, attempt).

    Raw output of Philox, keyed by a hash; NumPy guarantees its stream.
    """
    from numpy.random import Philox

    digest = hashlib.sha256("\x1f".join(map(str, of)).encode()).digest()
    raw = Philox(key=int.from_bytes(digest[:16], "little")).random_raw(count)
    return (raw >> 11).astype("float64") * 2.0**-53


def draw(probabilities: "Tensor", uniforms: "Tensor") -> "Tensor":
    """Return, for each row, the first index at which the cumulative probability exceeds its random number.

    `probabilities` (fp64, shape (rows, n)) need not sum to 1; `uniforms` in [0, 1) have the shape (rows,).
    """
    summed = probabilities.cumsum(dim=-1)
    passed = summed > uniforms.unsqueeze(-1) * summed[:, -1:]
    return passed.int().argmax(dim=-1)


@dataclass(frozen=True)
class Sampling:
    """Sampling of tokens (DINO, arXiv 2104.07540, section 3; hyperparameters in section 4).

    `decay` is the paper's lambda; 0 is plain sampling. `top_k` or `top_p` None: not applied.
    """

    decay: float
    top_k: int | None
    top_p: float | None
    max_new_tokens: int


class Sampler:
    """Selects each row's candidates for the next token, with their probabilities.

    Let p be the distribution under the row's own prompt and q the elementwise maximum over its counter
    prompts. Where p < q, p is multiplied by max(exp(decay * (p - q)), 0.01); then p is renormalised, cut to
    the top k, and cut by top-p over the rest, as in transformers (the smallest set that holds top_p). The
    tokens `never` have probability 0 from the start.
    """

    def __init__(self, sampling: Sampling, never: tuple[int, ...] = ()) -> None:
        self.sampling = sampling
        self._never = never
        self._never_on: dict[torch.device, Tensor] = {}

    def candidates(
        self, logits: "Tensor", rows: "Tensor", counter_rows: "Tensor"
    ) -> tuple["Tensor", "Tensor"]:
        """Return the candidates for the next token, most probable first, and their probabilities.

        `logits` (fp32, overwritten) has the shape (sequences, vocabulary). `rows`, of shape (rows,), has the
        index in `logits` of each row's own prompt; `counter_rows`, of shape (rows, counters), has the indices
        of its counter prompts. A row with fewer counter prompts repeats its own index, which changes nothing.
        Both results have the shape (rows, k); each row's probabilities sum to 1 and are 0 for excluded
        tokens.
        """
        import torch

        if logits.device not in self._never_on:
            self._never_on[logits.device] = torch.tensor(self._never, dtype=torch.long, device=logits.device)
        logits.index_fill_(1, self._never_on[logits.device], -torch.inf)
        probabilities = torch.softmax(logits, dim=-1, out=logits) if logits.is_cpu else logits.softmax(dim=-1)
        if self.sampling.top_k is None:
            tokens, weights = self._most_likely(probabilities, rows, counter_rows)
        else:
            tokens, weights = self._top_k(probabilities, rows, counter_rows, self.sampling.top_k)
        return tokens, self._nucleus(weights)

    def choose(self, tokens: "Tensor", probabilities: "Tensor", uniforms: "Tensor") -> "Tensor":
        """Return one token for each row, drawn with the row's number in `uniforms` (fp64).

        The result is on the device of `uniforms`.
        """
        tokens, probabilities = tokens.to(uniforms.device), probabilities.to(uniforms.device)
        return tokens.gather(1, draw(probabilities.double(), uniforms).unsqueeze(1)).squeeze(1)

    def _top_k(
        self, probabilities: "Tensor", rows: "Tensor", counter_rows: "Tensor", k: int
    ) -> tuple["Tensor", "Tensor"]:
        """Return the top k tokens after debiasing, and their weights, largest first.

        A CPU first searches the blocks of 32 tokens with the largest probabilities. Debiasing only lowers
        weights. So if the k-th weight is at least the largest probability outside these blocks, the top k are
        exact; other rows are searched in full.
        """
        import torch

        num_blocks = probabilities.shape[1] // BLOCK
        if not probabilities.is_cpu or num_blocks <= NUM_BLOCKS or k > NUM_BLOCKS * BLOCK:
            return self._heaviest(self._debiased(probabilities, rows, counter_rows), k)
        blocked = probabilities[:, : num_blocks * BLOCK].view(len(probabilities), num_blocks, BLOCK)
        best, blocks = blocked.amax(dim=-1)[rows].topk(NUM_BLOCKS + 1, dim=-1)
        inside = torch.arange(BLOCK)
        candidates = (blocks[:, :NUM_BLOCKS, None] * BLOCK + inside).flatten(1)
        tail = torch.arange(num_blocks * BLOCK, probabilities.shape[1]).expand(len(rows), -1)
        candidates = torch.cat([candidates, tail], dim=1)
        weights = self._debiased(probabilities, rows, counter_rows, candidates)
        order, kept = self._heaviest(weights, k)
        tokens = candidates.gather(1, order)
        unsure = (kept[:, -1] < best[:, -1]).nonzero().squeeze(1)
        if len(unsure):
            in_full = self._debiased(probabilities, rows[unsure], counter_rows[unsure])
            tokens[unsure], kept[unsure] = self._heaviest(in_full, k)
        return tokens, kept

    def _most_likely(
        self, probabilities: "Tensor", rows: "Tensor", counter_rows: "Tensor"
    ) -> tuple["Tensor", "Tensor"]:
        """Return tokens and their probabilities after debiasing, largest first.

        They are the NUM_CANDIDATES most probable if these reach top_p in every row, else all.
        """
        weights = self._debiased(probabilities, rows, counter_rows)
        weights /= weights.sum(dim=-1, keepdim=True)
        top_p, vocabulary = self.sampling.top_p, weights.shape[1]
        tokens, heaviest = self._heaviest(weights, min(NUM_CANDIDATES, vocabulary))
        if top_p is not None and bool((heaviest.sum(dim=-1) >= top_p).all()):
            return tokens, heaviest
        return self._heaviest(weights, vocabulary)

    def _debiased(
        self,
        probabilities: "Tensor",
        rows: "Tensor",
        counter_rows: "Tensor",
        tokens: "Tensor | None" = None,
    ) -> "Tensor":
        """Return the debiased weights of `tokens` (None: of the vocabulary), not renormalised.

        DINO section 3: delta = p - q, weight = p * alpha, alpha = exp(decay * delta) if delta < 0, else 1.
        As in the authors' code, alpha is at least 0.01.
        """
        import torch

        def of(lines: "Tensor") -> "Tensor":
            return probabilities[lines] if tokens is None else probabilities[lines[:, None], tokens]

        regular = of(rows)
        if not self.sampling.decay or not counter_rows.shape[1]:
            return regular
        # q: the elementwise maximum over the counterlabels.
        countered = of(counter_rows[:, 0])
        for column in counter_rows.T[1:]:
            countered = torch.maximum(countered, of(column))
        factor = (regular - countered).clamp_(max=0.0).mul_(self.sampling.decay).exp_()
        return regular * factor.clamp_(min=SMALLEST_FACTOR)

    @staticmethod
    def _heaviest(weights: "Tensor", k: int) -> tuple["Tensor", "Tensor"]:
        """Return indices and values of the k largest weights, descending; all if there are fewer."""
        kept, tokens = weights.topk(min(k, weights.shape[1]), dim=-1)
        return tokens, kept

    def _nucleus(self, weights: "Tensor") -> "Tensor":
        """Return descending weights with 0 after the smallest set that holds top_p; renormalised.

        With top_k, they are renormalised first; without, they are already normalised over the vocabulary.
        """
        if self.sampling.top_k is not None:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        if self.sampling.top_p is not None:
            before = weights.cumsum(dim=-1) - weights
            weights = weights.masked_fill(before >= self.sampling.top_p, 0.0)
        return weights / weights.sum(dim=-1, keepdim=True)
