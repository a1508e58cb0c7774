"""Replay decoding steps as CUDA graphs: hundreds of small kernels cost more to launch than to run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from synthbench.base.errors import in_one_line
from synthbench.generation.memory import is_exhausted

Step = Callable[[Sequence[Tensor], Tensor, Tensor, int], Tensor]
WARM_UPS = 2


@dataclass(frozen=True)
class _Recording:
    graph: Any
    tokens: Tensor
    starts: Tensor
    logits: Tensor


class ReplayedSteps:
    """A decoding step that is replayed as CUDA graphs: one for each batch size and width.

    `step`: (keys and values, tokens, their positions, width) -> logits.

    Graphs hold the addresses and strides of keys and values, so they are dropped when these change. If
    recording fails for another reason than memory, `say` reports it, and all later steps run unrecorded.
    """

    def __init__(self, step: Step, say: Callable[[str], None]) -> None:
        self._step = step
        self._say = say
        self._is_broken = False
        self._recordings: dict[tuple[Any, ...], _Recording] = {}
        self._layout: tuple[Any, ...] = ()
        self._pool: Any = None

    def __call__(self, layers: Sequence[Tensor], tokens: Tensor, starts: Tensor, width: int) -> Tensor:
        """Return the step's logits; valid until the next call.

        Raises RuntimeError if memory runs out.
        """
        if self._is_broken:
            return self._step(layers, tokens, starts, width)
        # Keys and values of another layout may reuse a freed address, so compare strides and dtype, too.
        layout = tuple((layer.data_ptr(), layer.stride(), layer.dtype) for layer in layers)
        if layout != self._layout:
            self._recordings.clear()
            self._layout = layout
        kind = layers[0].shape, tokens.shape, width
        recording = self._recordings.get(kind)
        if recording is None:
            try:
                recording = self._record(layers, tokens.clone(), starts.clone(), width)
            except RuntimeError as error:
                self._give_up(error)
                return self._step(layers, tokens, starts, width)
            self._recordings[kind] = recording
        recording.tokens.copy_(tokens)
        recording.starts.copy_(starts)
        recording.graph.replay()
        return recording.logits

    def _give_up(self, error: RuntimeError) -> None:
        """Drop all graphs and their memory; raises `error` again if memory ran out."""
        self._recordings.clear()
        if is_exhausted(error):
            raise error
        self._is_broken = True
        self._say(f"CUDA graphs fail here ({in_one_line(error)}): continuing without them, more slowly")

    def _record(self, layers: Sequence[Tensor], tokens: Tensor, starts: Tensor, width: int) -> _Recording:
        """Warm up and record the step, which writes the same keys and values each time."""
        if not self._recordings:
            # torch frees a pool with its last graph, and fails if it is used again.
            self._pool = torch.cuda.graph_pool_handle()
        stream = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(stream)
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                self._step(layers, tokens, starts, width)
        stream.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                logits = self._step(layers, tokens, starts, width)
        finally:
            # A failed recording leaves its own stream current.
            torch.cuda.set_stream(stream)
        return _Recording(graph, tokens, starts, logits)
