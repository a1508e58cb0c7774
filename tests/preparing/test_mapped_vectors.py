"""Vectors of many sentences are in a file that is mapped: no limit on a process's data meets them."""

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.preparing.vectors import unit_vectors

NUMBER, DIMENSION, ROOM = 100_000, 384, 64_000_000


class Constant:
    """An encoder of many dimensions that computes nothing."""

    dimension = DIMENSION

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(sentences), DIMENSION), 3.0, np.float32)

    def encoded_batches(
        self, sentences: Sequence[str], is_due: object
    ) -> Iterator[tuple[range, NDArray[np.float32]]]:
        for start in range(0, len(sentences), 1000):
            rows = range(start, min(start + 1000, len(sentences)))
            yield rows, self.encode([sentences[row] for row in rows])


@contextmanager
def room_for(num_bytes: int) -> Iterator[None]:
    """Limit this process's further data memory to some bytes."""
    status = Path("/proc/self/status").read_text()
    taken = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (taken * 1024 + num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells memory as Linux does")
def test_vectors_of_a_hundred_thousand_texts_do_not_occupy_memory(tmp_path: Path) -> None:
    texts = [""] * NUMBER
    with room_for(ROOM):
        vectors = unit_vectors(Constant(), texts, tmp_path / "vectors.f32")
        with pytest.raises(MemoryError):
            np.ones((NUMBER, DIMENSION), np.float32)
    assert vectors.shape == (NUMBER, DIMENSION)
    assert np.linalg.norm(vectors[-1]) == pytest.approx(1.0)
