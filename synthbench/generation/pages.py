"""Keys and values in pages, which torch's FlexAttention reads where they lie.

A sequence takes as many pages as its prompt and text need; it moves by a change of the page table alone.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, FlexKernelOptions, flex_attention
from transformers.cache_utils import Cache

from synthbench.generation.attention import Attention
from synthbench.generation.kv_cache import CacheLayer, KeyValues

PAGE = 16
"""Positions of a page."""
_QUERY_BLOCK = 128
"""The queries in one of FlexAttention's blocks; a sequence has one query in a step, so one block."""
_ON_A_GPU: FlexKernelOptions = {"BLOCK_M": 16, "BLOCK_N": PAGE}
"""What a GPU's kernel multiplies at once, in queries and positions; torch would take more than a page."""


class PagedKeyValues:
    """Keys and values of several sequences: for each layer (2, 1, heads, positions of all pages, size).

    Page 0 belongs to no sequence: it takes what is written beyond a sequence's pages.
    """

    def __init__(self, num_sequences: int, like: KeyValues) -> None:
        self.layers = [
            layer[:, :1, :, :0].new_zeros((2, 1, layer.shape[2], PAGE, layer.shape[4]))
            for layer in like.layers
        ]
        self._pages: list[list[int]] = [[] for _ in range(num_sequences)]
        self._free: list[int] = []
        self._write_table()

    @property
    def num_pages(self) -> int:
        """The number of pages in memory."""
        return int(self.layers[0].shape[3]) // PAGE

    def make_room(self, sequences: Sequence[int], lengths: Sequence[int]) -> None:
        """Give each of these sequences new pages for its length; the content of its former pages is lost."""
        for sequence in sequences:
            self._free += self._pages[sequence]
        needed = [-(-length // PAGE) for length in lengths]
        if (missing := sum(needed) - len(self._free)) > 0:
            self._grow(missing)
        for sequence, number in zip(sequences, needed, strict=True):
            self._pages[sequence] = [self._free.pop() for _ in range(number)]
        self._write_table()

    def copy_from(self, other: KeyValues, targets: Tensor, origins: Tensor, length: int) -> None:
        """Copy the first `length` positions of sequences `origins` of `other` into sequences `targets`."""
        positions = torch.arange(length, device=targets.device)
        slots = self._slots(targets, positions.expand(len(targets), -1))
        for ours, theirs in zip(self.layers, other.layers, strict=True):
            ours[:, 0, :, slots] = theirs[:, origins, :, :length].transpose(1, 2)

    def move(self, targets: NDArray[Any], origins: NDArray[Any], length: int) -> None:
        """Exchange the pages of sequences `origins` and `targets`, which have no sequence in common."""
        for target, origin in zip(targets.tolist(), origins.tolist(), strict=True):
            self._pages[target], self._pages[origin] = self._pages[origin], self._pages[target]
        self._write_table()

    def as_cache(self, starts: Tensor) -> Cache:
        """Return transformers' cache; each sequence's next token is at its position in `starts`."""
        slots = self._slots(torch.arange(len(starts), device=starts.device), starts[:, None])
        first = torch.zeros_like(slots)
        width = self.num_pages * PAGE
        return Cache(layers=[CacheLayer(keys, values, first, slots, width) for keys, values in self.layers])

    def attention(self, starts: Tensor) -> Attention:
        """Return the attention of sequence i's query to its positions up to `starts[i]`."""
        owners = self._owners
        # torch 2.13 builds no kernel for a CPU if the mask looks a sequence up, so each page has its number.
        num_read = starts[owners.clamp(0, len(starts) - 1)] + 1 - self._numbers * PAGE

        def is_read(sequence: Tensor, _head: Tensor, _query: Tensor, slot: Tensor) -> Tensor:
            page = slot // PAGE
            return (owners[page] == sequence) & (slot % PAGE < num_read[page])

        blocks = BlockMask.from_kv_blocks(
            (starts // PAGE + 1).to(torch.int32)[:, None, None],
            self._table[: len(starts), None, None],
            BLOCK_SIZE=(_QUERY_BLOCK, PAGE),
            mask_mod=is_read,
            seq_lengths=(1, self.num_pages * PAGE),
            compute_q_blocks=False,
        )

        def attended(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
            is_grouped = query.shape[1] != key.shape[1]
            found = _compiled()(
                query,
                key,
                value,
                block_mask=blocks,
                scale=scale,
                enable_gqa=is_grouped,
                kernel_options=_ON_A_GPU if query.is_cuda else None,
            )
            return cast("Tensor", found).transpose(1, 2)

        return attended

    def _slots(self, sequences: Tensor, positions: Tensor) -> Tensor:
        """Return where in the pages the positions (sequences, n) of these sequences lie."""
        pages = self._table[sequences[:, None], positions // PAGE]
        return pages.long() * PAGE + positions % PAGE

    def _grow(self, num_pages: int) -> None:
        self._free += range(self.num_pages, self.num_pages + num_pages)
        for index, layer in enumerate(self.layers):
            _, _, heads, _, size = layer.shape
            self.layers[index] = torch.cat([layer, layer.new_zeros((2, 1, heads, num_pages * PAGE, size))], 3)

    def _write_table(self) -> None:
        """Write the table of each sequence's pages, and each page's sequence and number there."""
        # FlexAttention asks for a column for each page.
        table = np.zeros((len(self._pages), self.num_pages), dtype=np.int32)
        owners, numbers = np.full(self.num_pages, -1), np.zeros(self.num_pages, dtype=np.int64)
        counts = list(map(len, self._pages))
        pages = np.fromiter(chain.from_iterable(self._pages), dtype=np.int64)
        owners[pages] = np.repeat(np.arange(len(counts)), counts)
        numbers[pages] = np.arange(len(pages)) - np.repeat(np.cumsum(counts) - counts, counts)
        table[owners[pages], numbers[pages]] = pages
        device = self.layers[0].device
        self._table, self._owners, self._numbers = (
            torch.from_numpy(each).to(device) for each in (table, owners, numbers)
        )


@cache
def _compiled() -> Callable[..., Any]:
    return torch.compile(flex_attention, dynamic=True)
