"""The tracking of a running run in MLflow."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from small_experiment import Project, heed_interrupts

from synthbench.base.errors import UserError
from synthbench.config.overrides import Overrides
from synthbench.engine.stores import open_store
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.so_far import runs_so_far
from synthbench.tracking import live_worker
from synthbench.tracking.live import LiveNames, LiveRuns
from synthbench.tracking.live_worker import live_tracking
from synthbench.tracking.mlflow_tracker import MlflowTracker

MakeRun = Callable[..., RunResult]


@pytest.fixture
def names(request: pytest.FixtureRequest) -> LiveNames:
    """An experiment of the test's own, whose result has this request."""
    return LiveNames(request.node.name, request.node.name, "request-1")


def runs_of(tracker: MlflowTracker, names: LiveNames) -> dict[str, Run]:
    client = MlflowClient(tracker.uri)
    experiment = client.get_experiment_by_name(names.experiment)
    assert experiment is not None
    return {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}


def curve_of(tracker: MlflowTracker, run: Run) -> list[tuple[int, float]]:
    history = MlflowClient(tracker.uri).get_metric_history(run.info.run_id, "training/loss")
    return [(point.step, point.value) for point in history]


def unfinished(run: RunResult, num_points: int) -> tuple[RunResult, bool]:
    return run.model_copy(update={"scores": (), "history": run.history[:num_points]}), False


def update(tracker: MlflowTracker, runs: LiveRuns, *known: tuple[RunResult, bool]) -> None:
    with tracker.writing():
        runs.update(known)


def test_a_live_run_shows_a_growing_curve_and_finally_the_scores(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun
) -> None:
    run, live_runs = make_run("gold", 1), tracker.live_runs(names)
    title = f"{names.title} (being computed)"
    update(tracker, live_runs, unfinished(run, 1))
    assert curve_of(tracker, runs_of(tracker, names)["gold · static · seed 1"]) == [(0, 1.0)]
    update(tracker, live_runs, unfinished(run, 2))
    begun = runs_of(tracker, names)
    assert {name: each.info.status for name, each in begun.items()} == {
        title: "RUNNING",
        "gold · static · seed 1": "RUNNING",
    }
    update(tracker, live_runs, (run, True), unfinished(make_run("gold", 2), 1))
    found = runs_of(tracker, names)
    child = found["gold · static · seed 1"]
    assert curve_of(tracker, child) == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
    assert child.info.status == "FINISHED"
    assert child.data.metrics["score/STSb"] == child.data.metrics["STSb/cosine_spearman"] == 0.71
    assert child.data.tags["mlflow.parentRunId"] == found[title].info.run_id
    assert (child.data.tags["variant"], child.data.tags["base"], child.data.tags["seed"]) == (
        "gold",
        "static",
        "1",
    )
    assert found["gold · static · seed 2"].info.status == "RUNNING"


def test_the_result_replaces_its_live_runs(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    names = LiveNames(result.experiment, result.title, result.request)
    other = LiveNames(result.experiment, "overridden", "request-2")
    update(tracker, tracker.live_runs(names), (result.runs[0], True))
    update(tracker, tracker.live_runs(other), (result.runs[0], True))
    tracker.log(result, report_folder)
    kinds = [run.data.tags["synthbench.kind"] for run in runs_of(tracker, names).values()]
    assert "overridden (being computed)" in runs_of(tracker, names)
    assert f"{result.title} (being computed)" not in runs_of(tracker, names)
    assert kinds.count("live") == 1


def test_a_killed_commands_live_runs_remain_until_the_next_command_creates_some(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun
) -> None:
    update(tracker, tracker.live_runs(names), unfinished(make_run("gold", 0), 3))
    elsewhere = tracker.live_runs(names)
    elsewhere.home = Path("/another")
    update(tracker, elsewhere, unfinished(make_run("gold", 2), 3))
    successor = tracker.live_runs(names)
    assert "gold · static · seed 0" in runs_of(tracker, names)
    update(tracker, successor, unfinished(make_run("gold", 1), 3))
    assert {name for name in runs_of(tracker, names) if "seed" in name} == {
        "gold · static · seed 1",
        "gold · static · seed 2",
    }


def test_without_a_result_the_dashboard_opens_live_runs(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun
) -> None:
    update(tracker, tracker.live_runs(names), unfinished(make_run("gold", 0), 3))
    addresses = tracker.addresses(names.experiment)
    parent = runs_of(tracker, names)[f"{names.title} (being computed)"]
    assert addresses.pages == {
        "so far": f"/#/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}"
    }
    assert addresses.title == f"{names.title} (being computed)"


def test_an_interrupted_run_leaves_its_live_runs(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun
) -> None:
    known = [(make_run("gold", 0), True), unfinished(make_run("gold", 1), 2)]
    with pytest.raises(KeyboardInterrupt), live_tracking(tracker, names, lambda: known, pytest.fail):
        raise KeyboardInterrupt
    statuses = {name: run.info.status for name, run in runs_of(tracker, names).items()}
    assert statuses == {
        f"{names.title} (being computed)": "KILLED",
        "gold · static · seed 0": "FINISHED",
        "gold · static · seed 1": "KILLED",
    }


def test_a_second_command_for_the_same_experiment_has_no_live_runs(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun
) -> None:
    known = [(make_run("gold", 0), True)]
    first, second = (
        live_tracking(tracker, names, lambda: known, pytest.fail),
        live_tracking(tracker, names, lambda: [(make_run("gold", 2), True)], pytest.fail),
    )
    with pytest.raises(KeyboardInterrupt), first:
        with tracker.sole_computer(names.request) as is_sole:
            assert not is_sole
        with pytest.raises(KeyboardInterrupt), second:
            raise KeyboardInterrupt
        raise KeyboardInterrupt
    assert "gold · static · seed 2" not in runs_of(tracker, names)


def test_a_failing_tracker_is_reported_once_and_causes_no_delay(
    tmp_path: Path, names: LiveNames, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, again = [], threading.Event()

    class Unreachable(MlflowTracker):
        def live_runs(self, names: LiveNames) -> LiveRuns:
            asked.append(names)
            if len(asked) > 2:
                again.set()
            raise UserError("MLflow at http://127.0.0.1:1 failed: no server can be reached there")

    tracker = Unreachable(tmp_path)
    monkeypatch.setattr(tracker, "_set_up_database", lambda: None)
    monkeypatch.setattr(live_worker, "SECONDS_BETWEEN_UPDATES", 0.01)
    said: list[str] = []
    with live_tracking(tracker, names, lambda: [(make_run("gold", 0), True)], said.append):
        assert again.wait(30)
    assert said == [
        "curves are not tracked while the run goes on: MLflow at http://127.0.0.1:1 failed: no server can be"
        " reached there"
    ]


def test_after_an_unforeseen_error_the_live_runs_are_still_marked_at_the_end(
    tracker: MlflowTracker, names: LiveNames, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, again = [unfinished(make_run("gold", 0), 2)], threading.Event()

    def so_far() -> list[tuple[RunResult, bool]]:
        if asked:
            return [asked.pop()]
        if said:
            again.set()
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(live_worker, "SECONDS_BETWEEN_UPDATES", 0.01)
    said: list[str] = []
    with live_tracking(tracker, names, so_far, said.append):
        assert again.wait(30)
    assert said == ["curves are not tracked while the run goes on: ZeroDivisionError: a bug"]
    assert {run.info.status for run in runs_of(tracker, names).values()} == {"KILLED"}


def test_finished_cells_and_curves_are_read_from_a_half_computed_store(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.call("run", "small.yaml", "--variant", "gold-only").code == 0
    monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
    plan = make_plan(load_invocation(project.file, Overrides(variants=("gold-only",))).experiment)
    store = open_store()
    first, second = plan.runs
    (evaluation,) = second.evaluations.values()
    assert second.model is not None
    missing = {evaluation.identity}
    (whole, is_whole), (half, is_half) = runs_so_far(plan, store, missing)
    assert (is_whole, is_half) == (True, False)
    assert whole.scores
    assert not half.scores
    assert [name for _, name, _ in half.history].count("dev_score") == 2
    # During training, the curve comes from the newest checkpoint; before the first there is no curve.
    missing.add(second.model.identity)
    assert [run.seed for run, _ in runs_so_far(plan, store, missing)] == [first.seed]


IMPORTS_AND_WAITS = """
import threading
from synthbench.tracking.live_worker import import_tracking
import_tracking()
print("imported", flush=True)
threading.Event().wait()
"""


@pytest.mark.experiments
def test_ctrl_c_ends_a_wait_after_the_imports() -> None:
    """Polars, which MLflow imports, would have the system go on with the wait."""
    command = [sys.executable, "-c", IMPORTS_AND_WAITS]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"imported\n"
        waiting.send_signal(signal.SIGINT)
        try:
            assert waiting.wait(60) == -signal.SIGINT
        finally:
            waiting.kill()
