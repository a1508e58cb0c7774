"""CUDA graphs without a GPU: a fake graph stores a step's tensors and replays the step on them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from synthbench.generation.cuda_graphs import ReplayedSteps
from synthbench.generation.memory import is_exhausted

LENGTH = 6


class FakeGraph:
    """Replays a step on the very memory that it was recorded with."""

    recording: "FakeGraph | None" = None
    number = 0
    pools: ClassVar[list[object]] = []

    def __init__(self) -> None:
        FakeGraph.number += 1
        self.arguments: tuple[Sequence[Tensor], Tensor, Tensor, int] | None = None
        self.logits = torch.zeros(0)

    def replay(self) -> None:
        assert self.arguments is not None
        self.logits.copy_(plain_step(*self.arguments))


def plain_step(layers: Sequence[Tensor], tokens: Tensor, starts: Tensor, width: int) -> Tensor:
    """Put each token at its start, and return the sum of what each row attends to, up to the width."""
    (key_values,) = layers
    key_values[torch.arange(len(tokens)), starts] = tokens[:, 0].to(key_values.dtype)
    rows = (row[: start + 1].double().sum() for row, start in zip(key_values, starts, strict=True))
    assert (starts < width).all()
    return torch.stack(list(rows))


def step(layers: Sequence[Tensor], tokens: Tensor, starts: Tensor, width: int) -> Tensor:
    logits = plain_step(layers, tokens, starts, width).clone()
    if FakeGraph.recording is not None:
        FakeGraph.recording.arguments = (layers, tokens, starts, width)
        FakeGraph.recording.logits = logits
    return logits


@contextmanager
def recording(graph: FakeGraph, pool: object) -> Iterator[None]:
    FakeGraph.recording = graph
    FakeGraph.pools.append(pool)
    yield
    FakeGraph.recording = None


class FakeStream:
    def wait_stream(self, other: "FakeStream") -> None:
        """Nothing to wait for."""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> ReplayedSteps:
    for name, fake in {
        "CUDAGraph": FakeGraph,
        "graph": recording,
        "graph_pool_handle": object,
        "Stream": FakeStream,
        "current_stream": FakeStream,
        "set_stream": lambda stream: None,
        "stream": lambda stream: nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(FakeGraph, "number", 0)
    monkeypatch.setattr(FakeGraph, "pools", [])
    return ReplayedSteps(step, said.append)


def check(replayed: ReplayedSteps, key_values: Tensor, rows: int, width: int) -> None:
    """Compare a replayed step on fresh key values with a plain step: logits and written key values."""
    key_values.zero_()
    tokens = torch.arange(3, 3 + rows)[:, None]
    starts = torch.tensor([row % width for row in range(rows)])
    expected = key_values.clone()
    logits = plain_step([expected[:rows]], tokens, starts, width)
    assert torch.equal(replayed([key_values[:rows]], tokens, starts, width), logits)
    assert torch.equal(key_values, expected)


def test_a_step_is_recorded_once_per_number_of_rows_and_width(replayed: ReplayedSteps) -> None:
    key_values = torch.zeros(4, LENGTH)
    for rows, width in [(4, 2), (2, 2), (4, 3), (4, 2), (2, 2)]:
        check(replayed, key_values, rows, width)
    assert FakeGraph.number == 3


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    @contextmanager
    def refused(graph: FakeGraph, pool: object) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr(torch.cuda, "graph", refused)


def test_steps_that_can_not_be_recorded_run_unrecorded(
    replayed: ReplayedSteps, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, RuntimeError("CUDA error: operation not permitted when stream is capturing"))
    for _ in range(3):
        check(replayed, torch.zeros(4, LENGTH), 4, 3)
    assert FakeGraph.number == 1
    (line,) = said
    assert "operation not permitted" in line
    assert "continuing without" in line


def test_too_little_memory_to_record_raises_a_memory_error(
    replayed: ReplayedSteps, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = RuntimeError("CUDA error: operation failed due to a previous error during capture")
    ended.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    failing(monkeypatch, ended)
    with pytest.raises(RuntimeError, match="previous error") as raised:
        check(replayed, torch.zeros(4, LENGTH), 4, 3)
    assert is_exhausted(raised.value)
    assert not said


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
def test_key_values_of_another_layout_are_recorded_again(
    before: Callable[[Tensor], Tensor], after: Callable[[Tensor], Tensor], replayed: ReplayedSteps
) -> None:
    memory = torch.zeros(4 * LENGTH)
    for view in (before, after, before):
        check(replayed, view(memory), 2, 3)


def test_graphs_share_a_pool_which_is_never_used_again_after_its_last_graph(replayed: ReplayedSteps) -> None:
    """torch frees a pool with its last graph, and fails on a GPU if another is recorded into it."""
    first, second = torch.zeros(4, LENGTH), torch.zeros(4, LENGTH)
    for key_values, rows in [(first, 4), (first, 2), (second, 4)]:
        check(replayed, key_values, rows, 3)
    one, other, last = FakeGraph.pools
    assert one is other
    assert last is not one
