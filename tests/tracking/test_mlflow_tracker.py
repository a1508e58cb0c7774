import base64
import contextlib
import json
import math
import re
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModel, Run
from wording import refused, worded

from synthbench.base.durability import write_sealed
from synthbench.base.errors import UserError
from synthbench.reporting.files import write_report
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.tracking import mlflow_runs
from synthbench.tracking.mlflow_runs import RunWriter
from synthbench.tracking.mlflow_tracker import MlflowTracker


class Killed(BaseException):
    """Simulates a kill: our code must not catch it."""


def client(tracker: MlflowTracker) -> MlflowClient:
    return MlflowClient(tracker.uri)


def runs_of(tracker: MlflowTracker, name: str, kind: str) -> list[Run]:
    experiment = client(tracker).get_experiment_by_name(name)
    assert experiment is not None
    found = client(tracker).search_runs([experiment.experiment_id], f"tags.`synthbench.kind` = '{kind}'")
    return sorted(found, key=lambda run: run.info.run_name)


def models_of(tracker: MlflowTracker, name: str) -> list[LoggedModel]:
    experiment = client(tracker).get_experiment_by_name(name)
    assert experiment is not None
    return list(client(tracker).search_logged_models([experiment.experiment_id]))


def snapshot(tracker: MlflowTracker, name: str) -> list[tuple[str, str, int]]:
    runs = [run for kind in ("experiment", "row", "run") for run in runs_of(tracker, name, kind)]
    return [(run.info.run_id, run.info.status, run.info.end_time) for run in runs]


def kill_after(monkeypatch: pytest.MonkeyPatch, function: str, calls: int) -> None:
    """Die at the beginning of call number `calls` of RunWriter's method, or of the function beside it."""
    owner = RunWriter if hasattr(RunWriter, function) else mlflow_runs
    original = getattr(owner, function)
    made = []

    def dying(*arguments: object) -> object:
        made.append(function)
        if len(made) > calls:
            raise Killed
        return original(*arguments)

    monkeypatch.setattr(owner, function, dying)


def test_the_parent_has_row_runs_and_each_row_has_seed_runs(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    (parent,) = runs_of(tracker, "recorded", "experiment")
    rows = runs_of(tracker, "recorded", "row")
    children = runs_of(tracker, "recorded", "run")
    assert [run.info.run_name for run in rows] == ["augsbert (k=3) · static", "gold · static"]
    assert [run.info.run_name for run in children] == [
        *(f"augsbert (k=3) · static · seed {seed}" for seed in range(3)),
        *(f"gold · static · seed {seed}" for seed in range(3)),
    ]
    assert {run.data.tags["mlflow.parentRunId"] for run in rows} == {parent.info.run_id}
    assert [run.data.tags["mlflow.parentRunId"] for run in children] == [
        row.info.run_id for row in rows for _ in range(3)
    ]
    assert {run.info.status for run in [parent, *rows, *children]} == {"FINISHED"}


def test_the_parent_has_shared_settings_artifacts_and_environment(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    (parent,) = runs_of(tracker, "recorded", "experiment")
    assert parent.data.metrics == {}
    assert parent.data.params == {
        "trainer.epochs": "1",
        "trainer.batch_sizes": "[16, 32]",
        "llm.max_tokens": "9",
        "num_runs": "6",
    }
    assert parent.data.tags["environment.torch"] == "2.13.0"
    assert parent.data.tags["mlflow.note.content"] == "What BM25 pairs add\n\n| a table |"
    names = {file.path for file in client(tracker).list_artifacts(parent.info.run_id)}
    assert names == {"result.json", "experiment.yaml", "report"}


def test_a_row_has_coordinates_mean_and_deviation_over_seeds(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    row = runs_of(tracker, "recorded", "row")[-1]
    place = {"variant": "gold", "base": "static", "method": "augsbert"}
    assert place.items() <= row.data.params.items()
    assert place.items() <= row.data.tags.items()
    assert row.data.metrics == {
        "score/STSb": pytest.approx(0.71),
        "sd/STSb": pytest.approx(0.01),
        "score/All": pytest.approx(0.71),
        "sd/All": pytest.approx(0.01),
        "num_seeds": 3,
    }


def test_a_child_has_its_settings_scores_history_and_lineage(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    child = runs_of(tracker, "recorded", "run")[-1]
    place = {"variant": "gold", "base": "static", "seed": "2"}
    assert child.data.params == {**place, "method": "augsbert", "learning_rate": "2", "chosen.k": "3"}
    assert place.items() <= child.data.tags.items()
    assert child.data.metrics["score/STSb"] == child.data.metrics["STSb/cosine_spearman"] == 0.72
    assert child.data.metrics["STSb/cosine_pearson"] == 0.5
    assert child.data.metrics["dev_score"] == 0.8
    history = client(tracker).get_metric_history(child.info.run_id, "training/loss")
    assert sorted((point.step, point.value) for point in history) == [
        (0, 1.0),
        (1, 0.5),
        (2, pytest.approx(1 / 3)),
    ]
    assert child.inputs is not None
    (dataset,) = child.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("silver", ("0123456789abcdef" * 4)[:36])
    assert "store/artifacts/si/silver" in dataset.dataset.source
    assert child.data.tags["synthbench.model"] == "store/artifacts/mo/model"
    assert child.data.tags["synthbench.identity"] == "gold-2"


def test_a_trained_model_is_a_reference_to_the_store_with_its_scores(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    models = models_of(tracker, "recorded")

    assert len(models) == 5
    (model,) = [one for one in models if one.name == "gold · static · seed 1"]
    assert model.tags["synthbench.model"] == "store/artifacts/mo/model"
    assert {metric.key: metric.value for metric in model.metrics} == {"score/STSb": 0.71, "score/All": 0.71}
    run = client(tracker).get_run(model.source_run_id)
    assert [output.model_id for output in run.outputs.model_outputs] == [model.model_id]


def test_saved_views_of_rows_and_seeds_open_in_the_ui(
    tracker: MlflowTracker, recorded: ExperimentResult
) -> None:
    found = tracker.addresses("recorded")

    experiment = client(tracker).get_experiment_by_name("recorded")
    assert experiment is not None
    assert found.title == "recorded"
    assert list(found.pages) == ["rows", "seeds", "comparison", "report"]
    for name, kind in (("rows", "row"), ("seeds", "run")):
        (key,) = re.findall(r"viewStateShareKey=([\w-]+)", found.pages[name])
        view = json.loads(experiment.tags[f"mlflow.sharedViewState.{key}"])
        state = json.loads(zlib.decompress(base64.b64decode(view["state"].removeprefix("deflate;"))))
        shown = client(tracker).search_runs([experiment.experiment_id], state["searchFilter"])
        assert {run.info.run_id for run in shown} == {
            run.info.run_id for run in runs_of(tracker, "recorded", kind)
        }
        metrics = [chart.get("metricKey") for chart in state["compareRunCharts"]]
        assert metrics == [None, "score/STSb", "score/All"]
        assert state["compareRunCharts"][0]["selectedParams"] == ["variant", "base"]
    modes = {name: parse_qs(found.pages[name].partition("?")[2]) for name in ("rows", "seeds", "comparison")}
    assert {name: query["compareRunsMode"] for name, query in modes.items()} == {
        "rows": ["TABLE"],
        "seeds": ["CHART"],
        "comparison": ["CHART"],
    }
    # The comparison opens on variant and axes, as the view of the rows does.
    assert modes["comparison"]["viewStateShareKey"] == modes["rows"]["viewStateShareKey"]


def test_a_runs_duration_is_the_computing_time_of_its_stages(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    runs = tuple(run.model_copy(update={"seconds": 100.0 + run.seed}) for run in result.runs)
    tracker.log(result.model_copy(update={"runs": runs, "identity": "timed"}), report_folder)

    def seconds(run: Run) -> float:
        return float(run.info.end_time - run.info.start_time) / 1000

    timed = {run.data.tags["seed"]: seconds(run) for run in runs_of(tracker, result.experiment, "run")}
    assert timed == {str(run.seed): 100.0 + run.seed for run in runs}
    for row in runs_of(tracker, result.experiment, "row"):
        assert 100.0 <= seconds(row) <= 100.0 + max(run.seed for run in runs)


def test_a_result_with_a_report_page_opens_at_that_page(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    tracker.log(result, report_folder)
    address, _, query = tracker.addresses().pages["report"].partition("?")
    assert address.endswith("/artifacts")
    assert query == "workflowType=machine_learning"  # else the UI shows what it has for language models
    (report_folder / "report.html").write_text("<p>page</p>", encoding="utf-8")
    other = result.model_copy(update={"identity": "other", "overrides": ("--seeds 0",)})
    tracker.log(other, report_folder)
    address, _, query = tracker.addresses().pages["report"].partition("?")
    assert address.endswith("/artifacts/report/report.html")
    assert query == "workflowType=machine_learning"


def test_the_dashboard_opens_the_whole_experiment_even_if_a_part_was_logged_later(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    part = result.model_copy(update={"identity": "other", "overrides": ("--seeds 0",)})
    tracker.log(part, report_folder)
    assert tracker.addresses(result.experiment).title == f"{result.experiment} --seeds 0"
    tracker.log(result, report_folder)
    tracker.log(part.model_copy(update={"identity": "third"}), report_folder)
    assert tracker.addresses(result.experiment).title == result.experiment
    assert tracker.addresses().title == f"{result.experiment} --seeds 0"


def test_item_scores_are_logged_if_they_exist(
    tracker: MlflowTracker,
    result: ExperimentResult,
    make_run: Callable[..., RunResult],
    report_folder: Path,
    tmp_path: Path,
) -> None:
    items = tmp_path / "items.parquet"
    items.write_bytes(b"columns")
    runs = (
        make_run("gold", 0, items_file=str(items)),
        make_run("gold", 1, items_file=str(tmp_path / "gone")),
    )

    tracker.log(result.model_copy(update={"runs": runs}), report_folder)

    kept, without = runs_of(tracker, result.experiment, "run")
    path = client(tracker).download_artifacts(kept.info.run_id, "items/sts/STSb.parquet", str(tmp_path))
    assert Path(path).read_bytes() == b"columns"
    assert client(tracker).list_artifacts(without.info.run_id) == []


def test_sentence_ids_are_logged_with_the_item_scores_if_they_are_known(
    tracker: MlflowTracker,
    result: ExperimentResult,
    make_run: Callable[..., RunResult],
    report_folder: Path,
    tmp_path: Path,
) -> None:
    items, sentences = tmp_path / "items.parquet", tmp_path / "sentences.json"
    pq.write_table(pa.table({"id": ["a", "b"], "predicted": [0.1, 0.2]}), items)
    write_sealed(sentences, {"value": {"b": ["01"], "a": ["02", "01"], "dropped": ["03"]}})
    runs = (
        make_run("gold", 0, items_file=str(items), sentences_file=str(sentences)),
        make_run("gold", 1, items_file=str(items), sentences_file=str(tmp_path / "gone")),
    )

    tracker.log(result.model_copy(update={"runs": runs}), report_folder)

    tables = [
        pq.read_table(client(tracker).download_artifacts(run.info.run_id, "items/sts/STSb.parquet"))
        for run in runs_of(tracker, result.experiment, "run")
    ]
    assert tables[0].to_pydict() == {
        "id": ["a", "b"], "predicted": [0.1, 0.2], "sentences": [["02", "01"], ["01"]],
    }  # fmt: skip
    assert tables[1] == pq.read_table(items)


def test_logging_the_same_result_again_changes_nothing(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    first = tracker.log(result, report_folder)
    before = snapshot(tracker, result.experiment)

    again = tracker.log(result, report_folder)

    assert again == first
    assert snapshot(tracker, result.experiment) == before


def test_mlflow_is_not_imported_if_this_result_was_logged_last(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker.log(result, report_folder)
    asked: list[str] = []
    monkeypatch.setattr(RunWriter, "finished", lambda self, _: asked.append(self.result.experiment) or "id")

    tracker.log(result, report_folder)
    assert asked == []

    tracker.log(result.model_copy(update={"environment": {"torch": "2.14.0"}}), report_folder)
    tracker.log(result.model_copy(update={"description": "Another"}), report_folder)
    tracker.log(result.model_copy(update={"experiment": "first"}), report_folder)
    assert asked == [result.experiment, result.experiment, "first"]


def test_recomputed_equal_scores_replace_only_the_report(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    first = tracker.log(result, report_folder)
    before = [run.info.run_id for run in runs_of(tracker, result.experiment, "run")]
    slower = tuple(run.model_copy(update={"seconds": 99.0}) for run in result.runs)
    elsewhere = result.model_copy(update={"runs": slower, "environment": {"torch": "2.14.0"}})
    (report_folder / "table.md").write_text("in other times", encoding="utf-8")

    assert tracker.log(elsewhere, report_folder) == first

    assert [run.info.run_id for run in runs_of(tracker, result.experiment, "run")] == before
    loaded = tracker.load(result.experiment)
    assert loaded.environment == {"torch": "2.14.0"}
    assert {run.seconds for run in loaded.runs} == {99.0}
    (parent,) = runs_of(tracker, result.experiment, "experiment")
    with tempfile.TemporaryDirectory() as folder:
        table = client(tracker).download_artifacts(parent.info.run_id, "report/table.md", folder)
        assert Path(table).read_text(encoding="utf-8") == "in other times"


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("_create", 0),
        ("_create", 2),
        ("_write_child", 1),
        ("_log_items", 1),
        ("log_points", 2),
        ("_views", 0),
        ("_log_parent_artifacts", 0),
    ],
)
def test_logging_again_after_any_kill_loses_and_duplicates_nothing(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path, function: str, calls: int
) -> None:
    result = result.model_copy(update={"runs": (result.runs[0], result.runs[2])})
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, function, calls)
        tracker.log(result, report_folder)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        kill_after(patch, function, calls)
        tracker.log(result, report_folder)

    tracker.log(result, report_folder)

    (parent,) = runs_of(tracker, result.experiment, "experiment")
    children = runs_of(tracker, result.experiment, "run")
    assert len({run.info.run_name for run in children}) == len(children) == 2
    rows = runs_of(tracker, result.experiment, "row")
    assert {run.data.tags["mlflow.parentRunId"] for run in rows} == {parent.info.run_id}
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {row.info.run_id for row in rows}
    assert {run.info.status for run in [parent, *rows, *children]} == {"FINISHED"}
    assert len(rows) == 2
    assert len(models_of(tracker, result.experiment)) == 2
    for run in children:
        assert len(client(tracker).get_metric_history(run.info.run_id, "training/loss")) == 3
    assert tracker.load(result.experiment).runs[0].scores == result.runs[0].scores


def test_finished_children_survive_a_kill(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, "_write_child", 2)
        tracker.log(result, report_folder)
    finished = {run.info.run_id for run in runs_of(tracker, result.experiment, "run")}

    tracker.log(result, report_folder)

    assert len(finished) == 2
    assert finished < {run.info.run_id for run in runs_of(tracker, result.experiment, "run")}


def test_another_caption_replaces_the_parent_only(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    tracker.log(result, report_folder)
    children = [run.info.run_id for run in runs_of(tracker, result.experiment, "run")]

    tracker.log(result.model_copy(update={"table": {"caption": "Better"}}), report_folder)

    assert len(runs_of(tracker, result.experiment, "experiment")) == 1
    assert [run.info.run_id for run in runs_of(tracker, result.experiment, "run")] == children
    assert tracker.load(result.experiment).table == {"caption": "Better"}


@pytest.mark.parametrize("what", ["failures", "pending"])
def test_a_complete_result_replaces_the_incomplete_one_of_the_same_experiment(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path, what: str
) -> None:
    cut_short = {"identity": "identity-cut", "runs": result.runs[:2], what: ("a worker died",)}
    tracker.log(result.model_copy(update=cut_short), report_folder)
    finished = {run.info.run_id for run in runs_of(tracker, result.experiment, "run")}

    tracker.log(result, report_folder)

    (parent,) = runs_of(tracker, result.experiment, "experiment")
    children = runs_of(tracker, result.experiment, "run")
    assert len(children) == len(result.runs)
    assert finished < {run.info.run_id for run in children}  # taken over, not written again
    tagged = [parent, *children, *runs_of(tracker, result.experiment, "row")]
    assert {run.data.tags["synthbench.experiment"] for run in tagged} == {result.identity}
    assert not tracker.load(result.experiment).failures


def test_a_complete_result_does_not_replace_another_complete_one(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    tracker.log(result, report_folder)
    tracker.log(result.model_copy(update={"identity": "other data", "runs": result.runs[:2]}), report_folder)

    assert len(runs_of(tracker, result.experiment, "experiment")) == 2


def test_a_home_with_special_characters_in_its_name_works(
    tmp_path: Path, result: ExperimentResult, report_folder: Path
) -> None:
    home = tmp_path / "homes" / "50%25 a#b what? two words"
    MlflowTracker(home).log(result, report_folder)

    assert [folder.name for folder in (tmp_path / "homes").iterdir()] == [home.name]
    assert sorted(file.name for file in home.iterdir()) == ["mlartifacts", "mlflow.db", "tracking.lock"]
    assert MlflowTracker(home).load(result.experiment).runs[0].scores == result.runs[0].scores


def test_a_part_of_the_experiment_gets_its_own_parent_and_both_can_be_loaded(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    (report_folder / "seeds-0").mkdir()
    smaller = result.model_copy(
        update={
            "identity": "identity-2",
            "request": "request-2",
            "overrides": ("--variant gold",),
            "runs": result.runs[:2],
        }
    )

    tracker.log(result, report_folder)
    tracker.log(smaller, report_folder)

    whole, part = runs_of(tracker, result.experiment, "experiment")
    assert [whole.info.run_name, part.info.run_name] == [
        result.experiment,
        f"{result.experiment} --variant gold",
    ]
    reported = client(tracker).list_artifacts(whole.info.run_id, "report")
    assert [file.path for file in reported] == ["report/table.md"]
    assert len(runs_of(tracker, result.experiment, "run")) == 3 + 2
    assert len(tracker.load(result.experiment).runs) == 2
    assert len(tracker.load(result.experiment, "request-1").runs) == 3
    with pytest.raises(UserError) as caught:
        tracker.load(result.experiment, "request-3")
    names = f"newest first: '{result.experiment} --variant gold', '{result.experiment}'; "
    assert names in str(caught.value)


def test_load_returns_the_logged_result_and_the_same_report(
    tracker: MlflowTracker, result: ExperimentResult, tmp_path: Path
) -> None:
    clean = tuple(run.model_copy(update={"parameters": {"trainer.epochs": 1}}) for run in result.runs)
    result = result.model_copy(update={"runs": clean})
    first = write_report(result, tmp_path / "first")
    tracker.log(result, tmp_path / "first")

    loaded = tracker.load(result.experiment)

    again = write_report(loaded, tmp_path / "again")
    assert loaded == result
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in first]


def test_diverged_training_is_tracked_and_loaded(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    diverged = result.runs[0].model_copy(update={"history": ((1, "loss", math.nan), (2, "loss", math.inf))})

    tracker.log(result.model_copy(update={"runs": (diverged,)}), report_folder)

    history = tracker.load(result.experiment).runs[0].history
    assert math.isnan(history[0][2])
    assert history[1][2] == math.inf


def test_a_deleted_experiment_is_restored(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    tracker.log(result, report_folder)
    experiment = client(tracker).get_experiment_by_name(result.experiment)
    assert experiment is not None
    client(tracker).delete_experiment(experiment.experiment_id)

    tracker.log(result, report_folder)

    assert len(runs_of(tracker, result.experiment, "run")) == 3


def test_a_history_of_many_points_is_stored_completely(
    tracker: MlflowTracker, result: ExperimentResult, make_run: Callable[..., RunResult], report_folder: Path
) -> None:
    tracker.log(
        result.model_copy(update={"runs": (make_run("gold", 0, history_points=2001),)}), report_folder
    )

    (child,) = runs_of(tracker, result.experiment, "run")
    assert len(client(tracker).get_metric_history(child.info.run_id, "training/loss")) == 2001


def test_secrets_are_in_no_artifact(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path, tmp_path: Path
) -> None:
    source = "name: x\nllm:\n  api_key: sk-1\n  url: http://me:sk-1@host/v1\n"

    tracker.log(result.model_copy(update={"source": source}), report_folder)

    (parent,) = runs_of(tracker, result.experiment, "experiment")
    folder = client(tracker).download_artifacts(parent.info.run_id, "", str(tmp_path))
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*") if path.is_file()]
    assert len(texts) >= 3
    assert not any("sk-1" in text for text in texts)


def test_nothing_is_printed_even_when_a_new_tracking_store_is_created(
    fresh_store: tuple[MlflowTracker, str],
) -> None:
    assert fresh_store[1] == ""


def test_a_killed_creation_of_the_store_leaves_nothing_behind(fresh_store: tuple[MlflowTracker, str]) -> None:
    names = {path.name for path in fresh_store[0].home.iterdir()}

    # Earlier tests have tracked live runs in the same home.
    assert names - {"live"} == {"mlflow.db", "mlartifacts", "tracking.lock"}


def test_loading_without_any_result_is_an_error_and_creates_nothing(tmp_path: Path) -> None:
    with refused("tracked"):
        MlflowTracker(tmp_path / "home").load("example")

    assert not (tmp_path / "home").exists()


def test_an_unknown_experiment_is_reported_with_the_nearest_name(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    tracker.log(result.model_copy(update={"experiment": "augsbert_stsb"}), report_folder)

    with refused("'augsbert_stbs'", "'augsbert_stsb'"):
        tracker.load("augsbert_stbs")


def test_an_experiment_is_found_among_more_than_a_thousand(
    tracker: MlflowTracker,
    result: ExperimentResult,
    report_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker.log(result, report_folder)
    monkeypatch.setattr(MlflowClient, "search_experiments", lambda _: [])

    assert tracker.load(result.experiment).identity == result.identity


def test_an_experiment_without_a_finished_result_is_an_error(
    tracker: MlflowTracker, result: ExperimentResult, report_folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, "_write_child", 1)
        tracker.log(result, report_folder)

    with refused("finished"):
        tracker.load(result.experiment)


def test_the_users_tracking_server_is_checked_before_any_work(
    tracker: MlflowTracker, result: ExperimentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MlflowTracker(tmp_path / "own").check(result.experiment)
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.uri)
    MlflowTracker(tmp_path).check(result.experiment)

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing://mlflow/knows")
    with refused("MLflow", "nothing://mlflow/knows", "URI"):
        MlflowTracker(tmp_path).check(result.experiment)

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UserError) as caught:
        MlflowTracker(tmp_path).check(result.experiment)
    worded(str(caught.value), "MLflow", "http://127.0.0.1:9", "MLFLOW_TRACKING_URI")


def test_an_unreachable_server_is_reported_in_one_line_without_the_password(
    result: ExperimentResult, report_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:s3cret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    with pytest.raises(UserError) as caught:
        MlflowTracker(tmp_path).log(result, report_folder)

    assert str(caught.value).startswith("MLflow at http://me:***@127.0.0.1:9 failed: ")
    assert "no result is lost" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_in_place_of_the_home_is_reported_in_one_line(
    result: ExperimentResult, report_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").write_text("")

    with refused("MLflow"):
        MlflowTracker(tmp_path / "home").log(result, report_folder)


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("http://me:s3cret@host:5000/", "http://me:***@host:5000"),
        ("postgresql://me:s3cret@host/mlflow", "synthbench dashboard"),
    ],
)
def test_the_location_is_shown_without_the_password(
    uri: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert MlflowTracker(tmp_path).location == place
