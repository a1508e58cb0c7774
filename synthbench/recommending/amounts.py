"""How much data a share of the budget buys of each recipe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.base.errors import UserError

PILOT_SHARE = 0.1
"""The pilot's share of the budget."""
FIRST_ROUND_SHARE = 0.3
"""The share of the budget that the first round of the race may spend."""
STEPS = (9, 3, 1)
"""The pilot's amounts: its largest one divided by each of these."""
LEAST = 90
"""The least that the pilot's largest amount may be: with fewer records no curve can be seen."""
ROUNDING = 1 + 1e-9
"""A share that is exactly the price of all records buys them all, however its sum was rounded."""


@dataclass(frozen=True)
class DataPrice:
    """What one recipe costs in US dollars: `llm` and `making` for each record that it reads, `training` once.

    An LLM's answers are paid once, so a larger amount costs only its additional records. What is computed
    here is computed anew for each amount.
    """

    llm: float = 0.0
    making: float = 0.0
    training: float = 0.0

    def of(self, amount: int, paid: int = 0) -> float:
        """Return the dollars for an amount, if an LLM's answers for `paid` records are there."""
        return self.llm * max(amount - paid, 0) + self.making * amount + self.training

    def buys(self, usd: float, paid: int = 0) -> float:
        """Return the number of records that these dollars buy, at least 0; infinite if they cost nothing."""
        each = self.llm + self.making
        return max((usd - self.training + self.llm * paid) / each, 0.0) if each > 0 else math.inf


def pilot_amounts(
    prices: Mapping[str, DataPrice], available: Mapping[str, int], budget: float, where: str
) -> dict[str, tuple[int, ...]]:
    """Return the pilot's amounts of each recipe, smallest first; () for one without an amount.

    `available`: the number of records that a recipe could read, 0 if it has no amount. Raises UserError at
    `where` if a tenth of the budget is less than the smallest pilot costs.
    """
    least = {name: _pilot_price(prices[name], min(LEAST, available[name])) for name in prices}
    total = sum(least.values())
    if total > PILOT_SHARE * budget:
        raise UserError(
            f"{where}: {budget:,.2f} dollars: the pilot may take a tenth, and costs {total:,.2f} at least;"
            f" set {math.ceil(total / PILOT_SHARE * 100) / 100:,.2f} or more, or list fewer variants"
        )
    most = {name: _pilot_price(prices[name], available[name]) for name in prices}
    shares = _shared(PILOT_SHARE * budget, least, most)
    found: dict[str, tuple[int, ...]] = {}
    for name, price in prices.items():
        whole = available[name]
        if not whole:
            found[name] = ()
            continue
        # Each amount is made and trained with; the LLM's answers for the largest hold those for the others.
        times = sum(1 / step for step in STEPS)
        usd = shares[name] - len(STEPS) * price.training
        each = price.llm + times * price.making
        is_whole = _pilot_price(price, whole) <= shares[name] * ROUNDING
        largest = whole if is_whole else max(rounded_down(usd / each), min(LEAST, whole))
        found[name] = tuple(sorted({max(largest // step, 1) for step in STEPS}))
    return found


def race_amounts(
    prices: Mapping[str, DataPrice], paid: Mapping[str, int], available: Mapping[str, int], budget: float
) -> dict[str, int]:
    """Return the next amount of each running recipe: an equal share each, and what others can't use.

    `paid`: the amounts measured so far, which are the least that is returned.
    """
    most = {name: prices[name].of(available[name], paid[name]) for name in paid}
    shares = _shared(budget, dict.fromkeys(paid, 0.0), most)
    found = {}
    for name in paid:
        buys = prices[name].buys(shares[name] * ROUNDING, paid[name])
        amount = available[name] if buys >= available[name] else rounded_down(buys)
        found[name] = max(amount, paid[name])
    return found


def rounded_down(amount: float) -> int:
    """Return a number rounded down to two digits, so that a plan hardly depends on the clock."""
    if amount < 1:
        return 0
    unit = 10 ** max(math.floor(math.log10(amount)) - 1, 0)
    return int(amount // unit * unit)


def _pilot_price(price: DataPrice, largest: int) -> float:
    if not largest:
        return price.training
    return price.llm * largest + sum(price.making * largest / step + price.training for step in STEPS)


def _shared(budget: float, least: Mapping[str, float], most: Mapping[str, float]) -> dict[str, float]:
    """Give each its least, and divide the rest equally; what one can't use goes to the others."""
    rest = budget - sum(least.values())
    wanted = {name: max(most[name] - least[name], 0.0) for name in most}
    shares: dict[str, float] = {}
    for number, name in enumerate(sorted(wanted, key=lambda each: wanted[each])):
        given = min(wanted[name], rest / (len(wanted) - number))
        shares[name] = least[name] + given
        rest -= given
    return shares
