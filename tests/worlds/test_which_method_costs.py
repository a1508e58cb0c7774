"""The results of benchmarks/which_method_costs.py on made-up costs."""

import pytest
from which_method_costs import HOUR_USD, Spent, lines

ASKED = Spent("syncse", budget=100.0, usd=40.0, seconds=72_000 / HOUR_USD, records=8.0)
COMPUTED = Spent("dino", budget=100.0, usd=0.0, seconds=324_000 / HOUR_USD, records=900.0)


def test_the_total_is_llm_costs_plus_seconds_at_their_price() -> None:
    assert ASKED.total == pytest.approx(40 + 20)
    assert COMPUTED.total == pytest.approx(90)


def test_a_budget_is_met_within_15_percent() -> None:
    assert not ASKED.meets
    assert COMPUTED.meets


def test_the_factor_spends_the_remaining_budget_on_the_llm() -> None:
    assert ASKED.factor == pytest.approx((100 - 20) / 40)
    assert COMPUTED.factor is None


def test_a_row_of_the_cost_table_is_printed_with_all_its_columns() -> None:
    assert list(lines([ASKED]))[-1] == "| syncse | 100 | 8 | 40.00 | 720.0 | 60.00 | no | 2.00 |"
