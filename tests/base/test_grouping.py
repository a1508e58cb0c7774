"""Values are grouped by key, in order."""

from hypothesis import given
from hypothesis import strategies as st

from synthbench.base.grouping import grouped


@given(st.lists(st.tuples(st.integers(0, 3), st.text())))
def test_each_key_has_its_values_and_all_keep_their_order(pairs: list[tuple[int, str]]) -> None:
    found = grouped(iter(pairs))

    assert list(found) == list(dict.fromkeys(key for key, _ in pairs))
    for key, values in found.items():
        assert values == [value for other, value in pairs if other == key]
