"""What stages cost, estimated or paid, and the prices of recipes' data computed from these costs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan, needed_by
from synthbench.engine.store import Store
from synthbench.estimates.facts import StageFacts, asked
from synthbench.estimates.figures import estimator_for
from synthbench.llm.endpoint import money
from synthbench.llm.ledger import entries
from synthbench.recommending.amounts import DataPrice
from synthbench.stages.asking import AskingOperation

TRAINING = ("train", "select", "evaluate")
"""Kinds of stages whose cost does not grow with the amount of data."""


@dataclass(frozen=True)
class StageCost:
    """A stage's cost: US dollars for an LLM, None if unknown, and seconds of computing."""

    usd: float | None
    seconds: float
    is_training: bool


Costs = Mapping[str, StageCost]
"""Identity -> the stage's cost."""
StagesOfRows = Mapping[str, frozenset[str]]
"""Row -> the identities of all stages that it needs, for all seeds."""


def stages_of_rows(plan: Plan) -> StagesOfRows:
    """Return row -> the identities of all stages that it needs, for all seeds."""
    found: dict[str, frozenset[str]] = {}
    for run in plan.runs:
        found[run.variant.name] = found.get(run.variant.name, frozenset()) | needed_by(run)
    return found


def estimated(plan: Plan, store: Store) -> Costs:
    """Return each stage's estimated cost, as if no stage were cached."""
    known = StageFacts(store)
    estimator = estimator_for(plan.stages.values(), plan.experiment.runtime, known)
    found = {}
    for identity, stage in plan.stages.items():
        usd: float | None = 0.0
        operation = stage.operation
        if isinstance(operation, AskingOperation) and operation.llm is not None:
            amount = asked(known.view(stage))
            usd = None if amount is None else money(operation.llm.endpoint(), amount)
        found[identity] = StageCost(usd, estimator.seconds(stage) or 0.0, stage.kind in TRAINING)
    return found


def estimated_usd(plan: Plan, store: Store) -> float | None:
    """Return the estimated dollars for all LLMs; None if the cost of any stage is unknown."""
    usd = [cost.usd for cost in estimated(plan, store).values()]
    return None if None in usd else sum(each for each in usd if each is not None)


def paid(plan: Plan, artifacts: Artifacts) -> Costs:
    """Return what each finished stage cost: dollars by the ledger, seconds by the stage's record."""
    return {
        identity: StageCost(
            sum(entry.paid.usd + entry.in_doubt.usd for entry in entries(artifacts.answers, stage=identity)),
            float(artifacts.record(identity).get("seconds") or 0),
            stage.kind in TRAINING,
        )
        for identity, stage in plan.stages.items()
        if artifacts.has(identity)
    }


def total(costs: Iterable[StageCost], hour_usd: float) -> float:
    """Return the dollars of all stages, machine hours included; unknown costs of an LLM count as 0."""
    return sum((cost.usd or 0.0) + cost.seconds / 3600 * hour_usd for cost in costs)


def price(
    costs: Costs, rows: Iterable[str], all_rows: Iterable[str], stages: StagesOfRows, hour_usd: float
) -> "PriceAt":
    """Return the cost of a group's `rows`, all at one amount of data; `all_rows`: its rows at all amounts.

    The LLM's cost is that of `all_rows`, since answers paid for at smaller amounts are reused.
    """
    here = frozenset[str]().union(*(stages[row] for row in rows))
    ever = frozenset[str]().union(*(stages[row] for row in all_rows))
    usd = [costs[each].usd for each in ever if each in costs]
    own = [costs[each] for each in here if each in costs]
    hours = {True: 0.0, False: 0.0}
    for each in own:
        hours[each.is_training] += each.seconds / 3600
    known = [each for each in usd if each is not None]
    return PriceAt(sum(known), len(known) == len(usd), hour_usd * hours[False], hour_usd * hours[True])


@dataclass(frozen=True)
class PriceAt:
    """Dollars at one amount of data: for the LLM, for local computing of data, for training and evaluation.

    `is_known`: whether the LLM's cost could be estimated.
    """

    llm: float
    is_known: bool
    making: float
    training: float

    def each(self, amount: int, times: float = 1.0) -> DataPrice:
        """Return the prices per record for `amount` records; `times` multiplies the cost of training.

        With amount 0 there is no price per record: all costs count as training.
        """
        if not amount:
            return DataPrice(training=self.llm + self.making + self.training * times)
        return DataPrice(self.llm / amount, self.making / amount, self.training * times)
