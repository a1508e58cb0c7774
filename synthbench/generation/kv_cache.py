"""The KV cache: one tensor of keys and values, and its adapter for transformers' models."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class KeyValues:
    """Keys and values of several sequences: one tensor (layers, 2, sequences, heads, length, size of a head).

    Each sequence fills the beginning of its row; positions after its end are never attended to.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def num_sequences(self) -> int:
        """The number of sequences."""
        return int(self.tensor.shape[2])

    @property
    def length(self) -> int:
        """The longest sequence that fits."""
        return int(self.tensor.shape[4])

    def first(self, num_sequences: int) -> "KeyValues":
        """Return the first sequences, without a copy."""
        return KeyValues(self.tensor[:, :, :num_sequences])

    def until(self, length: int) -> "KeyValues":
        """Return the first `length` positions of all sequences, without a copy."""
        return KeyValues(self.tensor[..., :length, :])

    def with_length(self, length: int) -> "KeyValues":
        """Return a copy with room for longer sequences."""
        grown = self.tensor.new_zeros((*self.tensor.shape[:4], length, self.tensor.shape[5]))
        grown[..., : self.length, :] = self.tensor
        return KeyValues(grown)

    def copy_from(self, other: "KeyValues", targets: Sequence[int], origins: Sequence[int]) -> None:
        """Copy sequences `origins` of `other` into rows `targets`, cut to the length that fits."""
        if targets:
            length = min(self.length, other.length)
            self.tensor[:, :, list(targets), :, :length] = other.tensor[:, :, list(origins), :, :length]


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer: writes each sequence at its own positions; up to `width` can be attended to."""

    def __init__(self, keys: Tensor, values: Tensor, positions: Tensor, width: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._slots = (keys, values)
        self._positions = positions
        self._lines = torch.arange(len(positions), device=positions.device)[:, None]
        self._width = width
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: the memory exists."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write states (sequences, heads, n, size); return all that may be attended to."""
        for slots, states in zip(self._slots, (key_states, value_states), strict=True):
            slots[self._lines, :, self._positions] = states.transpose(1, 2)
        keys, values = self._slots
        return keys[:, :, : self._width], values[:, :, : self._width]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the width and no offset (unused, since we pass the mask)."""
        return self._width, 0

    def get_seq_length(self) -> int:
        """Return the longest length read so far (unused, since we pass positions)."""
        return self._width - int(self._positions.shape[1])

    def get_max_length(self) -> int:
        """Return the allocated length."""
        return int(self._slots[0].shape[2])


def as_cache(key_values: Tensor, positions: Tensor, width: int) -> Cache:
    """Return transformers' cache over (layers, 2, sequences, heads, length, size).

    `positions` (sequences, n) are those of the tokens that will be read.
    """
    return Cache(layers=[_Layer(keys, values, positions, width) for keys, values in key_values])
