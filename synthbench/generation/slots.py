"""Our keys and values in the shape in which transformers' models take them."""

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class SlotLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
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
    return Cache(layers=[SlotLayer(keys, values, positions, width) for keys, values in key_values])
