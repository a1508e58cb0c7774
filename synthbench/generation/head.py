"""The output matrix of a language model: hidden states to fp32 logits."""

from typing import TYPE_CHECKING

from synthbench.generation.language_model import CausalModel
from synthbench.generation.memory import is_exhausted
from synthbench.models.precision import fast_products, onednn_is_faster

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = 512
"""With MKL, logits are computed in blocks of this many columns, so that operands stay in the CPU's cache."""
TOLERANCE = {"torch.float32": 1e-3, "torch.bfloat16": 0.1, "torch.float16": 0.02}
"""Largest deviation from the model's own logits, as a share of their standard deviation."""


class Head:
    """Maps hidden states to fp32 logits in a reused buffer, since allocating that much memory is slow.

    `is_plain`: a call gives the model's own logits, up to rounding. If not, run the whole model instead, and
    pass its logits to `kept`.
    """

    def __init__(self, causal: CausalModel) -> None:
        import torch

        weight = causal.model.get_output_embeddings().weight.detach()
        self.size = int(weight.shape[0])
        self._is_mixed = weight.dtype != torch.float32 and _multiplies_into_fp32(weight)
        if weight.is_cpu:
            # oneDNN divides a product better by itself.
            self._parts = weight.float().split(self.size if onednn_is_faster() else COLUMNS)
        else:
            self._parts = (weight if self._is_mixed else weight.float(),)
        self._buffer = torch.empty((0, self.size), device=causal.device)
        self.is_plain = self._agrees(causal)

    def __call__(self, hidden: "Tensor") -> "Tensor":
        """Return logits (sequences, vocabulary) of hidden states (sequences, width) in the reused buffer."""
        import torch

        logits = self._room(len(hidden))
        if self._is_mixed:
            return torch.mm(hidden, self._parts[0].T, torch.float32, out=logits)
        columns = logits.split([len(part) for part in self._parts], dim=1)  # type: ignore[no-untyped-call]
        with fast_products(hidden.device):
            for part, out in zip(self._parts, columns, strict=True):
                torch.mm(hidden.float(), part.T, out=out)
        return logits

    def kept(self, logits: "Tensor") -> "Tensor":
        """Return the model's own logits, copied into the fp32 buffer that all calls share."""
        return self._room(len(logits)).copy_(logits)

    def _room(self, num_sequences: int) -> "Tensor":
        import torch

        if len(self._buffer) < num_sequences:
            self._buffer = torch.empty((num_sequences, self.size), device=self._buffer.device)
        return self._buffer[:num_sequences]

    def _agrees(self, causal: CausalModel) -> bool:
        import torch

        ids = torch.arange(4, device=causal.device)[None]
        own = causal.model(input_ids=ids).logits[0].float()
        ours = self(causal.model.base_model(input_ids=ids).last_hidden_state[0])
        return bool((own - ours).abs().max() <= TOLERANCE[str(causal.model.dtype)] * own.std())


def _multiplies_into_fp32(weight: "Tensor") -> bool:
    """Return whether the device has a product of half-precision matrices with fp32 result.

    CPUs and MPS have none.
    """
    import torch

    if weight.is_cpu:
        return False
    try:
        torch.mm(weight[:1], weight[:1].T, torch.float32)
    except (RuntimeError, NotImplementedError) as error:
        if is_exhausted(error):
            raise
        return False
    return True
