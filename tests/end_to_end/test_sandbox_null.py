"""No method wins where it has nothing to win: a smaller form of benchmarks/sandbox_null.py."""

from pathlib import Path

import pytest
from sandbox_null import COMPARISONS, LEVEL, adjusted, measured

NUM_WORLDS = 2


@pytest.mark.experiments
def test_no_method_wins_more_often_than_the_level_allows(tmp_path: Path) -> None:
    # Of two worlds a method must win both to fail here, which has a chance of 0.025 x 0.025 for each comparison:
    # a false alarm in less than 0.5 % of the machines, and always or never on one.
    counted = measured(tmp_path, NUM_WORLDS, jobs=2)

    assert [each.comparison for each in counted] == list(COMPARISONS)
    assert [len(each.differences) for each in counted] == [NUM_WORLDS] * len(COMPARISONS)
    assert all(each is not None for counts in counted for each in counts.differences), "data did not differ"
    too_many = [
        each.comparison for each, p_value in zip(counted, adjusted(counted), strict=True) if p_value < LEVEL
    ]
    assert too_many == []
