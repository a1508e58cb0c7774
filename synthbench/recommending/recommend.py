"""Run the phases of a recommendation, and return what came of them."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from synthbench.base.errors import PendingError, UserError
from synthbench.config.experiment import Experiment
from synthbench.config.overrides import Overrides
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.stores import open_store
from synthbench.pipeline.experiment_run import Computed, RunProgress, compute, record
from synthbench.pipeline.invocation import load_invocation, typed_options
from synthbench.pipeline.planning import make_outline, make_plan
from synthbench.recommending.amounts import (
    FIRST_ROUND_SHARE,
    PILOT_SHARE,
    DataPrice,
    pilot_amounts,
    race_amounts,
)
from synthbench.recommending.answer import AnswerLine, more_money
from synthbench.recommending.curves import MOST_AHEAD, Forecast, forecast
from synthbench.recommending.files import Decisions, PhaseFiles
from synthbench.recommending.outcome import (
    Measured,
    Recommendation,
    cell_of,
    dev_scores,
    on_test,
    without_difference,
)
from synthbench.recommending.phases import DEV, Contest, PhaseRow
from synthbench.recommending.race import MOST_RUNNING, RULE, standing
from synthbench.recommending.spending import (
    PriceAt,
    StageCost,
    estimated,
    estimated_usd,
    paid,
    price,
    stages_of_rows,
    total,
)
from synthbench.recommending.standard import FIRST
from synthbench.recommending.synthetic import SyntheticSet
from synthbench.reporting.results import ExperimentResult

PLANNED = 0.95
"""The share of what is left that a plan spends: estimates may be too low."""
PROBED = 1_000
"""The most records from which costs are estimated."""
RATE_SEEDS = (0, 1)
"""The seeds with which learning rates are tried."""
LATER = (2, 5)
"""How many times as much data the answer forecasts."""


@dataclass
class _State:
    """What is known so far: dev scores by contender and amount, costs by stage."""

    scores: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    rows: dict[str, list[PhaseRow]] = field(default_factory=dict)
    costs: dict[str, StageCost] = field(default_factory=dict)
    stages: dict[str, frozenset[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


@dataclass
class Recommender:
    """Runs one study's phases; every decision follows from the phase files and the stored results."""

    study: Contest
    files: PhaseFiles
    overrides: Overrides
    progress: RunProgress
    jobs: int
    output: Path
    where: str
    """Location of the budget in the user's file, for messages."""
    notes: tuple[str, ...] = ()
    """What the page should say of the data and recipes."""
    synthetic: SyntheticSet | None = None
    """The dev set that the study's LLM makes first, if any."""

    def __post_init__(self) -> None:
        self.state = _State()
        self.written: dict[str, Path] = {}
        self.reports: dict[str, Path] = {}

    def run(self) -> Recommendation:
        """Run all phases and return the recommendation.

        Raises UserError if the budget is under the pilot's cost, or if nothing could be measured, and
        PendingError if an LLM's batch is not done yet.
        """
        if self.synthetic is not None:
            self._make_dev(self.synthetic)
        last = self._pilot()
        running: Sequence[str] = tuple(self.state.scores)
        for number, most in enumerate(MOST_RUNNING, 1):
            running = self._standing(running, most)
            result = self._race(
                f"race-{number}", running, self._rest() if number > 1 else self._first_round()
            )
            if result is None:
                break
            last = result
        return self._answer(last)

    @property
    def spent(self) -> float:
        """The dollars of all stages of all phases, each counted once."""
        return total(self.state.costs.values(), self.study.hour_usd)

    def count(self, experiment: Experiment, computed: Computed) -> None:
        """Count what an experiment's stages cost."""
        plan = make_plan(experiment)
        self.state.costs |= paid(plan, computed.artifacts)
        self.state.stages |= stages_of_rows(plan)

    # Phases

    def _make_dev(self, wanted: SyntheticSet) -> None:
        """Let the LLM make a dev set; if it can't, say why.

        Raises UserError if it can't be made and the study has no other, or if another file has its name.
        """
        # The pilot must be affordable before anything is paid.
        decided = self.files.decisions(DEV, self._pilot_amounts)
        document = wanted.document(self.study)
        about = f"Dev set of '{self.study.name}': the LLM labels or writes it; no person has seen it."
        file = self.files.write(DEV, document, decided, about)
        outline = make_outline(load_invocation(file, self.overrides).experiment)
        usd, why = estimated_usd(outline, open_store()), ""
        if usd is None:
            why = "what the LLM would cost can't be estimated"
        elif usd > PILOT_SHARE * self.study.usd:
            why = f"it would cost {usd:,.2f} dollars, more than a tenth of the budget"
        if why:
            file.unlink()
        else:
            computed = self._compute(DEV, document, decided, about)
            made = computed.result.runs[0].datasets[-1]
            dataset = SyntheticDataset.read(computed.artifacts.dataset(made.stage))
            why = wanted.why_useless(dataset)
        if why and not self.study.devs:
            raise UserError(f"{self.where}: no dev set: {why}")
        if why:
            self.notes = (*self.notes, f"There is no synthetic dev set: {why}.")
            return
        self.study = wanted.use(dataset, self.study)
        self.notes = (*self.notes, wanted.said(dataset))

    def _pilot(self) -> ExperimentResult:
        decide = partial(
            self.files.decisions, "rates", partial(self.files.decisions, DEV, self._pilot_amounts)
        )
        decided = self.files.decisions("pilot", decide)
        for name, why in decided["left_out"].items():
            self._leave_out([name], why)
        rates = self._rates(decided)
        self.study = self.study.with_rates(rates)
        rows = [
            PhaseRow(name, min(amount, contender.available))
            for name, contender in self.study.contenders.items()
            for amount in decided["amounts"][name] or [0]
        ]
        about = (
            f"Pilot of '{self.study.name}': every recipe at several amounts of data, scored on dev."
            f" Fixed before the first score: {RULE}"
        )
        return self._run_phase("pilot", rows, decided | {"rates": rates}, about)

    def _pilot_amounts(self) -> Decisions:
        probed = [PhaseRow(name, min(each.available, PROBED)) for name, each in self.study.contenders.items()]
        is_dev_known = self.study.devs or DEV in self.study.long["sources"]
        study = self.study if is_dev_known else self.study.with_dev({DEV: FIRST.dev}, {DEV: "sts"})
        document = study.phase("probe", study.with_starts(probed), seeds=[0])
        file = self.files.write("probe", document, {}, "What recipes would cost; never run.")
        try:
            plan = make_outline(load_invocation(file, self.overrides).experiment)
            costs = estimated(plan, open_store())
        finally:
            file.unlink(missing_ok=True)
        stages = stages_of_rows(plan)
        rows = {row.contender: row.name for row in probed if row.name in stages}
        left_out = {
            name: "it computes the same as another recipe"
            for name in self.study.contenders
            if name not in rows
        }
        prices: dict[str, DataPrice] = {}
        available: dict[str, int] = {}
        for group, names in self.study.groups.items():
            own = [rows[name] for name in names if name in rows]
            at = price(costs, own, own, stages, self.study.hour_usd)
            if not at.is_known:
                left_out |= dict.fromkeys(names, "what its LLM would cost can't be estimated")
                continue
            available[group] = max(self.study.contenders[name].available for name in names)
            prices[group] = at.each(min(available[group], PROBED), times=len(self._seeds))
        amounts = pilot_amounts(prices, available, self.study.usd, self.where)
        of_all = {name: amounts[group] for group in amounts for name in self.study.groups[group]}
        return {"amounts": of_all, "left_out": left_out}

    def _leave_out(self, names: Collection[str], why: str) -> None:
        """Take recipes out of the study, and those that start from them.

        Raises UserError if nothing remains to compare with the baseline.
        """
        gone = set(names)
        for name, each in self.study.contenders.items():
            if each.starts_from in gone:
                gone.add(name)
        if self.study.baseline in gone:
            raise UserError(f"{self.study.baseline}: {why}")
        self.state.left_out |= {name: why for name in self.study.contenders if name in gone}
        kept = {name: each for name, each in self.study.contenders.items() if name not in gone}
        if len(kept) < 2:
            raise UserError(*(f"{name}: {reason}" for name, reason in self.state.left_out.items()))
        self.study = replace(self.study, contenders=kept)

    def _rates(self, decided: Decisions) -> dict[str, float]:
        """Return each contender's learning rate: the best on dev of those that its recipe tries."""
        rows = [
            PhaseRow(name, min(max(decided["amounts"][name], default=0), each.available), rate)
            for name, each in self.study.contenders.items()
            if len(each.rates) > 1
            for rate in each.rates
        ]
        if not rows:
            return {}
        about = (
            f"Learning rates of '{self.study.name}': each recipe takes the one with the highest mean dev"
            f" score over {len(RATE_SEEDS)} seeds, of equal ones the first."
        )
        result = self._run_phase("rates", rows, decided, about, seeds=RATE_SEEDS, measures=False)
        found = {name: fmean(scores) for name, scores in dev_scores(result).items()}
        best: dict[str, PhaseRow] = {}
        for row in rows:
            if row.name in found:
                before = best.get(row.contender)
                if before is None or found[row.name] > found[before.name]:
                    best[row.contender] = row
        return {name: row.tried for name, row in best.items() if row.tried is not None}

    def _race(self, phase: str, running: Sequence[str], usd: float) -> ExperimentResult | None:
        """Give the running recipes more data; None if there is none, or no money for it."""
        if not running:
            return None
        decided = self.files.decisions(phase, lambda: {"amounts": self._race_amounts(running, usd)})
        rows = [PhaseRow(name, decided["amounts"].get(name, self._largest(name))) for name in running]
        if all(row.amount <= self._largest(row.contender) for row in rows):
            return None
        about = f"Race of '{self.study.name}': what is left of the budget goes to those that may win. {RULE}"
        return self._run_phase(phase, [PhaseRow(self.study.baseline), *rows], decided, about)

    def _race_amounts(self, running: Sequence[str], usd: float) -> dict[str, int]:
        groups = list(dict.fromkeys(map(self.study.group_of, running)))
        paid_for = {group: self._largest_of_group(group) for group in groups}
        found = race_amounts(
            {group: self._price(group) for group in groups},
            paid_for,
            {group: self._available(group) for group in groups},
            usd,
        )
        return {
            name: min(found[self.study.group_of(name)], self.study.contenders[name].available)
            for name in running
        }

    def _run_phase(
        self,
        phase: str,
        rows: Sequence[PhaseRow],
        decided: Decisions,
        about: str,
        seeds: Sequence[int] = (),
        *,
        measures: bool = True,
    ) -> ExperimentResult:
        rows = self.study.with_starts(rows)
        document = self.study.phase(
            phase,
            rows,
            description=about.partition(". ")[0].partition(": ")[2].capitalize(),
            seeds=list(seeds or self._seeds),
            table={"compare_to": {self.study.baseline: []}} if PhaseRow(self.study.baseline) in rows else {},
        )
        self.progress.say(f"{phase}: {len(rows)} rows, {len(document['seeds'])} seeds")
        result = self._compute(phase, document, decided, about).result
        scores = dev_scores(result)
        for row in rows if measures else ():
            if row.name in scores:
                self.state.rows.setdefault(row.contender, []).append(row)
                self.state.scores.setdefault(row.contender, {})[row.amount] = scores[row.name]
        missing = {row.contender for row in rows if row.name not in scores} - set(self.state.scores)
        if measures and missing:
            self._leave_out(missing, f"its runs failed; {self.reports[phase]} says why")
        return result

    def _compute(self, phase: str, document: dict[str, Any], decided: Decisions, about: str) -> Computed:
        llm = document.get("llm")
        if isinstance(llm, dict) and "budget_usd" in llm:
            document = {**document, "llm": {**llm, "budget_usd": round(max(self._left(), 0.01), 2)}}
        file = self.written[phase] = self.files.write(phase, document, decided, about)
        invocation = load_invocation(file, self.overrides)
        computed = compute(invocation, self.progress, jobs=self.jobs, force=(), output=self.output)
        if computed.report.pending:
            raise PendingError(*computed.report.pending_lines)
        if not computed.result.runs:
            raise UserError(*computed.report.failure_lines)
        recorded = record(computed, self.progress)
        if recorded.errors:
            raise UserError(*recorded.errors)
        self.reports[phase] = computed.folder
        self.count(invocation.experiment, computed)
        return computed

    # Decisions

    @property
    def _seeds(self) -> list[int]:
        return list(self.study.long["seeds"])

    def _left(self) -> float:
        return self.study.usd - self.spent

    def _rest(self) -> float:
        return max(PLANNED * self._left(), 0.0)

    def _first_round(self) -> float:
        return min(FIRST_ROUND_SHARE * self.study.usd, self._rest())

    def _largest(self, name: str) -> int:
        return max(self.state.scores[name], default=0)

    def _largest_of_group(self, group: str) -> int:
        return max(self._largest(name) for name in self.study.groups[group] if name in self.state.scores)

    def _available(self, group: str) -> int:
        return max(self.study.contenders[name].available for name in self.study.groups[group])

    def _price(self, group: str) -> DataPrice:
        """Return the price of a group's data, from what its largest amount cost."""
        largest = self._largest_of_group(group)
        rows = [row for name in self.study.groups[group] for row in self.state.rows.get(name, ())]
        here = [row.name for row in rows if row.amount == self._largest(row.contender)]
        return self._price_at(here, [row.name for row in rows]).each(largest)

    def _price_at(self, rows: Sequence[str], all_rows: Sequence[str]) -> PriceAt:
        return price(self.state.costs, rows, all_rows, self.state.stages, self.study.hour_usd)

    def _standing(self, running: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the recipes that go on by the race's rule, best forecast first."""
        forecasts = {name: self._forecast(name) for name in dict.fromkeys([*running, self.study.baseline])}
        found = standing(forecasts, most, self.study.baseline)
        self.state.dropped |= found.dropped
        for name, why in found.dropped.items():
            self.progress.say(f"dropped {name}: {why}")
        return found.running

    def _forecast(self, name: str) -> Forecast:
        """Return the forecast for a recipe's share of what is left."""
        reach = self.affordable(name, self._rest() / MOST_RUNNING[0])
        amount = min(reach, MOST_AHEAD * self._largest(name))
        return forecast(self.state.scores[name], amount)

    def affordable(self, name: str, usd: float) -> int:
        """Return how much data a measured recipe has with these dollars more; 0 if it has no amount."""
        group = self.study.group_of(name)
        prices, paid_for = {group: self._price(group)}, {group: self._largest_of_group(group)}
        found = race_amounts(prices, paid_for, {group: self._available(group)}, usd)
        return min(found[group], self.study.contenders[name].available)

    # Answer

    def _answer(self, last: ExperimentResult) -> Recommendation:
        latest = {name: PhaseRow(name, self._largest(name)) for name in self.state.scores}
        names = {row.name: name for name, row in latest.items()}
        dev = {name: fmean(self.state.scores[name][row.amount]) for name, row in latest.items()}
        rows_of_last = {run.variant for run in last.runs}
        alive = [
            name
            for name, row in latest.items()
            if row.name in rows_of_last and name not in self.state.dropped
        ]
        winner = max(dict.fromkeys([*alive, self.study.baseline]), key=lambda name: dev[name])
        others = [name for name in alive if name != self.study.baseline] or [
            name for name in latest if name != self.study.baseline
        ]
        challenger = winner if winner != self.study.baseline else max(others, key=lambda name: dev[name])
        equals = [
            names[other]
            for other in without_difference(last, latest[winner].name)
            if other in names and names[other] not in (winner, self.study.baseline)
        ]
        usd = {name: self._usd(name) for name in latest}
        final = self._final(latest[challenger])
        tested, baseline_score = on_test(final, challenger, self.study.baseline)
        answer = AnswerLine(winner, self.study.baseline, challenger, tested, baseline_score, equals, usd)
        for name, row in latest.items():
            if name != answer.recipe:
                self.state.dropped.setdefault(
                    name, self._why_not(name, winner, is_in_last=row.name in rows_of_last)
                )
        return Recommendation(
            name=self.study.name,
            recipe=answer.recipe,
            score=100 * (tested.score if answer.recipe == challenger else baseline_score),
            answer=answer.line,
            more=self._more_money(answer.recipe, dev[answer.recipe]),
            spent=f"Spent: {self.spent:,.2f} of {self.study.usd:,.2f} dollars, machine hours included.",
            measured=tuple(self._lines(latest, dev, usd)),
            left_out=self.state.left_out,
            files=tuple(self.written.values()),
            reports=self.reports,
            export=self._export(answer.recipe),
            notes=self.notes,
        )

    def _why_not(self, name: str, winner: str, *, is_in_last: bool) -> str:
        """Return why a recipe that no round of the race dropped is not the answer."""
        if name == winner:
            return "is clearly below the baseline on the test set"
        if name == self.study.baseline:
            return "is the baseline"
        return (
            f"its dev score is not above that of {winner}" if is_in_last else "its runs with more data failed"
        )

    def _final(self, challenger: PhaseRow) -> ExperimentResult:
        rows = self.study.with_starts([PhaseRow(self.study.baseline), challenger])
        about = (
            f"Answer of '{self.study.name}': the best recipe on dev against the baseline, once, on the test"
            " set."
        )
        table = {"compare_to": {self.study.baseline: [challenger.contender]}}
        document = self.study.final(rows, description=about, seeds=self._seeds, table=table)
        return self._compute("final", document, {}, about).result

    def _usd(self, name: str) -> float:
        """Return what a recipe costs at its largest amount: its LLM, making its data, training one model."""
        rows = self.study.with_starts(self.state.rows[name])
        here = self.study.with_starts([PhaseRow(name, self._largest(name))])
        at = self._price_at([row.name for row in here], [row.name for row in rows])
        return at.llm + at.making + at.training / len(self._seeds)

    def _more_money(self, recipe: str, now: float) -> str:
        contender, largest = self.study.contenders[recipe], self._largest(recipe)
        group = self.study.group_of(recipe)
        amounts = dict.fromkeys(min(times * largest, contender.available) for times in LATER)
        later = [
            (self._price(group).of(amount), forecast(self.state.scores[recipe], amount))
            for amount in amounts
            if amount > largest
        ]
        return more_money(recipe, now, later, contender.counted)

    def _lines(
        self, latest: Mapping[str, PhaseRow], dev: Mapping[str, float], usd: Mapping[str, float]
    ) -> Iterator[Measured]:
        for name in sorted(latest, key=lambda each: -dev[each]):
            cells = tuple((size, cell_of(scores)) for size, scores in sorted(self.state.scores[name].items()))
            reads = self.study.contenders[name].counted
            yield Measured(name, reads, cells, usd[name], self.state.dropped.get(name, ""))

    def _export(self, recipe: str) -> str:
        words = ["synthbench", "export", "model", str(self.written["final"]), recipe]
        command = shlex.join([*words, "--to", f"{self.study.name}-model"])
        return " ".join([command, *typed_options(self.overrides)])
