"""Searches of prepare steps that several stages share: the data of one stage, whoever looks at which text."""

import itertools
import random
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.engine.artifacts import read_dataset
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan

STEPS = """prepare:
        - {step: drop-contaminated, sources: [test, dev]}
        - {step: drop-overlap, sources: [test], by: 13-gram}
        - {step: drop-overlap, sources: [test], by: pair}
        - {step: length, max_words: 30}"""
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen"
GOLD = (
    ("test a0", "new"),
    ("Test, A1!", "newer"),
    ("nothing of it", "in either"),
    (f"so {LONG} and on it went for quite a while", "newest"),
    (LONG.replace("seven", "sevem"), "like"),
    ("dev b1", "dev a0"),
    ("of no test", "nor of dev"),
)


@pytest.fixture
def searching(experiment: ExperimentFile) -> ExperimentFile:
    """A study that drops what is in its test and dev data."""
    experiment.change("    gold: {source: gold}", f"    gold:\n      source: gold\n      {STEPS}")
    rows = "".join(f"{first}\t{second}\t0.5\n" for first, second in GOLD)
    (experiment.folder / "gold.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}", encoding="utf-8")
    with (experiment.folder / "test.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{LONG}\tfar\t0.5\n")
    return experiment


def plan_of(experiment: ExperimentFile, shards: int) -> Plan:
    return make_plan(experiment.load(f"runtime.shards={shards}"))


def prepared(plan: Plan) -> Stage:
    """Return the stage of the steps, which rows and seeds share."""
    (found,) = (s for s in plan.stages.values() if s.kind == "prepare" and "shard" not in str(s))
    return found


def content(plan: Plan, store: Store) -> dict[str, str]:
    return {name: file["sha256"] for name, file in store.record(prepared(plan).identity)["files"].items()}


def run(plan: Plan, store: Store) -> RunReport:
    report = Runner(store, InProcess(), RUNTIME, Lines()).run(plan)
    assert not report.failed
    return report


def test_the_data_are_the_same_bytes_in_any_number_of_shards(
    searching: ExperimentFile, tmp_path: Path
) -> None:
    contents = []
    for shards in (1, 2, 4, 40):
        store, plan = Store(tmp_path / f"store{shards}"), plan_of(searching, shards)
        shared = [stage for stage in run(plan, store).executed if stage in prepared(plan).shards]
        assert len(shared) == (0 if shards == 1 else shards)
        contents.append(content(plan, store))
    assert all(each == contents[0] for each in contents)
    kept = read_dataset(store.folder(prepared(plan).identity))
    assert list(kept.text_rows()) == [("nothing of it", "in either"), ("of no test", "nor of dev")]


def test_shards_add_stages_and_change_no_identity(searching: ExperimentFile, store: Store) -> None:
    alone, divided = plan_of(searching, 1), plan_of(searching, 3)
    assert alone.stages.keys() < divided.stages.keys()
    run(alone, store)
    assert run(divided, store).executed == [], "what one stage has made is not searched again in shards"


def test_steps_that_only_look_at_records_have_no_shards(experiment: ExperimentFile) -> None:
    experiment.change(
        "    gold: {source: gold}", "    gold: {source: gold, prepare: [{step: length, max_words: 9}]}"
    )
    assert not any("shard" in str(s) for s in plan_of(experiment, 3).stages.values() if s.kind == "prepare")


@pytest.mark.parametrize("seed", range(4))
def test_any_order_and_any_interruption_give_the_same_bytes(
    seed: int, searching: ExperimentFile, tmp_path: Path
) -> None:
    """Shards end in a random order; after some of them the run is gone, and another one goes on."""
    whole, store = plan_of(searching, 1), Store(tmp_path / "whole")
    run(whole, store)
    draw = random.Random(seed)
    plan, other = plan_of(searching, 5), Store(tmp_path / "other")
    sources = [stage for stage in plan.stages.values() if stage.kind == "source"]
    shards = list(prepared(plan).shards)
    draw.shuffle(shards)
    for stage in itertools.chain(sources, shards[: draw.randrange(1, 5)]):
        outcome: JobOutcome = StageJob(other, [stage], RUNTIME, Lines()).run()
        assert outcome.executed == (stage.identity,)
    done = {stage.identity for stage in shards if other.has(stage.identity)}
    executed = run(plan, other).executed
    assert done.isdisjoint(stage.identity for stage in executed), "a finished shard is not searched again"
    assert content(plan, other) == content(whole, store)
