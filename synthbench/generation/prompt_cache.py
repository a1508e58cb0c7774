"""Cache the keys and values of prompts: each prompt is read once, a label's common prefix once for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from synthbench.generation.decoding import Network, rounded

if TYPE_CHECKING:
    import torch

    from synthbench.generation.kv_cache import KeyValues


@dataclass
class _Prefix:
    """The common prefix of one label's prompts so far, with its keys and values (one sequence)."""

    tokens: list[int]
    key_values: "KeyValues"


class PromptCache:
    """Keys and values of prompts without their last token, which the first decoding step reads."""

    def __init__(self, network: Network, num_prompts: int, device: "torch.device") -> None:
        self._network = network
        self._device = device
        self.key_values = network.key_values(num_prompts, 0)
        self._free = list(range(num_prompts))
        self._prefixes: dict[str, _Prefix] = {}
        self._room: KeyValues | None = None

    @property
    def num_free(self) -> int:
        """How many more prompts fit."""
        return len(self._free)

    def release(self, lines: Sequence[int]) -> None:
        """Free the rows of prompts."""
        self._free.extend(lines)

    def read(self, prompts: Sequence[Mapping[str, Sequence[int]]]) -> list[dict[str, int]]:
        """Read the prompts of several inputs (label -> tokens); return each one's rows (label -> row)."""
        flat = [(label, list(tokens[:-1])) for each in prompts for label, tokens in each.items()]
        for label, tokens in flat:
            self._shorten(label, tokens)
        lines = [self._free.pop() for _ in flat]
        self._fill(flat, lines)
        assigned = iter(lines)
        return [{label: next(assigned) for label in each} for each in prompts]

    def _shorten(self, label: str, tokens: list[int]) -> None:
        """Cut the label's prefix to what it shares with one more prompt; the first prompt is read in full."""
        known = self._prefixes.get(label)
        if known is None:
            key_values = self._network.key_values(1, len(tokens))
            self._read(key_values, [tokens], [0])
            self._prefixes[label] = _Prefix(tokens, key_values)
            return
        pairs = zip(known.tokens, tokens, strict=False)
        num_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        known.tokens = known.tokens[:num_shared]

    def _fill(self, flat: Sequence[tuple[str, list[int]]], lines: Sequence[int]) -> None:
        length = rounded(max(len(tokens) for _, tokens in flat))
        read = self._room_for(len(flat), length)
        starts = []
        for index, (label, _) in enumerate(flat):
            prefix = self._prefixes[label]
            starts.append(len(prefix.tokens))
            read.copy_from(prefix.key_values.until(starts[-1]), [index], [0])
        self._read(read, [tokens[start:] for (_, tokens), start in zip(flat, starts, strict=True)], starts)
        if self.key_values.length < length:
            self.key_values = self.key_values.with_length(length)
        self.key_values.copy_from(read, lines, range(len(flat)))

    def _room_for(self, num_prompts: int, length: int) -> "KeyValues":
        """Return memory to read prompts into, reused if large enough; it need not be blank."""
        if self._room is None or self._room.num_sequences < num_prompts or self._room.length < length:
            self._room = self._network.key_values(num_prompts, length)
        return self._room.first(num_prompts)

    def _read(self, cache: "KeyValues", rows: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        import torch

        longest = max(map(len, rows))
        if not longest:
            return
        tokens = torch.zeros((len(rows), longest), dtype=torch.long)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = torch.tensor(row, dtype=torch.long)
        # Sequences start at different positions, so the padding of the last one must fit, too.
        if cache.length < max(starts) + longest:
            cache.tensor = cache.with_length(rounded(max(starts) + longest)).tensor
        where = torch.tensor(starts, device=self._device)
        self._network.read(cache, tokens.to(self._device), where, cache.length)
