"""Positions of sequences in a batch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synthbench.generation.batch import without_gaps

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=30).map(np.array)


@given(LENGTHS)
def test_active_sequences_move_to_the_front_and_only_the_last_ones_move(lengths: np.ndarray) -> None:
    origins = without_gaps(lengths)
    num_used = np.count_nonzero(lengths)
    assert sorted(origins) == list(range(len(lengths)))
    assert (lengths[origins][:num_used] > 0).all()
    moved = [line for line in range(num_used) if origins[line] != line]
    assert all(lengths[line] == 0 for line in moved)
