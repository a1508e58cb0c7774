"""The rows being written, each with one sequence per regular and counter prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synthbench.generation.decoding import Network, rounded
from synthbench.generation.prompt_cache import PromptCache
from synthbench.generation.sampling import Sampler

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class Row:
    """A text being written: `prompts` are the tokens of its own prompt, then of its counter prompts.

    `origins` are their rows in the prompt cache; `uniforms` has one random number per step.
    """

    prompts: Sequence[Sequence[int]]
    origins: Sequence[int]
    uniforms: Sequence[float]
    tokens: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def is_spent(self) -> bool:
        """Whether no step is left."""
        return len(self.tokens) == len(self.uniforms)


class Batch:
    """Rows that advance one token per step; a row that leaves makes room for others at once.

    Before each step the sequences in use are moved to the front, so that no computation is wasted on gaps.
    """

    def __init__(
        self, network: Network, sampler: Sampler, num_sequences: int, device: "torch.device"
    ) -> None:
        self._network = network
        self._sampler = sampler
        self._device = device
        self._key_values = network.key_values(num_sequences, 0)
        self._occupants: list[Row | None] = [None] * num_sequences
        self.rows: list[Row] = []
        self._free = list(range(num_sequences))[::-1]

    @property
    def num_free(self) -> int:
        """How many sequences are free."""
        return len(self._free)

    def admit(self, rows: Sequence[Row], prompts: PromptCache) -> None:
        """Add rows; there must be room for all their sequences."""
        targets: list[int] = []
        origins: list[int] = []
        for row in rows:
            row.lines = [self._free.pop() for _ in row.prompts]
            for line in row.lines:
                self._occupants[line] = row
            targets += row.lines
            origins += row.origins
        longest = max((len(p) + len(row.uniforms) for row in rows for p in row.prompts), default=0)
        if self._key_values.length < longest:
            self._key_values = self._key_values.with_length(rounded(longest))
        self._key_values.copy_from(prompts.key_values, targets, origins)
        self.rows += rows

    def remove(self, leaving: Sequence[Row]) -> None:
        """Remove rows."""
        gone = set(map(id, leaving))
        self.rows = [row for row in self.rows if id(row) not in gone]
        for line in (line for row in leaving for line in row.lines):
            self._occupants[line] = None
            self._free.append(line)

    def step(self) -> None:
        """Append one token to every row."""
        import torch

        num_sequences = self._network.padded(self._close_gaps(), len(self._occupants))
        tokens, starts = [0] * num_sequences, [0] * num_sequences
        for row in self.rows:
            for line, prompt in zip(row.lines, row.prompts, strict=True):
                tokens[line] = row.tokens[-1] if row.tokens else prompt[-1]
                starts[line] = len(prompt) - 1 + len(row.tokens)
        logits = self._network.next_logits(
            self._key_values.first(num_sequences),
            torch.tensor(tokens, device=self._device)[:, None],
            torch.tensor(starts, device=self._device),
            rounded(max(starts) + 1),
        )
        most = max(len(row.lines) for row in self.rows)
        own = torch.tensor([row.lines[0] for row in self.rows], device=self._device)
        counters = [row.lines[1:] + row.lines[:1] * (most - len(row.lines)) for row in self.rows]
        among, probabilities = self._sampler.candidates(
            logits, own, torch.tensor(counters, dtype=torch.long, device=self._device)
        )
        drawn = torch.tensor([row.uniforms[len(row.tokens)] for row in self.rows], dtype=torch.float64)
        chosen = self._sampler.choose(among, probabilities, drawn.to(self._device))
        # Regular and counter prompts all continue with the token drawn under the debiased distribution.
        for row, token in zip(self.rows, chosen.tolist(), strict=True):
            row.tokens.append(token)

    def _close_gaps(self) -> int:
        """Move the last sequences into the gaps; return the number of sequences in use."""
        num_sequences = len(self._occupants) - len(self._free)
        gaps = sorted(line for line in self._free if line < num_sequences)
        beyond = [
            line for line in range(num_sequences, len(self._occupants)) if self._occupants[line] is not None
        ]
        self._key_values.copy_from(self._key_values, gaps, beyond)
        for gap, line in zip(gaps, beyond, strict=True):
            row = self._occupants[line]
            assert row is not None
            row.lines[row.lines.index(line)] = gap
            self._occupants[gap], self._occupants[line] = row, None
        self._free = list(range(num_sequences, len(self._occupants)))[::-1]
        return num_sequences
