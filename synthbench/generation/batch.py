"""The batch of texts in progress: each row is one text, with a sequence for each of its prompts.

A text has its own prompt and, for self-debiasing, counter prompts: those of the labels that it must not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synthbench.generation.decoding import Network
from synthbench.generation.memory import uploaded
from synthbench.generation.prompt_cache import PromptCache
from synthbench.generation.sampling import Sampler

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


@dataclass(eq=False)
class WritingRow:
    """A text in progress: `prompts` are the tokens of its own prompt, then of its counter prompts.

    `uniforms` has one random number per step. `lines` are the indices of its sequences in the batch.
    """

    prompts: Sequence[Sequence[int]]
    uniforms: Sequence[float]
    tokens: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def is_spent(self) -> bool:
        """Whether the text has its maximum number of tokens."""
        return len(self.tokens) == len(self.uniforms)


class Batch:
    """Rows that advance one token per step; finished rows make room for others at once.

    Before each step the used sequences move to the front, so that no computation is wasted on gaps. Memory
    for `length` tokens per sequence is allocated at the start, and grows if a longer sequence comes.
    """

    def __init__(
        self,
        network: Network,
        sampler: Sampler,
        num_sequences: int,
        device: "torch.device",
        length: int,
    ) -> None:
        import numpy as np

        self._network = network
        self._sampler = sampler
        self._device = device
        self._key_values = network.key_values(num_sequences, length)
        # For each sequence: the number of tokens the next step attends to (0: free), and the token it reads.
        self._lengths = np.zeros(num_sequences, dtype=np.int64)
        self._latest = np.zeros(num_sequences, dtype=np.int64)
        self.rows: list[WritingRow] = []

    @property
    def num_free(self) -> int:
        """How many sequences are free."""
        import numpy as np

        return len(self._lengths) - int(np.count_nonzero(self._lengths))

    def admit(self, rows: Sequence[tuple[WritingRow, Sequence[int]]], prompts: PromptCache) -> None:
        """Add rows, each with its prompts' indices in `prompts`; there must be room for all sequences."""
        import numpy as np

        free = iter(np.flatnonzero(self._lengths == 0).tolist())
        origins = [origin for _, of_row in rows for origin in of_row]
        for row, of_row in rows:
            self._set_lines(row, [next(free) for _ in of_row])
        self.rows += [row for row, _ in rows]
        targets = [line for row, _ in rows for line in row.lines]
        self._key_values.make_room(
            max(len(prompt) + len(row.uniforms) for row, _ in rows for prompt in row.prompts)
        )
        length = max(len(prompt) - 1 for row, _ in rows for prompt in row.prompts)
        to, of = uploaded(self._device, targets, origins)
        self._key_values.copy_from(prompts.key_values, to, of, length)

    def replace(self, old: WritingRow, new: WritingRow) -> None:
        """Replace `old` by `new`, a row with the same prompts, without copying the prompts."""
        self._set_lines(new, old.lines)
        self.rows[self.rows.index(old)] = new

    def remove(self, leaving: Sequence[WritingRow]) -> None:
        """Remove rows."""
        gone = set(map(id, leaving))
        self.rows = [row for row in self.rows if id(row) not in gone]
        self._lengths[[line for row in leaving for line in row.lines]] = 0

    def step(self) -> None:
        """Append one token to every row."""
        import numpy as np
        import torch

        self._close_gaps()
        num_used = int(np.count_nonzero(self._lengths))
        num_sequences = self._network.padded(num_used, len(self._lengths))
        most = max(len(row.lines) for row in self.rows)
        # A row with fewer counter prompts than others repeats its own index.
        counters = [line for row in self.rows for line in (row.lines + row.lines[:1] * most)[1:most]]
        drawn = np.array([row.uniforms[len(row.tokens)] for row in self.rows])
        tokens, starts, own, countering, uniforms = uploaded(
            self._device,
            self._latest[:num_sequences],
            np.maximum(self._lengths[:num_sequences] - 1, 0),
            [row.lines[0] for row in self.rows],
            counters,
            drawn.view(np.int64),
        )
        logits = self._network.next_logits(
            self._key_values, tokens[:, None], starts, int(self._lengths.max())
        )
        among, probabilities = self._sampler.candidates(
            logits, own, countering.view(len(self.rows), most - 1)
        )
        # Not all devices have fp64.
        known = uniforms.view(torch.float64) if self._device.type != "mps" else torch.from_numpy(drawn)
        self._append(self._sampler.choose(among, probabilities, known).tolist())

    def _append(self, chosen: Sequence[int]) -> None:
        """Append each row's chosen token to all of its sequences, regular and counter prompts."""
        import numpy as np

        for row, token in zip(self.rows, chosen, strict=True):
            row.tokens.append(token)
        lines = [line for row in self.rows for line in row.lines]
        self._latest[lines] = np.repeat(chosen, [len(row.lines) for row in self.rows])
        self._lengths[lines] += 1

    def _set_lines(self, row: WritingRow, lines: list[int]) -> None:
        row.lines = lines
        for line, prompt in zip(lines, row.prompts, strict=True):
            self._lengths[line] = len(prompt)
            self._latest[line] = prompt[-1]

    def _close_gaps(self) -> None:
        """Move the last sequences into the gaps."""
        import numpy as np

        origins = without_gaps(self._lengths)
        targets = np.flatnonzero((origins != np.arange(len(origins))) & (self._lengths[origins] > 0))
        if not len(targets):
            return
        length = int(self._lengths[origins[targets]].max()) - 1
        to, of = uploaded(self._device, targets, origins[targets])
        self._key_values.copy_from(self._key_values, to, of, length)
        self._lengths, self._latest = self._lengths[origins], self._latest[origins]
        places = np.argsort(origins).tolist()
        for row in self.rows:
            row.lines = [places[line] for line in row.lines]


def without_gaps(lengths: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return a permutation, new index -> old index, that puts sequences of length 0 last.

    Only used sequences at the end move: each swaps its index with an earlier sequence of length 0.
    """
    import numpy as np

    origins = np.arange(len(lengths))
    used = lengths > 0
    num_used = int(used.sum())
    gaps = np.flatnonzero(~used[:num_used])
    beyond = num_used + np.flatnonzero(used[num_used:])
    origins[gaps], origins[beyond] = beyond, gaps
    return origins
