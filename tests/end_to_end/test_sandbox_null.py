"""Rows that can't differ do not: a smaller form of benchmarks/sandbox_null.py."""

from pathlib import Path

import pytest
from sandbox_null import COMPARISONS, LEVEL, adjusted, measured

NUM_WORLDS = 2


@pytest.mark.experiments
def test_rows_that_cannot_differ_do_so_no_more_often_than_the_level_allows(tmp_path: Path) -> None:
    # Fails if a comparison is significant in both worlds. The chance is 0.05 x 0.05 per comparison, below 1 %
    # for any of three. On one machine the outcome is always the same.
    counted = measured(tmp_path, NUM_WORLDS, jobs=2)

    assert [each.comparison for each in counted] == list(COMPARISONS)
    assert [len(each.differences) for each in counted] == [NUM_WORLDS] * len(COMPARISONS)
    assert all(each is not None for counts in counted for each in counts.differences), "data did not differ"
    too_many = [
        each.comparison for each, p_value in zip(counted, adjusted(counted), strict=True) if p_value < LEVEL
    ]
    assert too_many == []
