"""Run a causal language model over a batch of sequences that are at different positions."""

from typing import TYPE_CHECKING, Any, TypeVar

from synthbench.errors import UserError, in_one_line
from synthbench.generation.language_model import CausalModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from synthbench.generation.kv_cache import KeyValues

Result = TypeVar("Result")
ROUNDING = 16
"""Lengths are rounded up to a multiple of this: caches rarely grow, and CUDA graphs are reused more."""
COLUMNS = 512
"""On a CPU, logits are computed this many columns at a time, so that the operands stay in its cache."""
TOLERANCE = {"torch.float32": 1e-3, "torch.bfloat16": 0.1, "torch.float16": 0.02}
"""Largest deviation from the model's own logits, as a share of their standard deviation."""


def rounded(length: int) -> int:
    """Round a length up to a multiple of ROUNDING."""
    return -(-length // ROUNDING) * ROUNDING


class Network:
    """A causal language model that works on our own keys and values.

    Raises UserError if its logits differ from the model's own: its architecture then keeps another kind of
    state or positions.
    """

    def __init__(self, causal: CausalModel) -> None:
        self._causal = causal
        self._backbone = causal.model.base_model
        self._head = Head(causal)
        self._is_recorded = causal.device.type == "cuda"
        self._step: Callable[[Tensor, Tensor, Tensor, int], Tensor] = self._plain_step
        self._shape = self._probed(self._layers)
        self._probed(self._check)
        if self._is_recorded:
            from synthbench.generation.cuda_graphs import ReplayedSteps

            self._step = ReplayedSteps(self._plain_step)

    def key_values(self, num_sequences: int, length: int) -> "KeyValues":
        """Return empty keys and values for sequences of up to `length` tokens."""
        import torch

        from synthbench.generation.kv_cache import KeyValues

        layers, heads, size = self._shape
        shape = (layers, 2, num_sequences, heads, rounded(length), size)
        return KeyValues(torch.zeros(shape, dtype=self._causal.model.dtype, device=self._causal.device))

    def read(self, cache: "KeyValues", tokens: "Tensor", starts: "Tensor", width: int) -> None:
        """Read tokens (sequences, n) into `cache`, each sequence's first at its position in `starts`.

        `cache` has as many sequences; none exceeds `width` afterwards. Padding is read, too, and overwritten
        by later tokens.
        """
        self._backbone(**self._inputs(cache.tensor, tokens, starts, width))

    def next_logits(self, cache: "KeyValues", tokens: "Tensor", starts: "Tensor", width: int) -> "Tensor":
        """Read one more token of each sequence, tokens (sequences, 1); return the next token's fp32 logits.

        Shape (sequences, vocabulary); may be overwritten; valid until the next call.
        """
        return self._step(cache.tensor, tokens, starts, width)

    def padded(self, num_sequences: int, most: int) -> int:
        """Return the batch size for a step: on a GPU one of few, since each gets a CUDA graph."""
        if not self._is_recorded:
            return num_sequences
        while most // 2 >= num_sequences:
            most //= 2
        return most

    def _plain_step(self, key_values: "Tensor", tokens: "Tensor", starts: "Tensor", width: int) -> "Tensor":
        inputs = self._inputs(key_values, tokens, starts, width)
        if self._head.is_plain:
            return self._head(self._backbone(**inputs).last_hidden_state[:, -1])
        logits: Tensor = self._causal.model(**inputs, logits_to_keep=1).logits[:, -1].float()
        return logits

    def _inputs(self, key_values: "Tensor", tokens: "Tensor", starts: "Tensor", width: int) -> dict[str, Any]:
        import torch

        from synthbench.generation.kv_cache import as_cache

        positions = starts[:, None] + torch.arange(tokens.shape[1], device=starts.device)
        mask = (torch.arange(width, device=starts.device) <= positions[..., None])[:, None]
        if self._causal.model.config._attn_implementation == "eager":
            lowest = torch.finfo(self._causal.model.dtype).min
            mask = torch.where(mask, 0.0, lowest).to(self._causal.model.dtype)
        return {
            "input_ids": tokens,
            "position_ids": positions,
            "attention_mask": mask,
            "past_key_values": as_cache(key_values, positions, width),
            "use_cache": True,
        }

    def _probed(self, probe: "Callable[[], Result]") -> "Result":
        """Return the probe's result; any error of the model's code means that the model is unsuitable."""
        import torch

        try:
            return probe()
        except (UserError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            why = f"it rejects prepared keys and values: {in_one_line(error)}"
            raise UserError(self._unfit(why)) from error

    def _layers(self) -> tuple[int, int, int]:
        """Return the model's numbers of layers and key heads, and the size of a head."""
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()
        token = torch.zeros((1, 1), dtype=torch.long, device=self._causal.device)
        self._backbone(input_ids=token, past_key_values=cache, use_cache=True)
        kept = [getattr(layer, name, None) for layer in cache.layers for name in ("keys", "values")]
        shapes = {None if tensor is None else tuple(tensor.shape) for tensor in kept}
        if len(shapes) != 1 or None in shapes:
            raise UserError(self._unfit("its layers keep keys and values of different shapes"))
        shape = shapes.pop()
        assert shape is not None
        _, heads, _, size = shape
        return len(cache.layers), heads, size

    def _check(self) -> None:
        """Compare the logits of two sequences at different positions with the model's own."""
        import torch

        device, vocabulary = self._causal.device, self._head.size
        ids = torch.arange(7, device=device)[None] * 7 % vocabulary
        expected = self._causal.model(input_ids=ids).logits[0, -1].float()
        cache = self.key_values(2, 8)
        read, starts = torch.cat([ids[:, :6], ids[:, :6]]), torch.zeros(2, dtype=torch.long, device=device)
        self.read(cache, read, starts, rounded(8))
        # The second sequence goes back two tokens and reads them again.
        for back in (2, 1, 0):
            positions = torch.tensor([6, 6 - back], device=device)
            logits = self.next_logits(cache, ids[0, positions][:, None], positions, rounded(8))
        spread = expected.std()
        if (logits - expected).abs().max() > TOLERANCE[str(self._causal.model.dtype)] * spread:
            raise UserError(self._unfit("its logits change when sequences are at different positions"))

    def _unfit(self, why: str) -> str:
        return f"a model of type '{self._causal.model.config.model_type}' is not supported: {why}"


class Head:
    """Maps hidden states to fp32 logits in one buffer, since allocating that much memory is slow.

    `is_plain`: the model's own logits are exactly this product; otherwise the whole model has to run.
    """

    def __init__(self, causal: CausalModel) -> None:
        import torch

        weight = causal.model.get_output_embeddings().weight.detach()
        self.size = int(weight.shape[0])
        self._parts = weight.float().split(COLUMNS) if weight.is_cpu else (weight,)
        self._buffer = torch.empty((0, self.size), device=causal.device)
        self.is_plain = self._agrees(causal)

    def __call__(self, hidden: "Tensor") -> "Tensor":
        """Return logits (sequences, vocabulary) of hidden states (sequences, width), until the next call."""
        import torch

        if len(self._buffer) < len(hidden):
            self._buffer = torch.empty((len(hidden), self.size), device=hidden.device)
        logits = self._buffer[: len(hidden)]
        if not hidden.is_cpu and hidden.dtype != torch.float32:
            return torch.mm(hidden, self._parts[0].T, torch.float32, out=logits)
        columns = logits.split([len(part) for part in self._parts], dim=1)  # type: ignore[no-untyped-call]
        for part, out in zip(self._parts, columns, strict=True):
            torch.mm(hidden.float(), part.T, out=out)
        return logits

    def _agrees(self, causal: CausalModel) -> bool:
        import torch

        ids = torch.arange(4, device=causal.device)[None]
        own = causal.model(input_ids=ids).logits[0].float()
        ours = self(causal.model.base_model(input_ids=ids).last_hidden_state[0])
        return bool((own - ours).abs().max() <= TOLERANCE[str(causal.model.dtype)] * own.std())
