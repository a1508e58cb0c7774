"""A result that the tracking server did not get waits on this machine, and is recorded once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from disks import Disk, flip
from mlflow import MlflowClient

from synthbench.base.errors import UserError
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.tracking.mlflow_runs import RunWriter
from synthbench.tracking.mlflow_tracker import MlflowTracker
from synthbench.tracking.outbox import Outbox, read_entry

GONE = "http://me:s3cret@127.0.0.1:9"


class Killed(BaseException):
    """Simulates a kill: our code must not catch it."""


@pytest.fixture
def kept(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "home", GONE)


def test_a_waiting_result_is_read_back_with_report_and_item_scores(
    kept: Outbox, result: ExperimentResult, make_run: Callable[..., RunResult], report_folder: Path
) -> None:
    files = {"items_file": "/store/items.parquet", "sentences_file": "/store/sentences.json"}
    result = result.model_copy(update={"runs": (make_run("gold", 0, **files),)})

    again, report = read_entry(kept.add(result, report_folder))

    assert again == result
    (score,) = again.runs[0].scores
    assert {name: getattr(score, name) for name in files} == files
    assert [file.name for file in report.iterdir()] == ["table.md"]


def test_an_entry_of_an_earlier_version_has_item_scores_without_sentences(
    kept: Outbox, result: ExperimentResult, make_run: Callable[..., RunResult], report_folder: Path
) -> None:
    folder = kept.add(result.model_copy(update={"runs": (make_run("gold", 0),)}), report_folder)
    (folder / "items.json").write_text('[["/store/items.parquet"]]', encoding="utf-8")
    (folder / "hashes.json").unlink()

    (score,) = read_entry(folder)[0].runs[0].scores

    assert (score.items_file, score.sentences_file) == ("/store/items.parquet", "")


def test_results_are_listed_in_order_and_each_once(
    kept: Outbox, result: ExperimentResult, report_folder: Path
) -> None:
    other = kept.add(result.model_copy(update={"description": "another"}), report_folder)
    kept.add(result, report_folder)
    last = kept.add(result, report_folder)

    assert kept.waiting() == [other, last]


def test_an_incomplete_entry_is_ignored(
    kept: Outbox, result: ExperimentResult, report_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", die)
        kept.add(result, report_folder)

    assert kept.waiting() == []
    whole = kept.add(result, report_folder)
    assert kept.waiting() == [whole]
    kept.remove(whole)
    assert not (kept.home / "untracked").exists()


@pytest.mark.parametrize("num_renames", [0, 1])
def test_a_kill_while_an_entry_is_replaced_loses_no_result(
    kept: Outbox,
    result: ExperimentResult,
    report_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    num_renames: int,
) -> None:
    folder = kept.add(result, report_folder)
    renames = iter([Path.rename] * num_renames)

    def rename(source: Path, target: Path) -> Path:
        return next(renames, _killed)(source, target)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", rename)
        kept.add(result, report_folder)

    (waiting,) = kept.waiting()
    assert read_entry(waiting)[0] == result
    assert kept.add(result, report_folder) == folder
    assert kept.waiting() == [folder]
    assert list(kept.folder.iterdir()) == [folder]


def test_a_result_in_the_outbox_is_synced_before_its_rename(
    kept: Outbox, result: ExperimentResult, report_folder: Path, disk: Disk
) -> None:
    kept.add(result, report_folder)

    assert disk.faults() == []


@pytest.mark.parametrize("name", ["result.json", "items.json", "report/table.md", "hashes.json"])
def test_a_changed_digit_in_a_waiting_result_is_detected(
    kept: Outbox, result: ExperimentResult, report_folder: Path, name: str
) -> None:
    folder = kept.add(result, report_folder)
    flip(folder / name)

    with pytest.raises(ValueError, match=r"damaged|checksum|unreadable"):
        read_entry(folder)


def test_each_server_has_its_own_waiting_results(
    kept: Outbox, result: ExperimentResult, report_folder: Path
) -> None:
    kept.add(result, report_folder)

    assert Outbox(kept.home, "http://elsewhere").waiting() == []
    assert "s3cret" not in "".join(str(file) for file in kept.home.rglob("*"))


def test_if_the_server_is_unreachable_the_result_waits_and_its_location_is_shown(
    result: ExperimentResult, report_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", GONE)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    tracker = MlflowTracker(tmp_path)

    with pytest.raises(UserError) as caught:
        tracker.log(result, report_folder)

    (waiting,) = Outbox(tmp_path, GONE).waiting()
    assert str(caught.value) == (
        "MLflow at http://me:***@127.0.0.1:9 failed: no server can be reached there (Connection refused); no "
        f"result is lost: it waits in {waiting} for the next run, report or dashboard that reaches MLflow"
    )
    kept_text = "".join(file.read_text("utf-8") for file in waiting.rglob("*") if file.is_file())
    assert "sk-1" not in kept_text
    assert "s3cret" not in kept_text


def test_waiting_results_are_recorded_once_by_the_next_command_despite_a_kill(
    tracker: MlflowTracker,
    result: ExperimentResult,
    report_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.uri)
    result = result.model_copy(update={"runs": (result.runs[0], result.runs[2])})
    elsewhere = MlflowTracker(tmp_path / "home")
    with monkeypatch.context() as patch, pytest.raises(UserError, match="no result is lost: it waits in"):
        patch.setattr(MlflowTracker, "_client", _unreachable)
        elsewhere.log(result, report_folder)
    for step in ("_write_child", "_log_parent_artifacts"):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(RunWriter, step, _killed)
            elsewhere.load(result.experiment)

    loaded = elsewhere.load(result.experiment)
    elsewhere.log(result, report_folder)

    assert loaded.runs[0].scores == result.runs[0].scores
    assert Outbox(tmp_path / "home", tracker.uri).waiting() == []
    client = MlflowClient(tracker.uri)
    experiment = client.get_experiment_by_name(result.experiment)
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags["synthbench.kind"] for run in runs) == [
        "experiment",
        *["row"] * 2,
        *["run"] * 2,
    ]
    assert len(client.search_logged_models([experiment.experiment_id])) == 2


def test_damaged_or_refused_results_stay_in_the_outbox_are_named_and_block_no_other_result(
    tracker: MlflowTracker,
    result: ExperimentResult,
    report_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.uri)
    waiting = Outbox(tmp_path / "home", tracker.uri)
    damaged, refused, _ = (
        waiting.add(result.model_copy(update=changes), report_folder)
        for changes in (
            {"description": "damaged"},
            {"experiment": "too long " * 99},
            {"experiment": f"{result.experiment} again", "runs": result.runs[:1]},
        )
    )
    (damaged / "items.json").write_text("[", encoding="utf-8")

    said: list[str] = []
    elsewhere = MlflowTracker(tmp_path / "home", said.append)
    assert elsewhere.load(f"{result.experiment} again").runs[0].seed == 0
    assert waiting.waiting() == [damaged, refused]
    of_damaged, of_refused = said
    assert of_damaged == (
        f"the result in {damaged} can't be recorded: items.json is damaged; run its experiment again, or"
        " delete the folder"
    )
    assert f"the result in {refused} can't be recorded: " in of_refused
    assert "'name' exceeds the maximum length" in of_refused


def _unreachable(*_: object) -> None:
    raise ConnectionRefusedError(111, "Connection refused")


def _killed(*_: object) -> Any:
    raise Killed
