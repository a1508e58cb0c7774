"""Sharded generation: the same data as a single stage, in any order of shards."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import fakes
import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines, work_done

from synthbench.base.durability import write_sealed
from synthbench.base.errors import UserError
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import statuses
from synthbench.engine.runner import Runner, RunReport, matching
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store, recorded_files
from synthbench.engine.workspace import checksum
from synthbench.estimates.costs import llm_totals
from synthbench.estimates.facts import StageFacts
from synthbench.pipeline.experiment_run import collect_whole
from synthbench.pipeline.planning import make_plan
from synthbench.stages.generation import GenerateShard

SHARED = "size: 7\n      shares: yes"


@pytest.fixture
def shared(experiment: ExperimentFile) -> ExperimentFile:
    """A study whose method has seven units and can share its work."""
    return experiment.change("size: 3", SHARED.replace("yes", '"yes"'))


def run(experiment: ExperimentFile, store: Store, shards: int, *force: str) -> RunReport:
    plan = make_plan(experiment.load(f"runtime.shards={shards}"))
    report = Runner(store, InProcess(), RUNTIME, Lines()).run(plan, matching(plan, force))
    store.addresses.remember(plan.experiment.name, plan.addresses)
    return report


def generated(experiment: ExperimentFile, store: Store) -> dict[str, str]:
    """Return the hashes of the files of the generated data set."""
    (stage,) = (each for each in make_plan(experiment.load()).stages.values() if each.kind == "generate")
    return {name: file["sha256"] for name, file in store.record(stage.identity)["files"].items()}


def of_kind(stages: list[Stage], kind: str) -> list[str]:
    return [str(stage) for stage in stages if stage.kind == kind]


def test_any_number_of_shards_gives_the_same_bytes(
    shared: ExperimentFile, tmp_path: Path, work_log: Path
) -> None:
    contents = []
    for shards in (1, 2, 3, 20):
        store = Store(tmp_path / f"store{shards}")
        report = run(shared, store, shards)
        assert not report.failed
        assert len(of_kind(report.executed, "generate")) == (1 if shards == 1 else shards + 1)
        contents.append(generated(shared, store))
    assert all(content == contents[0] for content in contents)
    assert len([line for line in work_done(work_log) if line.startswith("generate")]) == 4 * 7


def test_shards_are_stages_but_not_inputs_of_the_joined_stage(shared: ExperimentFile, store: Store) -> None:
    whole = {each.identity for each in make_plan(shared.load()).stages.values()}
    divided = make_plan(shared.load("runtime.shards=2"))
    assert whole < divided.stages.keys()
    run(shared, store, 1)
    assert run(shared, store, 2).executed == [], "what one stage has made is not made again in shards"


def test_a_finished_shard_is_not_computed_again(shared: ExperimentFile, store: Store, work_log: Path) -> None:
    """A process that is killed in the middle of the second of three shards."""
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import fakes, pytest\n"
        "from pathlib import Path\n"
        "from experiment_files import ExperimentFile\n"
        "from synthbench.engine.store import Store\n"
        "from pipeline.test_sharded_runs import run\n"
        "fakes.install(pytest.MonkeyPatch())\n"
        "folder = Path(sys.argv[1])\n"
        "experiment = ExperimentFile.__new__(ExperimentFile)\n"
        "experiment.folder, experiment.file = folder, folder / 'study.yaml'\n"
        "run(experiment, Store(folder / 'store'), 3)\n"
    )
    command = [sys.executable, "-c", script, str(shared.folder), *sys.path]
    killed = subprocess.run(command, env={**os.environ, fakes.KILL_AFTER_UNITS: "3"}, check=False)
    assert killed.returncode == -signal.SIGKILL
    first = [line for line in work_done(work_log) if line.startswith("generate")]
    assert first == [f"generate unit {index}" for index in (6, 3, 0)]
    report = run(shared, store, 3)
    assert not report.failed
    made = [line for line in work_done(work_log) if line.startswith("generate")]
    assert sorted(made) == sorted(f"generate unit {index}" for index in range(7))


def test_figures_over_all_records_equal_those_of_a_single_stage(
    experiment: ExperimentFile, tmp_path: Path
) -> None:
    experiment.change("size: 3", 'size: 7\n      shares: "and measures"')
    stores = [Store(tmp_path / str(shards)) for shards in (1, 3)]
    for store, shards in zip(stores, (1, 3), strict=True):
        assert not run(experiment, store, shards).failed
    assert generated(experiment, stores[0]) == generated(experiment, stores[1])


def test_a_method_that_ignores_is_mine_is_refused(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("size: 3", 'size: 3\n      shares: "all that it has"')
    ((stage, lines),) = run(experiment, store, 2).failed.values()
    assert "fake" in str(stage)
    assert "in two shards" in lines[0]


def test_a_sharded_method_must_yield_units(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("size: 3", 'size: 3\n      shares: "yes"\n      output: bare')
    report = run(experiment, store, 2)
    assert all("must then yield Units" in lines[0] for _, lines in report.failed.values())
    assert len(report.failed) == 2


def test_a_forced_stage_is_computed_again_in_shards(shared: ExperimentFile, store: Store) -> None:
    run(shared, store, 2)
    report = run(shared, store, 2, "generate fake for silver seed 0")
    assert len(of_kind(report.executed, "generate")) == 3
    assert len(of_kind(report.executed, "train")) == 2


def test_a_damaged_shard_is_computed_again_before_the_shards_are_joined(
    shared: ExperimentFile, store: Store
) -> None:
    run(shared, store, 2)
    plan = make_plan(shared.load("runtime.shards=2"))
    whole = next(stage for stage in plan.stages.values() if stage.shards)
    before = generated(shared, store)
    for stage in plan.stages.values():
        if stage.kind in ("train", "evaluate") or stage is whole:
            store.discard(stage.identity)
    units = store.folder(whole.shards[0].identity) / "units.jsonl"
    content = units.read_bytes().replace(b"first 0", b"first 9")
    units.chmod(0o644)
    units.write_bytes(content)
    report = run(shared, store, 2)
    assert {stage.identity for stage in report.executed} >= {whole.identity, whole.shards[0].identity}
    assert whole.shards[1].identity not in {stage.identity for stage in report.executed}
    assert generated(shared, store) == before


def test_plan_counts_requests_of_shards_once(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    experiment.append(
        "llm: {name: some, base_url: http://127.0.0.1:9/v1, model: m, price: {input: 1, output: 1,"
        " date: 2026-01-01}}\n"
    )
    lines = []
    for shards in (1, 2):
        plan = make_plan(experiment.load(f"runtime.shards={shards}"))
        lines.append(list(llm_totals(statuses(plan, store), StageFacts(store))))
    assert lines[0] == lines[1]
    assert "about 4 requests" in lines[0][0]


def entry(**changes: Any) -> bytes:
    """Return a line of a journal, with a right checksum."""
    row = {"kind": "scored_pair", "id": "x", "sentence1": "a", "sentence2": "b", "score": 0.5}
    content = json.dumps({"key": "k", "position": 0, "records": [row], **changes}).encode()
    return b'{"check": "%b", "entry": %b}\n' % (checksum(content), content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("units.jsonl", b"[]\n"),
        ("units.jsonl", entry(key=7)),
        ("units.jsonl", entry(position=2**70)),
        ("units.jsonl", entry(records=[{}])),
        ("units.jsonl", entry(records=[{"kind": "pair", "anchor": 7, "positive": []}])),
        ("units.jsonl", entry(records=[{"kind": "scored_pair", "evil": 1}])),
        ("units.jsonl", entry(records=[{"kind": "failure", "reason": "\ud800"}])),
        ("units.jsonl", entry(dropped=[])),
        ("counts.json", b"[]"),
        ("counts.json", b'{"dropped": {}, "measured": {}, "evil": 1}'),
        ("counts.json", b'{"dropped": {"x": null}, "measured": {}}'),
    ],
)
def test_an_invalid_shard_is_refused(
    shared: ExperimentFile, tmp_path: Path, name: str, content: bytes
) -> None:
    stages = make_plan(shared.load("runtime.shards=2")).stages.values()
    stage = next(each for each in stages if isinstance(each.operation, GenerateShard))
    (tmp_path / "counts.json").write_text('{"dropped": {}, "measured": {}}', encoding="utf-8")
    (tmp_path / "units.jsonl").write_bytes(entry())
    stage.operation.check_artifact(tmp_path, stage)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match="not what such a stage writes"):
        stage.operation.check_artifact(tmp_path, stage)


def forge(store: Store, stage: Stage, name: str, content: bytes = b"null") -> None:
    """Let a stage's artifact hold another file than such a stage writes, with right checksums."""
    folder, record = store.folder(stage.identity), store.record(stage.identity)
    (folder / "stage.json").unlink()
    (folder / name).write_bytes(content)
    write_sealed(folder / "stage.json", {**record, "files": recorded_files(folder)})


def num_damaged(lines: Lines) -> int:
    return len([line for line in lines.said if "is damaged" in line])


def test_invalid_shards_are_computed_again(shared: ExperimentFile, store: Store) -> None:
    run(shared, store, 2)
    before = generated(shared, store)
    plan, lines = make_plan(shared.load("runtime.shards=2")), Lines()
    for stage in plan.stages.values():
        if isinstance(stage.operation, GenerateShard):
            forge(store, stage, "counts.json")
        elif stage.kind in ("generate", "train", "evaluate"):
            store.discard(stage.identity)
    assert not Runner(store, InProcess(), RUNTIME, lines).run(plan).failed
    assert (generated(shared, store), num_damaged(lines)) == (before, 2)


@pytest.mark.parametrize("content", [b"null", b'{"main_score": "x", "scores": {}, "num_items": 1}'])
def test_invalid_scores_are_computed_again_when_shards_are_joined(
    experiment: ExperimentFile, store: Store, content: bytes
) -> None:
    run(experiment, store, 1)
    plan, lines = make_plan(experiment.load()), Lines()
    scores = [stage for stage in plan.stages.values() if stage.kind == "evaluate"]
    for stage in scores:
        forge(store, stage, "scores.json", content)
    runner = Runner(store, InProcess(), RUNTIME, lines)
    result = collect_whole(plan, runner, runner.run(plan))
    assert (len(result.runs), num_damaged(lines)) == (len(plan.runs), len(scores))
