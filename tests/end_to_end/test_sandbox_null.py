"""Rows that can't differ do not: a smaller form of benchmarks/sandbox_null.py."""

from pathlib import Path

import pytest
from sandbox_null import COMPARISONS, LEVEL, adjusted, run_world, tallies

NUM_WORLDS = 2


@pytest.mark.experiments
def test_rows_that_cannot_differ_do_so_no_more_often_than_the_level_allows(tmp_path: Path) -> None:
    # Fails if a comparison is significant in both worlds. The chance is 0.05 x 0.05 per comparison, below 1 %
    # for any of three. On one machine the outcome is always the same.
    counted = tallies({world: run_world(world, tmp_path, jobs=2) for world in range(NUM_WORLDS)})

    assert [len(each.worlds) for each in counted] == [NUM_WORLDS] * len(COMPARISONS)
    assert all(value != 0 for each in counted for value in each.values), "data did not differ"
    too_many = [
        each.comparison for each, p_value in zip(counted, adjusted(counted), strict=True) if p_value < LEVEL
    ]
    assert too_many == []
