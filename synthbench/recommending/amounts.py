"""How much data each recipe gets for its share of the budget.

A recipe's amount is the number of sentences or passages that it reads. Recipes that read neither have a
fixed amount.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.base.errors import UserError

PILOT_SHARE = 0.1
"""The pilot's share of the budget."""
FIRST_ROUND_SHARE = 0.3
"""The share of the budget that the first round of the race may spend."""
STEPS = (9, 3, 1)
"""The pilot uses its largest amount divided by each of these."""
LEAST = 90
"""Minimum of the pilot's largest amount, in records: with fewer no curve can be seen."""
ROUNDING = 1 + 1e-9
"""Tolerance of a share: if it equals the price of all records, it buys them all despite rounding."""


@dataclass(frozen=True)
class DataPrice:
    """A recipe's price in US dollars: `llm` and `making` for each record that it reads, `training` once.

    `llm` pays for an LLM's answers. These are reused, so a larger amount costs only its additional records.
    `making` pays for local computing, which is repeated for all records of each amount.
    """

    llm: float = 0.0
    making: float = 0.0
    training: float = 0.0

    def of(self, amount: int, paid: int = 0) -> float:
        """Return an amount's cost in dollars if the LLM's answers for `paid` records are already paid."""
        return self.llm * max(amount - paid, 0) + self.making * amount + self.training

    def buys(self, usd: float, paid: int = 0) -> float:
        """Return the number of records that `usd` dollars pay for, at least 0; infinite if they cost nothing.

        `paid` is as in `of`.
        """
        each = self.llm + self.making
        return max((usd - self.training + self.llm * paid) / each, 0.0) if each > 0 else math.inf


def pilot_amounts(
    prices: Mapping[str, DataPrice], available: Mapping[str, int], budget: float, where: str
) -> dict[str, tuple[int, ...]]:
    """Return the pilot's amounts of each recipe, smallest first; () for a recipe with a fixed amount.

    `available`: recipe -> the number of records that it could read, 0 if its amount is fixed. Raises
    UserError, with a message that begins with `where`, if the smallest possible pilot costs more than a tenth
    of the budget.
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
    """Return each running recipe's next amount if all get equal shares of the budget.

    The part of a share that its recipe can't use goes to the others. `paid`: recipe -> the largest amount
    measured so far; the next amount is never smaller. `available` is as in `pilot_amounts`.
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
    """Round down to two significant digits, so that slightly changed time estimates rarely change a plan."""
    if amount < 1:
        return 0
    unit = 10 ** max(math.floor(math.log10(amount)) - 1, 0)
    return int(amount // unit * unit)


def _pilot_price(price: DataPrice, largest: int) -> float:
    if not largest:
        return price.training
    return price.llm * largest + sum(price.making * largest / step + price.training for step in STEPS)


def _shared(budget: float, least: Mapping[str, float], most: Mapping[str, float]) -> dict[str, float]:
    """Return each recipe's dollars: its `least`, plus an equal part of the remaining budget, up to `most`."""
    rest = budget - sum(least.values())
    wanted = {name: max(most[name] - least[name], 0.0) for name in most}
    shares: dict[str, float] = {}
    for number, name in enumerate(sorted(wanted, key=lambda each: wanted[each])):
        given = min(wanted[name], rest / (len(wanted) - number))
        shares[name] = least[name] + given
        rest -= given
    return shares
