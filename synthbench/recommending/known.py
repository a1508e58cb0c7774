"""What a recommendation knows so far: dev scores and costs, and what more data would cost and gain."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from synthbench.base.errors import UserError
from synthbench.base.grouping import grouped
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan
from synthbench.recommending.amounts import FIRST_ROUND_SHARE, DataPrice, race_amounts
from synthbench.recommending.answer import more_money
from synthbench.recommending.curves import MOST_AHEAD, Forecast, forecast
from synthbench.recommending.outcome import Measured, cell_of
from synthbench.recommending.phases import Contest, PhaseRow
from synthbench.recommending.race import MOST_RUNNING, Standing, standing
from synthbench.recommending.spending import PriceAt, StageCost, paid, price, stages_of_rows, total

PLANNED = 0.95
"""The share of the remaining budget that a plan may spend, since estimates may be too low."""
LATER = (2, 5)
"""Multiples of the largest measured amount at which the answer forecasts scores."""


@dataclass
class Known:
    """What is known of a study, and grows with each phase: dev scores, rows and costs.

    `scores`: recipe -> amount -> dev scores in the order of seeds. `rows`: recipe -> its measured rows.
    `costs`: stage identity -> cost. `stages`: row -> identities of its stages. `left_out`: recipe -> why it
    has no dev score. `dropped`: recipe -> why it is not the answer. `unseeded`: recipes whose scores do not
    depend on the seed.
    """

    study: Contest
    scores: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    rows: dict[str, list[PhaseRow]] = field(default_factory=dict)
    costs: dict[str, StageCost] = field(default_factory=dict)
    stages: dict[str, frozenset[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    unseeded: set[str] = field(default_factory=set)

    # What phases add

    def count(self, plan: Plan, artifacts: Artifacts) -> None:
        """Add the costs of the finished stages of an experiment."""
        self.costs |= paid(plan, artifacts)
        self.stages |= stages_of_rows(plan)

    def add(self, rows: Sequence[PhaseRow], scores: Mapping[str, list[float]]) -> None:
        """Add the dev scores of a phase's rows; `scores`: row's name -> scores in the order of seeds."""
        for row in rows:
            if row.name in scores:
                self.rows.setdefault(row.contender, []).append(row)
                self.scores.setdefault(row.contender, {})[row.amount] = scores[row.name]

    def leave_out(self, names: Collection[str], why: str) -> None:
        """Remove recipes from the study, and all recipes whose training starts from a removed recipe.

        `why` is the reason in the answer. Raises UserError if the baseline would be removed, or if no recipe
        would remain to compare with it.
        """
        gone = set(names)
        contenders = self.study.contenders.items()
        while more := {name for name, each in contenders if each.starts_from in gone} - gone:
            gone |= more
        if self.study.baseline in gone:
            raise UserError(f"{self.study.baseline}: {why}")
        self.left_out |= {name: why for name in self.study.contenders if name in gone}
        kept = {name: each for name, each in self.study.contenders.items() if name not in gone}
        if len(kept) < 2:
            raise UserError(*(f"{name}: {reason}" for name, reason in self.left_out.items()))
        self.study = replace(self.study, contenders=kept)

    # Money

    @property
    def spent(self) -> float:
        """The dollars that all phases have cost so far; a stage of several phases counts once."""
        return total(self.costs.values(), self.study.hour_usd)

    @property
    def left(self) -> float:
        """The dollars of the budget that are not spent yet."""
        return self.study.usd - self.spent

    @property
    def rest(self) -> float:
        """The dollars that the rest of the race may spend: 95 % of `left`, as estimates may be too low."""
        return max(PLANNED * self.left, 0.0)

    @property
    def first_round(self) -> float:
        """The dollars that the first round of the race may spend: 30 % of the budget, but at most `rest`."""
        return min(FIRST_ROUND_SHARE * self.study.usd, self.rest)

    def usd(self, name: str) -> float:
        """Return the cost of a recipe at its largest measured amount, in dollars.

        The sum of the LLM's answers, local computing of the data, and training and evaluating with one seed.
        Includes all recipes from which the recipe's training starts.
        """
        rows = self.study.with_starts(self.rows[name])
        here = self.study.with_starts([PhaseRow(name, self.largest(name))])
        at = self._price_at([row.name for row in here], [row.name for row in rows])
        return at.llm + at.making + at.training / len(self.study.long["seeds"])

    def _price(self, names: Sequence[str]) -> DataPrice:
        """Return the price of data for recipes of one group, from costs at the largest measured amounts."""
        rows = [row for name in names for row in self.rows[name]]
        here = [row.name for row in rows if row.amount == self.largest(row.contender)]
        return self._price_at(here, [row.name for row in rows]).each(max(map(self.largest, names)))

    def _price_at(self, rows: Sequence[str], all_rows: Sequence[str]) -> PriceAt:
        return price(self.costs, rows, all_rows, self.stages, self.study.hour_usd)

    # Amounts

    def largest(self, name: str) -> int:
        """Return the largest measured amount of a recipe; 0 if the recipe's amount is fixed."""
        return max(self.scores[name], default=0)

    def affordable(self, names: Sequence[str], usd: float) -> dict[str, int]:
        """Return each recipe's next amount if all share `usd` more dollars; 0 for a fixed amount."""
        groups = grouped((self.study.group_of(name), name) for name in names)
        found = race_amounts(
            {group: self._price(running) for group, running in groups.items()},
            {group: max(map(self.largest, running)) for group, running in groups.items()},
            {group: self.study.available(group) for group in groups},
            usd,
        )
        return {
            name: min(found[self.study.group_of(name)], self.study.contenders[name].available)
            for name in names
        }

    # Forecasts

    def standing(self, running: Sequence[str], most: int) -> Standing:
        """Return which running recipes stay in the race, at most `most`, and store why others do not."""
        forecasts = {name: self._forecast(name) for name in dict.fromkeys([*running, self.study.baseline])}
        found = standing(forecasts, most, self.study.baseline)
        self.dropped |= found.dropped
        return found

    def _forecast(self, name: str) -> Forecast:
        """Return a recipe's forecast at the amount that a third of `rest` pays for.

        The amount is at most 10 times the largest measured one.
        """
        reach = self.affordable([name], self.rest / MOST_RUNNING[0])[name]
        amount = min(reach, MOST_AHEAD * self.largest(name))
        return forecast(self.scores[name], amount, is_seeded=name not in self.unseeded)

    def more_money(self, name: str, now: float) -> str:
        """Return a line on what more money would gain with a recipe; `now` is the recipe's dev score."""
        contender, largest = self.study.contenders[name], self.largest(name)
        price_of_data = self._price([name])
        amounts = dict.fromkeys(min(times * largest, contender.available) for times in LATER)
        later = [
            (price_of_data.of(amount), forecast(self.scores[name], amount))
            for amount in amounts
            if amount > largest
        ]
        return more_money(name, now, later, contender.counted)

    def measured(self, dev: Mapping[str, float], usd: Mapping[str, float]) -> Iterator[Measured]:
        """Yield each recipe's measured scores and cost, the best on dev first.

        `dev`: recipe -> dev score at the largest amount. `usd`: recipe -> cost at the largest amount.
        """
        for name in sorted(dev, key=lambda each: -dev[each]):
            cells = tuple((size, cell_of(scores)) for size, scores in sorted(self.scores[name].items()))
            reads = self.study.contenders[name].counted
            yield Measured(name, reads, cells, usd[name], self.dropped.get(name, ""))
