"""Replay decoding steps as CUDA graphs: hundreds of small kernels cost more to launch than to run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Step = Callable[[Tensor, Tensor, Tensor, int], Tensor]
WARM_UPS = 2


@dataclass(frozen=True)
class _Recording:
    graph: Any
    tokens: Tensor
    starts: Tensor
    logits: Tensor


class ReplayedSteps:
    """A step (key values, tokens, starts, width) -> logits, recorded once for each size and width.

    Graphs hold addresses and strides, so they are dropped when those of the key values change.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._recordings: dict[tuple[Any, ...], _Recording] = {}
        self._layout: tuple[Any, ...] = ()
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, key_values: Tensor, tokens: Tensor, starts: Tensor, width: int) -> Tensor:
        """Return the step's logits; valid until the next call."""
        # Key values of another layout may reuse a freed address, so compare strides and dtype, too.
        layout = (key_values.data_ptr(), key_values.stride(), key_values.dtype)
        if layout != self._layout:
            self._recordings.clear()
            self._layout = layout
        size = (key_values.shape, tokens.shape, width)
        if size not in self._recordings:
            self._recordings[size] = self._record(key_values, tokens.clone(), starts.clone(), width)
        recording = self._recordings[size]
        recording.tokens.copy_(tokens)
        recording.starts.copy_(starts)
        recording.graph.replay()
        return recording.logits

    def _record(self, key_values: Tensor, tokens: Tensor, starts: Tensor, width: int) -> _Recording:
        """Warm up and record the step, which writes the same keys and values each time."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                self._step(key_values, tokens, starts, width)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            logits = self._step(key_values, tokens, starts, width)
        return _Recording(graph, tokens, starts, logits)
