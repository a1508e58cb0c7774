from dataclasses import replace

import pytest

from synthbench.recommending.answer import AnswerLine, OnTest, dollars, more_money
from synthbench.recommending.curves import Forecast
from synthbench.statistics.differences import Noise

CLEAR = AnswerLine(
    winner="syncse-then-gold",
    baseline="gold-only",
    challenger="syncse-then-gold",
    tested=OnTest(0.713, 0.031, 0.012),
    baseline_score=0.682,
    equals=("augsbert-bm25", "claif"),
    usd={"syncse-then-gold": 38.2, "augsbert-bm25": 2.0, "claif": 30.0, "gold-only": 0.1},
)


def test_the_answer_names_winner_gain_price_and_the_cheapest_equal() -> None:
    assert CLEAR.line == (
        "syncse-then-gold: 71.3, 3.1 (1.9 to 4.3) above gold alone, for 38 dollars; on dev no difference to"
        " augsbert-bm25, for 2"
    )


def test_a_dearer_equal_is_not_named() -> None:
    assert replace(CLEAR, equals=("claif",), usd={**CLEAR.usd, "claif": 50.0}).line.endswith("for 38 dollars")


def test_an_interval_over_0_is_said_to_be_no_clear_difference() -> None:
    line = replace(CLEAR, tested=OnTest(0.69, 0.008, 0.012), equals=()).line
    assert line == (
        "syncse-then-gold: 69.0, 0.8 (−0.4 to 2.0) above gold alone, no clear difference, for 38 dollars"
    )


def test_a_clear_loss_on_the_test_set_makes_the_baseline_the_answer() -> None:
    answer = replace(CLEAR, tested=OnTest(0.66, -0.022, 0.012))
    assert answer.recipe == "gold-only"
    assert answer.line == (
        "gold-only: 68.2; syncse-then-gold, the best on dev, is 2.2 (1.0 to 3.4) below it on the test set"
    )


def test_an_unclear_loss_on_the_test_set_is_said() -> None:
    answer = replace(CLEAR, tested=OnTest(0.674, -0.008, 0.012), equals=())
    assert answer.recipe == "syncse-then-gold"
    assert "67.4, 0.8 (−0.4 to 2.0) below gold alone, no clear difference, for" in answer.line


def test_if_the_baseline_leads_on_dev_the_answer_is_the_baseline() -> None:
    line = replace(CLEAR, winner="gold-only", tested=OnTest(0.675, -0.007, 0.01)).line
    assert line == (
        "gold-only: 68.2; no recipe is ahead of it on dev. On the test set syncse-then-gold, the best of"
        " them, is 0.7 (−0.3 to 1.7) below gold alone"
    )


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (38.2, "38 dollars"),
        (1.0, "1 dollar"),
        (0.0, "0 dollars"),
        (0.0234, "0.023 dollars"),
        (8.2e-05, "less than 0.01 dollars"),
        (2.5, "2.5 dollars"),
    ],
)
def test_dollars_are_short(usd: float, text: str) -> None:
    assert dollars(usd) == text


def test_more_money_says_what_it_would_buy_or_that_it_can_not_tell() -> None:
    noise = Noise(0.002**2, 4)
    later = [(76.0, Forecast(2000, 0.72, noise)), (380.0, Forecast(9900, 0.7, noise, "a single seed"))]
    assert more_money("syncse", 0.71, later, "sentences") == (
        "More money: for 76 dollars (2,000 sentences) +1.0 ± 0.6 points on dev; for 380 dollars (9,900"
        " sentences) can't tell: a single seed."
    )
    worse = [(76.0, Forecast(2000, 0.703, noise))]
    assert " −0.7 ± 0.6 points" in more_money("syncse", 0.71, worse, "sentences")
    assert "needs more of them" in more_money("syncse", 0.71, [], "sentences")
    assert "no amount" in more_money("gold-only", 0.71, [], "")
