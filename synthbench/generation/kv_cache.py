"""Keys and values of several sequences, in one tensor, and in the shape that transformers' models take."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class KeyValues:
    """Keys and values of several sequences: one tensor (layers, 2, sequences, heads, length, size of a head).

    Each sequence stands at the beginning of its line. What lies behind a sequence's end is never attended to.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def num_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.tensor.shape[2])

    @property
    def length(self) -> int:
        """The longest sequence that there is room for."""
        return int(self.tensor.shape[4])

    def first(self, num_sequences: int) -> "KeyValues":
        """Return the first sequences, without a copy."""
        return KeyValues(self.tensor[:, :, :num_sequences])

    def until(self, length: int) -> "KeyValues":
        """Return the beginning of all sequences, without a copy."""
        return KeyValues(self.tensor[..., :length, :])

    def with_length(self, length: int) -> "KeyValues":
        """Return a copy with room for longer sequences."""
        grown = self.tensor.new_zeros((*self.tensor.shape[:4], length, self.tensor.shape[5]))
        grown[..., : self.length, :] = self.tensor
        return KeyValues(grown)

    def copy_from(self, other: "KeyValues", targets: Sequence[int], origins: Sequence[int]) -> None:
        """Put sequences of `other` into the lines `targets`, cut to the room that there is."""
        if targets:
            length = min(self.length, other.length)
            self.tensor[:, :, list(targets), :, :length] = other.tensor[:, :, list(origins), :, :length]


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer: what is read goes to its sequence's own position; all up to `width` can be attended to."""

    def __init__(self, keys: Tensor, values: Tensor, positions: Tensor, width: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._slots = (keys, values)
        self._positions = positions
        self._lines = torch.arange(len(positions), device=positions.device)[:, None]
        self._width = width
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: there is room already."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Put (sequences, heads, n, size) where they belong; return all that may be attended to."""
        for slots, states in zip(self._slots, (key_states, value_states), strict=True):
            slots[self._lines, :, self._positions] = states.transpose(1, 2)
        keys, values = self._slots
        return keys[:, :, : self._width], values[:, :, : self._width]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the width and no offset; nobody asks, for the mask is given."""
        return self._width, 0

    def get_seq_length(self) -> int:
        """Return the most that has been read before; nobody needs it, for positions are given."""
        return self._width - int(self._positions.shape[1])

    def get_max_length(self) -> int:
        """Return the room that there is."""
        return int(self._slots[0].shape[2])


def as_cache(key_values: Tensor, positions: Tensor, width: int) -> Cache:
    """Return a cache over (layers, 2, sequences, heads, length, size), written to at `positions`.

    `positions` are those of the tokens that will be read, shape (sequences, n).
    """
    return Cache(layers=[_Layer(keys, values, positions, width) for keys, values in key_values])
