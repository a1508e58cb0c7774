"""Chains with an LLM: what one part wrote is judged for another, and each part's cost is counted once."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.api import Labeller, UserError, Verdict
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.llm.ledger import entries
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.results import ExperimentResult
from synthbench.results.collect import collect

EXPERIMENT = """\
experiment: judged
sources:
  given: {file: given.txt, kind: sentence}
llm: {endpoint: sandbox, habits: 0.0, malformed: 0.3}
defaults:
  data:
    written: {method: syncse-partial, sources: {sentences: given}}
    judged:
      method: relabel
      sources: {triplets: {part: written}}
      labeller: {judge: {}}
    half:
      method: relabel
      sources: {triplets: {part: written}}
      labeller: {judge: {}}
      share: 0.5
"""
SENTENCES = (
    "Two young chefs are slicing potatoes in the kitchen at noon.",
    "A farmer is feeding the cows in the barn.",
    "A nurse is washing a patient at night.",
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "given.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    file = tmp_path / "judged.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    return make_plan(load_experiment(file, Overrides()))


def computed(plan: Plan, store: Store) -> RunReport:
    lines = Lines()
    with llms_on_demand(lines) as llm:
        return Runner(store, InProcess(), RUNTIME, lines, llm, plan.experiment.name).run(plan)


def results(plan: Plan, store: Store) -> ExperimentResult:
    assert not computed(plan, store).failed
    return collect(plan, Artifacts(store))


def test_generated_pairs_are_judged_once_and_each_part_has_its_cost(plan: Plan, store: Store) -> None:
    result = results(plan, store)
    assert [(cost.part, cost.method) for cost in result.costs] == [
        ("written", "syncse-partial"),
        ("judged", "relabel"),
    ]
    written, judged = result.costs
    assert (written.num_requests, judged.num_requests) == (6, 2 * written.num_records)
    assert sum(entry.answered.num_attempts for entry in entries(Artifacts(store).answers)) == sum(
        cost.num_requests for cost in result.costs
    )
    datasets = {data.part: data for data in result.runs[0].datasets}
    assert datasets["judged"].num_records + datasets["judged"].num_failures == judged.num_requests
    assert datasets["judged"].num_failures == datasets["half"].dropped["no clear answer"]
    assert datasets["half"].num_records == datasets["judged"].num_records
    assert datasets["judged"].measured["relabel: mean of the former scores"] == pytest.approx(0.5, abs=0.2)


def test_a_killed_run_resumes_to_the_same_data_and_figures(
    plan: Plan, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = results(plan, Store(tmp_path / "other"))
    original = Labeller.verdicts

    def cut_off(*arguments: Any) -> Iterator[tuple[int, Verdict]]:
        yield from islice(original(*arguments), 2)
        raise UserError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(Labeller, "verdicts", cut_off)
        assert computed(plan, store).failed
    resumed = results(plan, store)
    assert [(data.part, data.content_hash, data.measured) for data in resumed.runs[0].datasets] == [
        (data.part, data.content_hash, data.measured) for data in undisturbed.runs[0].datasets
    ]
    assert "relabel: Spearman of new and former" in resumed.runs[0].datasets[1].measured


def test_requests_are_estimated_along_the_chain(plan: Plan, store: Store) -> None:
    found = {stage.operation.component: lines for stage, lines in costs(statuses(plan, store), store)}
    (relabelled,) = (lines for name, lines in found.items() if name == "relabel")
    assert "about 6 requests" in relabelled[0]
