import math

import pytest

from synthbench.base.errors import UserError
from synthbench.recommending.amounts import DataPrice, pilot_amounts, race_amounts, rounded_down

WHERE = "tickets.yaml:5: budget.usd"


def test_a_price_counts_answers_once_and_computing_anew() -> None:
    price = DataPrice(llm=0.01, making=0.001, training=2.0)
    assert price.of(100) == pytest.approx(3.1)
    assert price.of(300, paid=100) == pytest.approx(4.3)
    assert price.buys(4.3, paid=100) == pytest.approx(300)
    assert DataPrice().buys(0.0) == math.inf


def test_the_pilot_stays_within_a_tenth_of_the_budget() -> None:
    prices = {
        "syncse": DataPrice(llm=0.01),
        "claif": DataPrice(llm=0.02),
        "gold-only": DataPrice(training=0.1),
    }
    found = pilot_amounts(prices, {"syncse": 50_000, "claif": 50_000, "gold-only": 0}, 100.0, WHERE)
    assert found == {"syncse": (50, 150, 450), "claif": (28, 86, 260), "gold-only": ()}
    assert sum(prices[name].llm * sizes[-1] for name, sizes in found.items() if sizes) <= 9.9


def test_what_a_cheap_recipe_can_not_use_goes_to_the_others() -> None:
    prices = {"syncse": DataPrice(llm=0.01), "local": DataPrice()}
    found = pilot_amounts(prices, {"syncse": 50_000, "local": 2_000}, 100.0, WHERE)
    assert found == {"syncse": (111, 333, 1_000), "local": (222, 666, 2_000)}


def test_a_local_model_is_not_free() -> None:
    found = pilot_amounts({"dino": DataPrice(making=0.01)}, {"dino": 5_000}, 100.0, WHERE)
    made = sum(0.01 * size for size in found["dino"])
    assert 9 < made <= 10


def test_a_budget_under_the_cost_of_the_pilot_is_refused_with_what_it_costs() -> None:
    with pytest.raises(UserError) as refused:
        pilot_amounts({"syncse": DataPrice(llm=0.01)}, {"syncse": 5_000}, 5.0, WHERE)
    assert refused.value.messages == (
        "tickets.yaml:5: budget.usd: 5.00 dollars: the pilot may take a tenth, and costs 0.90 at least;"
        " set 9.00 or more, or list fewer variants",
    )


@pytest.mark.parametrize("faster", [1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
def test_where_all_can_be_bought_the_measured_speed_of_the_machine_changes_nothing(faster: float) -> None:
    making, training = 4.166666666666667e-08 / faster, 0.012596336790747956 / faster
    prices = {"syncse": DataPrice(making=making, training=training), "gold": DataPrice(training=training)}
    found = pilot_amounts(prices, {"syncse": 2_000, "gold": 0}, 100.0, WHERE)
    assert found["syncse"] == (222, 666, 2_000)


def test_few_sentences_are_read_whole() -> None:
    assert pilot_amounts({"a": DataPrice(llm=0.01)}, {"a": 60}, 100.0, WHERE) == {"a": (6, 20, 60)}


def test_the_race_divides_what_is_there_among_those_that_run() -> None:
    prices = {
        "syncse": DataPrice(llm=0.01),
        "claif": DataPrice(llm=0.02),
        "gold-only": DataPrice(training=0.1),
    }
    paid = {"syncse": 490, "claif": 250, "gold-only": 0}
    available = {"syncse": 1_000, "claif": 50_000, "gold-only": 0}
    found = race_amounts(prices, paid, available, 30.0)
    assert found == {"syncse": 1_000, "claif": 1_400, "gold-only": 0}


def test_no_amount_shrinks_when_the_money_is_gone() -> None:
    assert race_amounts({"a": DataPrice(llm=0.01)}, {"a": 490}, {"a": 1_000}, 0.0) == {"a": 490}


@pytest.mark.parametrize(
    ("number", "rounded"), [(0.4, 0), (7.9, 7), (98.7, 98), (1234.5, 1200), (99_999, 99_000)]
)
def test_amounts_have_two_digits(number: float, rounded: int) -> None:
    assert rounded_down(number) == rounded
