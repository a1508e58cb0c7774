"""Prefetch of prompts: each prompt is read once, and a label's common prefix once for all prompts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from synthbench.generation.decoding import Network
from synthbench.generation.memory import rounded, uploaded

if TYPE_CHECKING:
    import torch

    from synthbench.generation.kv_cache import KeyValues

PADDING_SHARE = 0.15
"""Share of padding above which prompts are read in a separate forward pass."""
SMALLEST_READ = {"cpu": 192, "cuda": 4096}
"""Minimum number of tokens in a forward pass, if there are as many: small passes are slow.

On a GPU, launching their kernels takes longer than running them.
"""


@dataclass
class _Prefix:
    """The common prefix of one label's prompts so far, with its keys and values (one sequence)."""

    tokens: list[int]
    key_values: "KeyValues"


class PromptCache:
    """Keys and values of the latest prompts without their last token: the first decoding step reads it."""

    def __init__(self, network: Network, device: "torch.device") -> None:
        self._network = network
        self._device = device
        self._prefixes: dict[str, _Prefix] = {}
        self.key_values = network.key_values(0, 0)

    def read(self, prompts: Sequence[Mapping[str, Sequence[int]]]) -> list[dict[str, int]]:
        """Read several inputs' prompts (label -> tokens); return their rows in `key_values` (label -> row).

        These prompts replace all earlier ones.
        """
        flat = [(label, list(tokens[:-1])) for each in prompts for label, tokens in each.items()]
        for label, tokens in flat:
            self._shorten(label, tokens)
        # Sorted by the length left to read, so that there is little padding.
        order = sorted(range(len(flat)), key=lambda index: self._num_left(*flat[index]), reverse=True)
        self._fill([flat[index] for index in order])
        rows = iter(sorted(range(len(flat)), key=order.__getitem__))
        return [{label: next(rows) for label in each} for each in prompts]

    def _num_left(self, label: str, tokens: Sequence[int]) -> int:
        return len(tokens) - len(self._prefixes[label].tokens)

    def _shorten(self, label: str, tokens: list[int]) -> None:
        """Cut the label's prefix to what it shares with this prompt; a first prompt is itself the prefix."""
        known = self._prefixes.get(label)
        if known is None:
            key_values = self._network.key_values(1, len(tokens))
            self._read(key_values, [tokens], [0])
            self._prefixes[label] = _Prefix(tokens, key_values)
            return
        pairs = zip(known.tokens, tokens, strict=False)
        num_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        known.tokens = known.tokens[:num_shared]

    def _fill(self, flat: Sequence[tuple[str, list[int]]]) -> None:
        """Read prompts into the first rows of `key_values`.

        `flat` has each prompt as (label, tokens), sorted by its length after the label's prefix, descending.
        """
        starts = [len(self._prefixes[label].tokens) for label, _ in flat]
        rows = [tokens[start:] for (_, tokens), start in zip(flat, starts, strict=True)]
        smallest = SMALLEST_READ.get(self._device.type, SMALLEST_READ["cuda"])
        passes = list(_passes([len(row) for row in rows], smallest))
        # Sequences start at different positions, so the padding of the last one must fit, too.
        self._make_room(len(flat), max(max(starts[first:end]) + len(rows[first]) for first, end in passes))
        for label in dict.fromkeys(label for label, _ in flat):
            self._copy_prefix(label, [index for index, (each, _) in enumerate(flat) if each == label])
        for first, end in passes:
            self._read(self.key_values.part(first, end), rows[first:end], starts[first:end])

    def _make_room(self, num_prompts: int, length: int) -> None:
        """Allocate memory for `num_prompts` prompts, or reuse the old memory if it is large enough."""
        if self.key_values.num_sequences < num_prompts or self.key_values.length < length:
            num_prompts = max(num_prompts, self.key_values.num_sequences)
            length = max(length, self.key_values.length)
            self.key_values = self._network.key_values(0, 0)
            self.key_values = self._network.key_values(num_prompts, length)

    def _copy_prefix(self, label: str, rows: Sequence[int]) -> None:
        prefix = self._prefixes[label]
        if prefix.tokens:
            targets, origins = uploaded(self._device, rows, [0] * len(rows))
            self.key_values.copy_from(prefix.key_values, targets, origins, len(prefix.tokens))

    def _read(self, cache: "KeyValues", rows: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        longest = max(map(len, rows))
        if not longest:
            return
        padded = [token for row in rows for token in (*row, *([0] * (longest - len(row))))]
        tokens, where = uploaded(self._device, padded, starts)
        self._network.read(cache, tokens.view(len(rows), longest), where, rounded(max(starts) + longest))


def _passes(lengths: Sequence[int], smallest: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the rows of each forward pass; `lengths` are descending.

    All passes but the last have at least `smallest` tokens, padding included.
    """
    first = 0
    while first < len(lengths):
        end, num_tokens = first, 0
        while end < len(lengths):
            num_tokens += lengths[end]
            end += 1
            size = lengths[first] * (end - first)
            if end < len(lengths) and size >= smallest:
                padding = 1 - (num_tokens + lengths[end]) / (lengths[first] * (end + 1 - first))
                if padding > PADDING_SHARE:
                    break
        yield first, end
        first = end
