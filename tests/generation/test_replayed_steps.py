"""CUDA graphs without a GPU: a fake graph keeps what a step was recorded with, and replays it there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import Tensor

from synthbench.generation.cuda_graphs import ReplayedSteps

LENGTH = 6


class FakeGraph:
    """Replays a step on the very memory that it was recorded with."""

    recording: "FakeGraph | None" = None
    number = 0

    def __init__(self) -> None:
        FakeGraph.number += 1
        self.arguments: tuple[Tensor, Tensor, Tensor, int] | None = None
        self.logits = torch.zeros(0)

    def replay(self) -> None:
        assert self.arguments is not None
        self.logits.copy_(plain_step(*self.arguments))


def plain_step(key_values: Tensor, tokens: Tensor, starts: Tensor, width: int) -> Tensor:
    """Put each token at its start, and return what stands in each row up to the width."""
    key_values[torch.arange(len(tokens)), starts] = tokens[:, 0].to(key_values.dtype)
    return key_values[:, :width].double()


def step(key_values: Tensor, tokens: Tensor, starts: Tensor, width: int) -> Tensor:
    logits = plain_step(key_values, tokens, starts, width).clone()
    if FakeGraph.recording is not None:
        FakeGraph.recording.arguments = (key_values, tokens, starts, width)
        FakeGraph.recording.logits = logits
    return logits


@contextmanager
def recording(graph: FakeGraph, pool: object) -> Iterator[None]:
    FakeGraph.recording = graph
    yield
    FakeGraph.recording = None


class FakeStream:
    def wait_stream(self, other: "FakeStream") -> None:
        """Nothing to wait for."""


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> ReplayedSteps:
    for name, fake in {
        "CUDAGraph": FakeGraph,
        "graph": recording,
        "graph_pool_handle": object,
        "Stream": FakeStream,
        "current_stream": FakeStream,
        "stream": lambda stream: nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(FakeGraph, "number", 0)
    return ReplayedSteps(step)


def check(replayed: ReplayedSteps, key_values: Tensor, rows: int, width: int) -> None:
    """Compare a replayed step on fresh key values with a plain one: the logits, and what was written."""
    key_values.zero_()
    tokens = torch.arange(3, 3 + rows)[:, None]
    starts = torch.arange(rows) % width
    expected = key_values.clone()
    logits = plain_step(expected[:rows], tokens, starts, width)
    assert torch.equal(replayed(key_values[:rows], tokens, starts, width), logits)
    assert torch.equal(key_values, expected)


def test_a_step_is_recorded_once_for_each_number_of_rows_and_each_width(replayed: ReplayedSteps) -> None:
    key_values = torch.zeros(4, LENGTH)
    for rows, width in [(4, 2), (2, 2), (4, 3), (4, 2), (2, 2)]:
        check(replayed, key_values, rows, width)
    assert FakeGraph.number == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda memory: memory.view(4, LENGTH), lambda memory: memory.view(2, 2 * LENGTH)),
        (lambda memory: memory.view(4, LENGTH), lambda memory: memory.view(LENGTH, 4).T),
        (lambda memory: memory.view(4, LENGTH), lambda memory: memory.view(torch.int32).view(4, LENGTH)),
        (lambda memory: memory.view(4, LENGTH), lambda memory: memory.view(4, LENGTH)[:, 1:]),
    ],
    ids=["shape", "stride", "dtype", "address"],
)
def test_key_values_of_another_layout_are_recorded_anew(
    before: Callable[[Tensor], Tensor], after: Callable[[Tensor], Tensor], replayed: ReplayedSteps
) -> None:
    memory = torch.zeros(4 * LENGTH)
    for view in (before, after, before):
        check(replayed, view(memory), rows=2, width=3)
