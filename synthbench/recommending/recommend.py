"""Run the phases of a recommendation, and return the answer with its evidence."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from synthbench.base.errors import PendingError, UserError
from synthbench.config.overrides import Overrides
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.stores import open_store
from synthbench.pipeline.experiment_run import Computed, RunProgress, compute, record
from synthbench.pipeline.invocation import load_invocation, typed_options
from synthbench.pipeline.planning import make_outline, make_plan
from synthbench.recommending.amounts import PILOT_SHARE, DataPrice, pilot_amounts
from synthbench.recommending.answer import AnswerLine
from synthbench.recommending.files import Decisions, PhaseFiles
from synthbench.recommending.known import Known
from synthbench.recommending.outcome import Recommendation, dev_scores, on_test, without_difference
from synthbench.recommending.phases import DEV, Contest, PhaseRow
from synthbench.recommending.race import MOST_RUNNING, RULE
from synthbench.recommending.spending import estimated, estimated_usd, price, stages_of_rows
from synthbench.recommending.standard import FIRST
from synthbench.recommending.synthetic import SyntheticSet
from synthbench.reporting.results import ExperimentResult

PROBED = 1_000
"""Costs are estimated for at most this many records, and prices per record derived from them."""
RATE_SEEDS = (0, 1)
"""The seeds with which learning rates are tried."""


@dataclass
class Recommender:
    """Runs one study's phases; every decision follows from the phase files and the stored results."""

    known: Known
    files: PhaseFiles
    overrides: Overrides
    progress: RunProgress
    jobs: int
    output: Path
    where: str
    """Location of the budget in the user's file, for messages."""
    notes: tuple[str, ...] = ()
    """Notes on the data and recipes for the page."""
    synthetic: SyntheticSet | None = None
    """The dev set that the study's LLM makes first, if any."""

    def __post_init__(self) -> None:
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
        running: Sequence[str] = tuple(self.known.scores)
        for number, most in enumerate(MOST_RUNNING, 1):
            found = self.known.standing(running, most)
            for name, why in found.dropped.items():
                self.progress.say(f"dropped {name}: {why}")
            running = found.running
            usd = self.known.first_round if number == 1 else self.known.rest
            result = self._race(f"race-{number}", running, usd)
            if result is None:
                break
            last = result
        return self._answer(last)

    @property
    def study(self) -> Contest:
        """The competing recipes, with the settings that earlier phases chose."""
        return self.known.study

    @property
    def _seeds(self) -> list[int]:
        return list(self.study.long["seeds"])

    # Phases

    def _make_dev(self, wanted: SyntheticSet) -> None:
        """Let the LLM make a dev set and add the set to the study, or add a note on why there is none.

        Raises UserError if the study is left without any dev set, or if a user's file has the name of a file
        to write.
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
        self.known.study = wanted.use(dataset, self.study)
        self.notes = (*self.notes, wanted.said(dataset))

    def _pilot(self) -> ExperimentResult:
        decide = partial(
            self.files.decisions, "rates", partial(self.files.decisions, DEV, self._pilot_amounts)
        )
        decided = self.files.decisions("pilot", decide)
        for name, why in decided["left_out"].items():
            self.known.leave_out([name], why)
        rates = self._rates(decided)
        self.known.study = self.study.with_rates(rates)
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
            available[group] = self.study.available(group)
            prices[group] = at.each(min(available[group], PROBED), times=len(self._seeds))
        amounts = pilot_amounts(prices, available, self.study.usd, self.where)
        of_all = {name: amounts[group] for group in amounts for name in self.study.groups[group]}
        return {"amounts": of_all, "left_out": left_out}

    def _rates(self, decided: Decisions) -> dict[str, float]:
        """Return contender -> its best learning rate on dev, for recipes that try several rates."""
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
        """Train the running recipes on more data and return the result.

        None if no recipe is running, or if there is no more data, or no money for it.
        """
        if not running:
            return None
        decided = self.files.decisions(phase, lambda: {"amounts": self.known.affordable(running, usd)})
        rows = [PhaseRow(name, decided["amounts"].get(name, self.known.largest(name))) for name in running]
        if all(row.amount <= self.known.largest(row.contender) for row in rows):
            return None
        about = f"Race of '{self.study.name}': what is left of the budget goes to those that may win. {RULE}"
        return self._run_phase(phase, [PhaseRow(self.study.baseline), *rows], decided, about)

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
        self.known.add(rows if measures else (), scores)
        unseeded = {run.variant for run in result.runs if not run.is_seeded}
        self.known.unseeded |= {row.contender for row in rows if row.name in unseeded}
        missing = {row.contender for row in rows if row.name not in scores} - set(self.known.scores)
        if measures and missing:
            self.known.leave_out(missing, f"its runs failed or scored NaN; {self.reports[phase]} says why")
        return result

    def _compute(self, phase: str, document: dict[str, Any], decided: Decisions, about: str) -> Computed:
        llm = document.get("llm")
        if isinstance(llm, dict) and "budget_usd" in llm:
            document = {**document, "llm": {**llm, "budget_usd": round(max(self.known.left, 0.01), 2)}}
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
        self.known.count(make_plan(invocation.experiment), computed.artifacts)
        return computed

    # Answer

    def _answer(self, last: ExperimentResult) -> Recommendation:
        latest = {name: PhaseRow(name, self.known.largest(name)) for name in self.known.scores}
        names = {row.name: name for name, row in latest.items()}
        dev = {name: fmean(self.known.scores[name][row.amount]) for name, row in latest.items()}
        rows_of_last = {run.variant for run in last.runs}
        alive = [
            name
            for name, row in latest.items()
            if row.name in rows_of_last and name not in self.known.dropped
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
        usd = {name: self.known.usd(name) for name in latest}
        final = self._final(latest[challenger])
        tested, baseline_score = on_test(final, challenger, self.study.baseline)
        answer = AnswerLine(winner, self.study.baseline, challenger, tested, baseline_score, equals, usd)
        for name, row in latest.items():
            if name != answer.recipe:
                self.known.dropped.setdefault(
                    name, self._why_not(name, winner, is_in_last=row.name in rows_of_last)
                )
        return Recommendation(
            name=self.study.name,
            recipe=answer.recipe,
            score=100 * (tested.score if answer.recipe == challenger else baseline_score),
            answer=answer.line,
            more=self.known.more_money(answer.recipe, dev[answer.recipe]),
            spent=f"Spent: {self.known.spent:,.2f} of {self.study.usd:,.2f} dollars, machine hours included.",
            measured=tuple(self.known.measured(dev, usd)),
            left_out=self.known.left_out,
            files=tuple(self.written.values()),
            reports=self.reports,
            export=self._export(answer.recipe),
            notes=self.notes,
        )

    def _why_not(self, name: str, winner: str, *, is_in_last: bool) -> str:
        """Return why a recipe is not the answer although no round of the race dropped it."""
        if name == winner:
            return "is clearly below the baseline on the test set"
        if name == self.study.baseline:
            return "is the baseline"
        if is_in_last:
            return f"its dev score is not above that of {winner}"
        return "its runs with more data failed or scored NaN"

    def _final(self, challenger: PhaseRow) -> ExperimentResult:
        rows = self.study.with_starts([PhaseRow(self.study.baseline), challenger])
        about = (
            f"Answer of '{self.study.name}': the best recipe on dev against the baseline, once, on the test"
            " set."
        )
        table = {"compare_to": {self.study.baseline: [challenger.contender]}}
        document = self.study.final(rows, description=about, seeds=self._seeds, table=table)
        return self._compute("final", document, {}, about).result

    def _export(self, recipe: str) -> str:
        words = ["synthbench", "export", "model", str(self.written["final"]), recipe]
        command = shlex.join([*words, "--to", f"{self.study.name}-model"])
        return " ".join([command, *typed_options(self.overrides)])
