"""The KV cache: keys and values of several sequences, and its adapter for transformers' models."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from synthbench.generation.memory import rounded


class KeyValues:
    """Keys and values of several sequences: a tensor (2, sequences, heads, length, head size) per layer.

    Each sequence fills the beginning of its row; positions after its end are never attended to. Layers are
    tensors of their own, so that copying and growing need memory for one more layer, not for all. On a GPU
    a position's heads are stored together, as attention by lengths reads them.
    """

    def __init__(self, layers: list[Tensor]) -> None:
        self.layers = layers

    @classmethod
    def empty(
        cls, num_layers: int, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> "KeyValues":
        """Return layers of zeros, each of this shape."""
        return cls([_memory(shape, dtype, device).zero_() for _ in range(num_layers)])

    @property
    def num_sequences(self) -> int:
        """The number of sequences."""
        return int(self.layers[0].shape[1])

    @property
    def length(self) -> int:
        """The maximum sequence length."""
        return int(self.layers[0].shape[3])

    def part(self, start: int, end: int) -> "KeyValues":
        """Return the sequences from `start` to before `end`, without a copy."""
        return KeyValues([layer[:, start:end] for layer in self.layers])

    def grow(self, length: int) -> None:
        """Make room for longer sequences, layer by layer."""
        for index, layer in enumerate(self.layers):
            _, _, _, before, size = layer.shape
            grown = _memory((*layer.shape[:3], length, size), layer.dtype, layer.device)
            grown[..., :before, :] = layer
            grown[..., before:, :] = 0
            self.layers[index] = grown

    def make_room(self, longest: int) -> None:
        """Make room for sequences of up to this length."""
        if self.length < longest:
            self.grow(rounded(longest))

    def copy_from(self, other: "KeyValues", targets: Tensor, origins: Tensor, length: int) -> None:
        """Copy the first `length` positions of the sequences `origins` of `other` to our sequences `targets`.

        `other` may be this object: all origins of a layer are read before any target is written.
        """
        for ours, theirs in zip(self.layers, other.layers, strict=True):
            ours[:, targets, :, :length] = theirs[:, origins, :, :length]


def _memory(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    order = (0, 1, 3, 2, 4) if device.type == "cuda" else (0, 1, 2, 3, 4)
    return torch.empty_permuted(shape, order, dtype=dtype, device=device)


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer of a cache: writes at each sequence's positions; the first `width` can be attended to."""

    def __init__(self, keys: Tensor, values: Tensor, lines: Tensor, positions: Tensor, width: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._slots = (keys, values)
        self._positions = positions
        self._lines = lines
        self._width = width
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: the memory exists."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write states (sequences, heads, n, size); return keys and values of the first `width` positions."""
        for slots, states in zip(self._slots, (key_states, value_states), strict=True):
            slots[self._lines, :, self._positions] = states.transpose(1, 2)
        keys, values = self._slots
        return keys[:, :, : self._width], values[:, :, : self._width]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the width and offset 0; unused, since we pass the mask."""
        return self._width, 0

    def get_seq_length(self) -> int:
        """Return an upper bound of the lengths before this step; unused, since we pass positions."""
        return self._width - int(self._positions.shape[1])

    def get_max_length(self) -> int:
        """Return the allocated length."""
        return int(self._slots[0].shape[2])


def as_cache(layers: Sequence[Tensor], starts: Tensor, num_tokens: int, width: int) -> Cache:
    """Return a cache for transformers that reads and writes these layers (2, sequences, heads, length, size).

    Each sequence's next `num_tokens` tokens begin at its position in `starts`. Only its first `width`
    positions can be attended to.
    """
    positions = starts[:, None] + torch.arange(num_tokens, device=starts.device)
    lines = torch.arange(len(starts), device=starts.device)[:, None]
    return Cache(layers=[_Layer(keys, values, lines, positions, width) for keys, values in layers])
