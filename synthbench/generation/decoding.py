"""Run a causal language model over a batch of sequences at different positions."""

from typing import TYPE_CHECKING, Any, TypeVar

from synthbench.base.errors import UserError, in_one_line
from synthbench.generation.head import TOLERANCE, Head
from synthbench.generation.language_model import CausalModel
from synthbench.generation.memory import ROUNDING, bytes_per_sequence, is_exhausted, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor
    from transformers import Cache

    from synthbench.generation.kv_cache import KeyValues

Result = TypeVar("Result")
RECORDED_ROUNDING = 64
"""Widths of recorded steps that follow a mask are multiples of this: each width needs a CUDA graph."""


class Network:
    """A causal language model with its keys and values in our own cache.

    Raises UserError if the model fails with this cache, or if the cache changes its logits: some
    architectures have another kind of state or positions. `say` reports that CUDA graphs fail on this GPU.
    """

    def __init__(self, causal: CausalModel, say: "Callable[[str], None]" = lambda message: None) -> None:
        self._causal = causal
        self._backbone = causal.model.base_model
        self._head = Head(causal)
        self._is_recorded = causal.device.type == "cuda"
        self._step: Callable[[Sequence[Tensor], Tensor, Tensor, int], Tensor] = self._plain_step
        self._shape = self._probed(self._layers)
        self.reads_own_lengths = self._can_read_own_lengths()
        """Whether each sequence attends to its own keys only; otherwise all read as many as the longest."""
        self._probed(self._check)
        if self._is_recorded:
            from synthbench.generation.cuda_graphs import ReplayedSteps

            self._step = ReplayedSteps(self._plain_step, say)

    def key_values(self, num_sequences: int, length: int) -> "KeyValues":
        """Return empty keys and values for sequences of up to `length` tokens."""
        from synthbench.generation.kv_cache import KeyValues

        num_layers, heads, size = self._shape
        shape = (2, num_sequences, heads, rounded(length), size)
        return KeyValues.empty(num_layers, shape, self._causal.model.dtype, self._causal.device)

    def bytes_per_sequence(self, length: int) -> int:
        """Return the bytes for one more sequence of a batch, with prefetched prompts and logits."""
        num_layers, heads, size = self._shape
        of_token = 2 * num_layers * heads * size * self._causal.model.dtype.itemsize
        return bytes_per_sequence(of_token, num_layers, length, self._head.size)

    def read(self, cache: "KeyValues", tokens: "Tensor", starts: "Tensor", width: int) -> None:
        """Run the model over `tokens` (sequences, n), and write their keys and values into `cache`.

        `starts` has the position of each sequence's first token. `cache` has as many sequences as `tokens`;
        none is longer than `width` afterwards. Later tokens overwrite padding.
        """
        from synthbench.generation.kv_cache import as_cache

        filled = as_cache(cache.layers, starts, tokens.shape[1], width)
        self._backbone(**self._inputs(filled, tokens, starts, width))

    def next_logits(self, cache: "KeyValues", tokens: "Tensor", starts: "Tensor", longest: int) -> "Tensor":
        """Read one more token of the first sequences of `cache`; return fp32 logits of their next tokens.

        `tokens` has the shape (sequences, 1), and `starts` has their positions. No sequence is longer than
        `longest` afterwards. The logits (sequences, vocabulary) are valid until the next call, and the caller
        may overwrite them.
        """
        cache = cache.part(0, len(tokens))
        width = min(rounded(longest, RECORDED_ROUNDING if self._is_recorded else ROUNDING), cache.length)
        return self._step(cache.layers, tokens, starts, cache.length if self.reads_own_lengths else width)

    def padded(self, num_sequences: int, most: int) -> int:
        """Return the batch size to pad a step to: on a GPU, `most` halved as often as all sequences fit.

        So a GPU has few sizes, since each needs a CUDA graph. Other devices: `num_sequences`, unpadded.
        """
        if not self._is_recorded:
            return num_sequences
        while most // 2 >= num_sequences:
            most //= 2
        return most

    def _plain_step(
        self, layers: "Sequence[Tensor]", tokens: "Tensor", starts: "Tensor", width: int
    ) -> "Tensor":
        import torch

        from synthbench.generation.attention import attending
        from synthbench.generation.kv_cache import as_cache

        inputs = self._inputs(as_cache(layers, starts, 1, width), tokens, starts, width)
        with attending((starts + 1).to(torch.int32) if self.reads_own_lengths else None):
            if self._head.is_plain:
                return self._head(self._backbone(**inputs).last_hidden_state[:, -1])
            return self._head.kept(self._causal.model(**inputs, logits_to_keep=1).logits[:, -1])

    def _inputs(self, cache: "Cache", tokens: "Tensor", starts: "Tensor", width: int) -> dict[str, Any]:
        import torch

        positions = starts[:, None] + torch.arange(tokens.shape[1], device=starts.device)
        mask = (torch.arange(width, device=starts.device) <= positions[..., None])[:, None]
        if self._causal.model.config._attn_implementation == "eager":
            lowest = torch.finfo(self._causal.model.dtype).min
            mask = torch.where(mask, 0.0, lowest).to(self._causal.model.dtype)
        return {
            "input_ids": tokens,
            "position_ids": positions,
            "attention_mask": mask,
            "past_key_values": cache,
            "use_cache": True,
        }

    def _probed(self, probe: "Callable[[], Result]") -> "Result":
        """Return the probe's result; raises UserError for any error of the model but exhausted memory."""
        try:
            return probe()
        except UserError:
            raise
        except Exception as error:
            if is_exhausted(error):
                raise
            why = f"it rejects prepared keys and values: {in_one_line(error)}"
            raise UserError(self._unfit(why)) from error

    def _layers(self) -> tuple[int, int, int]:
        """Return the model's number of layers, number of key heads, and size of a head.

        Raises UserError if layers differ in these.
        """
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
        """Compare decoding with one call of the model; raises UserError if the logits differ.

        The test decodes two sequences that are at different positions.
        """
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
            logits = self.next_logits(cache, ids[0, positions][:, None], positions, 8)
        spread = expected.std()
        if (logits - expected).abs().max() > TOLERANCE[str(self._causal.model.dtype)] * spread:
            raise UserError(self._unfit("its logits change when sequences are at different positions"))

    def _can_read_own_lengths(self) -> bool:
        """Return whether the model uses torch's attention and attention by lengths works on this device."""
        from synthbench.generation.attention import reads_own_lengths

        model, (_, key_heads, size) = self._causal.model, self._shape
        heads = getattr(model.config, "num_attention_heads", None)
        is_ours = model.config._attn_implementation == "sdpa" and heads == key_heads
        return is_ours and reads_own_lengths(self._causal.device, model.dtype, size)

    def _unfit(self, why: str) -> str:
        return f"a model of type '{self._causal.model.config.model_type}' is not supported: {why}"
