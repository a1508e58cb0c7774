"""One experiment from its file to tables and tracked results; a second run reuses all of it."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from disks import DAMAGES, cut, flip
from small_experiment import PAGE, TABLES, Called, Project, artifact, kinds, tables

from synthbench.base.errors import UserError
from synthbench.tracking.mlflow_runs import RunWriter
from synthbench.tracking.mlflow_tracker import MlflowTracker


@pytest.fixture
def copy(
    finished_run: tuple[Project, Called], empty_database: Path, sketched_figures: None, tmp_path: Path
) -> Project:
    """A project of the test's own whose store holds everything; nothing is tracked there yet."""
    original, _ = finished_run
    shutil.copytree(
        original.folder, tmp_path / "experiment", ignore=shutil.ignore_patterns("reports", "again")
    )
    shutil.copytree(original.home / "store", tmp_path / "home" / "store")
    shutil.copyfile(empty_database, tmp_path / "home" / "mlflow.db")
    return Project(tmp_path / "experiment", tmp_path / "home")


@pytest.fixture
def tracking(finished_run: tuple[Project, Called]) -> Any:
    """The tracking database of the finished run."""
    return _client(finished_run[0])


def _client(project: Project) -> Any:
    from mlflow import MlflowClient

    uri = f"sqlite:///{project.home}/mlflow.db"
    return MlflowClient(uri, uri)


def _runs(client: Any, kind: str) -> list[Any]:
    experiment = client.get_experiment_by_name("small")
    return list(client.search_runs([experiment.experiment_id], f"tags.`synthbench.kind` = '{kind}'"))


def test_the_first_run_computes_every_stage_once(finished_run: tuple[Project, Called]) -> None:
    _, called = finished_run
    assert called.code == 0
    assert called.errors == []
    assert len(called.executed) == len(set(called.executed)) == 19
    assert kinds(called.executed) == ["source", "exclude", "train", "evaluate", "generate", "select"]
    assert "19 stages executed, 0 reused" in called.err


def test_the_first_run_prints_the_table_and_the_locations(finished_run: tuple[Project, Called]) -> None:
    project, called = finished_run
    for text in ("gold-only", "augsbert", "test", "±"):
        assert text in called.out
    notes = (project.folder / "reports" / "small" / "notes.md").read_text(encoding="utf-8")
    number = notes.count("\n- ")
    assert called.out.splitlines()[-3:] == [
        "page: reports/small/report.html; tables and plots beside it",
        f"notes: {number} in reports/small/notes.md; read first: 2 warnings",
        f"next: synthbench dashboard {shlex.quote(str(project.file))} (every run in MLflow)",
    ]
    assert "seeds (0, 1)" not in called.out


def test_tables_are_written_in_three_formats(finished_run: tuple[Project, Called]) -> None:
    files = tables(finished_run[0]).items()
    written = {name: content.decode() for name, content in files if name.startswith("table.")}
    assert "\\toprule" in written["table.tex"]
    assert "| gold-only |" in written["table.md"]
    lines = [line for line in written["table.csv"].splitlines() if not line.startswith("#")]
    assert [line.split(",")[0] for line in lines] == ["row", "gold-only", "augsbert"]


def test_results_are_tracked_as_a_parent_with_rows_and_a_child_for_each_seed(tracking: Any) -> None:
    parents, rows, children = (_runs(tracking, kind) for kind in ("experiment", "row", "run"))
    assert len(parents) == 1
    assert len(rows) == 2
    assert len(children) == 4
    assert {run.data.tags["mlflow.parentRunId"] for run in rows} == {parents[0].info.run_id}
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {run.info.run_id for run in rows}
    assert {run.info.status for run in (*parents, *rows, *children)} == {"FINISHED"}
    names = {run.info.run_name for run in children}
    assert len(names) == 4
    report = tracking.list_artifacts(parents[0].info.run_id, "report")
    others = [f"comparisons.{ending}" for ending in ("csv", "md", "tex")]
    others += ["forest.pdf", "forest.png", "notes.md", "notes.tex"]
    assert sorted(Path(file.path).name for file in report) == sorted([*TABLES, *others, PAGE])


def test_a_second_run_computes_and_tracks_nothing(
    finished_run: tuple[Project, Called], tracking: Any
) -> None:
    project, first = finished_run
    before = [run.info.run_id for kind in ("experiment", "run") for run in _runs(tracking, kind)]
    written = tables(project)
    second = project.call("run", project.file)
    assert (second.code, second.executed) == (0, [])
    assert "0 stages executed, 19 reused" in second.err
    assert second.out == first.out
    assert tables(project) == written
    assert [run.info.run_id for kind in ("experiment", "run") for run in _runs(tracking, kind)] == before


def test_plan_finds_everything_cached(finished_run: tuple[Project, Called]) -> None:
    project, _ = finished_run
    assert project.call("plan", project.file).out.splitlines()[-1] == "19 stages for 4 runs: 0 to run"


def test_report_writes_the_same_bytes_without_the_store(
    finished_run: tuple[Project, Called], tmp_path: Path
) -> None:
    project, _ = finished_run
    away = tmp_path / "away"
    shutil.move(project.home / "store", away)
    try:
        called = project.call("report", project.file, "--output", "again")
        assert (called.code, called.err) == (0, "")
        assert not (project.home / "store").exists()
    finally:
        shutil.move(away, project.home / "store")
    assert tables(project, "again") == tables(project)
    first, again = (project.folder / output / "small" / PAGE for output in ("reports", "again"))
    assert again.read_bytes() == first.read_bytes()
    assert b"The same sentence in several data sets" in first.read_bytes()


def test_a_cell_is_traced_to_its_runs_in_mlflow(finished_run: tuple[Project, Called], tracking: Any) -> None:
    project, _ = finished_run
    called = project.call("report", project.file, "--trace", "augsbert", "test", "--output", "traced")
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    traced = [tracking.get_run(line.split()[-1]) for line in lines if line.startswith("  MLflow run ")]
    scores = [float(line.split()[3]) for line in lines if not line.startswith(" ")]
    assert len(scores) == 2
    for run, score in zip(traced, scores, strict=True):
        assert any(100 * value == pytest.approx(score, abs=1e-4) for value in run.data.metrics.values())
    assert not (project.folder / "traced").exists()


def test_a_partial_run_does_not_change_the_full_report(copy: Project) -> None:
    def reported(*arguments: str) -> str:
        called = copy.call("report", copy.file, *arguments)
        assert (called.code, called.err) == (0, "")
        return called.out

    assert copy.call("run", copy.file).code == 0
    whole = tables(copy)
    called = copy.call("run", copy.file, "--seeds", "0", "--set", "runtime.threads=2")
    assert called.code == 0
    assert "page: reports/small/seeds-0/report.html; " in called.out
    assert tables(copy) == whole
    assert f"next: synthbench dashboard {shlex.quote(str(copy.file))} " in reported()
    part = reported("--seeds", "0")
    assert "next: synthbench dashboard (" in part
    assert "in reports/small/seeds-0/notes.md" in part
    notes = (copy.folder / "reports" / "small" / "seeds-0" / "table.md").read_text(encoding="utf-8")
    assert "One seed (0)" in notes
    assert "Run with overrides: --seeds 0." in notes
    assert tables(copy) == whole
    names = {run.info.run_name for run in _runs(_client(copy), "experiment")}
    assert names == {"small", "small --seeds 0"}


def test_report_refuses_results_of_a_changed_file_or_other_overrides(copy: Project) -> None:
    assert copy.call("run", copy.file, "--variant", "gold-only").code == 0
    refused = copy.call("report", copy.file)
    assert (refused.code, refused.out) == (2, "")
    assert refused.errors == [
        "'small' has no tracked result of this file with these overrides; run it first. Tracked are, "
        "newest first: 'small --variant gold-only'; the tracked result with this name comes from another "
        "version of the file"
    ]
    copy.change("smallest world", "tiniest world")
    assert copy.call("report", copy.file, "--variant", "gold-only").code == 2
    assert copy.call("run", copy.file, "--variant", "gold-only").executed == []
    assert "tiniest world" in copy.call("report", copy.file, "--variant", "gold-only").out


@pytest.mark.experiments
def test_a_renamed_row_is_not_computed_again_and_has_only_its_new_name(copy: Project) -> None:
    assert copy.call("run", copy.file).code == 0
    copy.change("  augsbert:\n", "  silver-pairs:\n")

    (refused,) = copy.call("report", copy.file).errors
    assert refused.endswith(
        "newest first: 'small'; the tracked result with this name comes from another version of the file"
    )
    again = copy.call("run", copy.file)

    assert (again.code, again.executed) == (0, [])
    table = tables(copy)["table.csv"].decode()
    lines = [line for line in table.splitlines() if not line.startswith("#")]
    assert [line.split(",")[0] for line in lines] == ["row", "gold-only", "silver-pairs"]
    assert copy.call("report", copy.file).code == 0
    assert tables(copy)["table.csv"].decode() == table
    # Runs tracked under the old name stay, but are no results of the renamed experiment.
    assert len({run.info.run_id for run in _runs(_client(copy), "experiment")}) == 2


def test_a_run_whose_tracking_fails_prints_the_table_and_the_next_run_only_tracks(
    copy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise UserError("MLflow failed: gone")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowTracker, "log", fail)
        called = copy.call("run", copy.file)
    assert (called.code, called.errors) == (2, ["MLflow failed: gone"])
    assert called.out.splitlines()[-1] == (
        f"next: synthbench run {shlex.quote(str(copy.file))} (goes on from here, and tracks the results)"
    )
    assert "| augsbert |" in tables(copy)["table.md"].decode()
    again = copy.call("run", copy.file)
    assert (again.code, again.executed) == (0, [])
    assert "next: synthbench dashboard" in again.out


def test_tables_name_the_noise_and_the_chosen_settings(finished_run: tuple[Project, Called]) -> None:
    project, _ = finished_run
    assert "Scores × 100: Spearman correlation (aggregation: all)." in tables(project)["table.md"].decode()
    notes = (project.folder / "reports" / "small" / "notes.md").read_text(encoding="utf-8")
    assert "Made once for all seeds" in notes
    assert re.search(r"Chosen on dev: augsbert: k = [12], [12] for seeds 0, 1\.", notes)


def test_an_unwritable_report_is_tracked_and_an_edited_report_is_preserved(copy: Project) -> None:
    (copy.home / "mlflow.db").unlink()
    shutil.rmtree(copy.folder / "reports", ignore_errors=True)
    (copy.folder / "reports" / "small" / "table.tex").mkdir(parents=True)

    called = copy.call("run", copy.file)

    assert called.code == 2
    (error,) = called.errors
    assert error.startswith("can't write the report to reports/small: Is a directory")
    again = copy.call("report", copy.file, "--output", "elsewhere")
    assert again.code == 0
    assert "gold-only" in tables(copy, "elsewhere")["table.md"].decode()

    table = copy.folder / "elsewhere" / "small" / "table.tex"
    table.write_text("my own wording", encoding="utf-8")
    again = copy.call("report", copy.file, "--output", "elsewhere")
    assert "kept: elsewhere/small/table.tex was not what was last written here" in again.out
    assert "report.html; tables and plots beside it; 1 edited file kept\n" in again.out
    assert table.with_name("table.edited.tex").read_text(encoding="utf-8") == "my own wording"


def test_force_computes_the_named_stages_and_their_dependents_again(copy: Project) -> None:
    called = copy.call("run", copy.file, "--force", "train", "--variant", "gold-only")
    assert called.code == 0
    assert kinds(called.executed) == ["train", "evaluate"]
    assert len(called.executed) == 4
    assert "4 stages executed, 4 reused" in called.err
    called = copy.call("run", copy.file, "--force", "select augsbert seed 1")
    assert called.executed == ["select augsbert seed 1", "evaluate augsbert seed 1 on test"]


def test_changed_stages_are_stale_with_a_reason(copy: Project) -> None:
    copy.change("learning_rate: 0.001", "learning_rate: 0.002")
    listed = copy.call("plan", copy.file, "--stages").out
    assert "learning_rate 0.001 -> 0.002" in " ".join(listed.split())
    lines = listed.splitlines()
    listed_stages = [line for line in lines if re.match(r"[0-9a-f]{8} ", line)]
    states = {state: sum(f" {state} " in line for line in listed_stages) for state in ("cached", "stale")}
    assert states == {"cached": 8, "stale": 11}
    assert lines[-1] == "19 stages for 4 runs: 11 to run"


def report_but_for_times(project: Project) -> dict[str, bytes]:
    """Return the files of the report; how many seconds a training took is left out."""
    files = {
        path.name: path.read_bytes() for path in (project.folder / "reports").rglob("[!.]*") if path.is_file()
    }
    seconds = rb'<td>[\d,]+</td>(?=</tr>|<td class="drawn")'
    return {**files, PAGE: re.sub(seconds, b"", files[PAGE])}


def test_damaged_files_are_reported_and_recomputed_to_the_same_report(copy: Project) -> None:
    arguments = ("run", copy.file, "--variant", "gold-only", "--seeds", "0")
    assert copy.call(*arguments).code == 0
    before = report_but_for_times(copy)
    train, evaluate = "train gold-only seed 0", "evaluate gold-only seed 0 on test"
    flip(artifact(copy, evaluate) / "scores.json")
    cut(artifact(copy, train) / "training.json")
    cut(artifact(copy, "source gold") / "dataset" / "manifest.json")
    (artifact(copy, "source test") / "stage.json").unlink()
    flip(copy.home / "store" / "addresses" / "small.json")
    called = copy.call(*arguments)
    assert called.code == 0
    assert sorted(called.executed) == [evaluate, "source gold", "source test", train]
    for label in called.executed:
        assert f"the stored artifact of {label} is damaged" in called.err
    assert "the record of what small uses" in called.err
    assert report_but_for_times(copy) == before
    again = copy.call(*arguments)
    assert (again.executed, "is damaged" in again.err) == ([], False)


@pytest.mark.experiments
@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damaged_file_leaves_the_report_byte_identical(copy: Project, damage: str) -> None:
    def run() -> tuple[dict[str, bytes], str]:
        called = copy.call("run", copy.file)
        assert (called.code, "Traceback" in called.err) == (0, False)
        return report_but_for_times(copy), called.err

    before, _ = run()
    kinds: dict[str, Path] = {}
    for stage in sorted((copy.home / "store" / "artifacts").glob("*/*/stage.json")):
        kind = json.loads(stage.read_text(encoding="utf-8"))["spec"]["kind"]
        for file in (path for path in stage.parent.rglob("*") if path.is_file()):
            kinds.setdefault(f"{kind} {file.relative_to(stage.parent)}", file)
    for name, file in kinds.items():
        DAMAGES[damage](file)
        after, said = run()
        assert after == before, name
        assert "is damaged" in said, name


def test_interrupted_tracking_is_completed_by_the_next_run_without_duplicates(
    copy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("_log_items", "_log_parent_artifacts"):
        with monkeypatch.context() as patch:
            patch.setattr(RunWriter, step, interrupt)
            called = copy.call("run", copy.file)
        assert called.code == 130
        assert "To resume: " in called.err
        assert copy.call("report", copy.file).code == 2
    assert copy.call("run", copy.file).code == 0
    client = _client(copy)
    assert [run.info.status for run in _runs(client, "experiment")] == ["FINISHED"]
    assert [run.info.status for run in _runs(client, "run")] == ["FINISHED"] * 4
    assert copy.call("report", copy.file).code == 0


def test_a_failure_stops_only_dependent_stages(copy: Project) -> None:
    copy.change(
        "sampler: {name: bm25, k: 1}",
        "sampler: {name: bm25, k: 1}\n      prepare: [{step: sample, size: 9999}]",
    )
    called = copy.call("run", copy.file)
    assert called.code == 2
    assert "sample: size 9999, but there are only" in called.errors[0]
    table = tables(copy)["table.md"].decode()
    assert "| gold-only |" in table
    assert "| augsbert |" not in table
    further = (copy.folder / "reports" / "small" / "notes.md").read_text(encoding="utf-8")
    assert "Failed: augsbert seed 0 is not finished" in further
    *_, notes, following = called.out.splitlines()
    number = further.count("Failed: ")
    assert f"Incomplete ({number} failed)" in table
    assert re.search(rf"in reports/small/notes\.md; read first: {number} failures", notes)
    assert following == f"next: synthbench run {shlex.quote(str(copy.file))} (goes on from here)"


def test_unusable_data_are_found_before_anything_is_trained(copy: Project) -> None:
    copy.change("k: [1, 2]", "k: [1, 1000]")
    called = copy.call("run", copy.file, "--seeds", "2")
    assert (called.code, called.executed) == (2, [])
    assert len(called.errors) == 1
    assert "k 1000 needs more than 1000 distinct gold sentences" in called.errors[0]


def test_rows_follow_the_files_order_and_seeds_can_be_added(copy: Project) -> None:
    called = copy.call("run", copy.file, "--seeds", "0,1,2", "--variant", "gold-only")
    assert called.executed == ["train gold-only seed 2", "evaluate gold-only seed 2 on test"]
    (notes,) = (copy.folder / "reports" / "small").glob("variant-gold-only*/table.md")
    assert "n = 3 seeds (0, 1, 2)" in notes.read_text(encoding="utf-8")
