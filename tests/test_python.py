"""Experiments from Python: the same results as on the command line, as data frames."""

import contextlib
import re
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from small_experiment import Called, Project
from wording import refused

import synthbench
from synthbench.api import spearman_influence
from synthbench.statistics.item_noise import Influences, TestItems, item_variances
from synthbench.statistics.shared_sentences import SharedSentences
from synthbench.tracking.mlflow_tracker import MlflowTracker

OWN_PLOT = Path(__file__).parent.parent / "examples" / "own_plot.py"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, finished_run: tuple[Project, Called]) -> Project:
    """A small experiment that was run on the command line, with a store of its own for further parts."""
    original, called = finished_run
    assert called.code == 0, called.err
    copy = tmp_path_factory.mktemp("frames")
    for folder in (original.folder, original.home):
        shutil.copytree(folder, copy / folder.name)
    return Project(copy / original.folder.name, copy / original.home.name)


@pytest.fixture(autouse=True)
def home_of_the_finished(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHBENCH_HOME", str(finished.home))
    monkeypatch.chdir(finished.folder)


def test_scores_equal_those_of_the_table(finished: Project) -> None:
    scores = synthbench.load(finished.file).scores
    assert list(scores.columns) == (
        ["variant", "seed", "task", "split", "evaluator", "metric", "is_main", "score", "num_items"]
    )
    main = scores[scores["is_main"]]
    assert len(main) == len(main[["variant", "seed", "task"]].drop_duplicates()) == 4
    table = pd.read_csv(finished.folder / "reports" / "small" / "table.csv")
    means = 100 * main.groupby("variant")["score"].mean()
    [column] = [name for name in table.columns if name.endswith("_mean") or name == "mean"][:1]
    for variant, mean in zip(table.iloc[:, 0], table[column], strict=True):
        assert means[variant] == pytest.approx(mean, abs=1e-4)


def test_the_agreement_of_test_sets_is_that_of_the_rows_scores(finished: Project) -> None:
    """Three rows, one of them with a second seed; the other set swaps b and c."""
    results = synthbench.load(finished.file)
    with refused("test", "2 rows"):
        results.agreement("test", "test")
    [run, *_] = results.result.runs
    [score] = (each for each in run.scores if each.task == "test")
    values = {"test": {"a": 0.1, "b": 0.2, "c": 0.3}, "other": {"a": 0.1, "b": 0.3, "c": 0.2}}
    runs = [
        run.model_copy(
            update={
                "variant": row,
                "seed": seed,
                "scores": tuple(
                    score.model_copy(update={"task": task, "scores": {score.main_score: of_rows[row]}})
                    for task, of_rows in values.items()
                ),
            }
        )
        for row, seed in (("a", 0), ("b", 0), ("c", 0), ("c", 1))
    ]
    result = results.result.model_copy(update={"runs": tuple(runs)})
    found = synthbench.Results(result).agreement("test", "other").set_index("measure")
    # All rows have the same items' influences on Spearman's correlation, so draws keep the order.
    assert found["value"].to_dict() == pytest.approx(
        {"Kendall's tau": 1 / 3, "Spearman's rho": 0.5, "order of clear pairs": 2 / 3}
    )
    assert found["low"]["Kendall's tau"] == pytest.approx(1 / 3)
    assert found["number"].to_dict() == {"Kendall's tau": 3, "Spearman's rho": 3, "order of clear pairs": 3}


def test_item_scores_average_to_the_score(finished: Project) -> None:
    results = synthbench.load(finished.file)
    items = results.items("test")
    assert list(items.columns[:3]) == ["variant", "seed", "evaluator"]
    for (variant, seed), of_run in items.groupby(["variant", "seed"]):
        row = results.scores.query(f"variant == '{variant}' and seed == {seed} and is_main").iloc[0]
        assert len(of_run) == row["num_items"]
        correlation = of_run["predicted"].corr(of_run["gold"], method="spearman")
        assert correlation == pytest.approx(row["score"], abs=1e-6)
    with refused("nowhere"):
        results.items("nowhere")


def test_tracked_items_give_the_noise_of_items_again_without_the_store(finished: Project) -> None:
    """Their sentence ids, 16 hexadecimal digits each, say which items err together."""
    result = synthbench.load(finished.file).result
    (noise,) = result.item_noise
    client = MlflowClient(MlflowTracker(finished.home).uri)
    experiment = client.get_experiment_by_name("small")
    tracked = {
        run.info.run_name: pd.read_parquet(
            client.download_artifacts(run.info.run_id, "items/sts/test.parquet")
        )
        for run in client.search_runs([experiment.experiment_id], "tags.`synthbench.kind` = 'run'")
    }
    rows = []
    for variant in noise.variants:
        names = [f"{variant} · seed {seed}" for seed in (0, 1)]
        items = [tracked[name] for name in names]
        lines = [spearman_influence(each["gold"].to_numpy(), each["predicted"].to_numpy()) for each in items]
        rows.append(Influences(np.stack(lines), (0, 1)))
    ids = items[0]["sentences"]
    assert all(re.fullmatch("[0-9a-f]{16}", each) for of_item in ids for each in of_item)
    sentences = np.unique(np.concatenate(ids.to_list()), return_inverse=True)[1]
    shared = SharedSentences(np.repeat(np.arange(len(ids)), ids.map(len)), sentences, len(ids))

    found = item_variances(rows, [TestItems(len(ids), shared)])

    assert not noise.lacks_sentences
    assert [*noise.by_pair().values()] == [*found]


def test_comparisons_and_costs_equal_those_of_the_report(finished: Project) -> None:
    results = synthbench.load(finished.file)
    [comparison] = results.comparisons.to_dict("records")
    assert (comparison["row"], comparison["against"]) == ("augsbert", "gold-only")
    means = 100 * results.scores[results.scores["is_main"]].groupby("variant")["score"].mean()
    assert comparison["difference"] == pytest.approx(means["augsbert"] - means["gold-only"], abs=1e-4)
    assert results.costs.empty


def test_a_notebook_shows_the_answer_and_the_table(finished: Project) -> None:
    results = synthbench.load(finished.file)
    page = (finished.folder / "reports" / "small" / "report.html").read_text(encoding="utf-8")
    shown = results._repr_html_()
    assert re.findall(r"<tr><th>(.+?)</th>", shown)[-2:] == ["gold-only", "augsbert"]
    (sentence,) = re.findall(r"<b>small</b>: (.+?)</p>", shown)
    assert sentence in page
    scripted = results.result.model_copy(update={"experiment": "<script>"})
    assert "<script>" not in synthbench.Results(scripted)._repr_html_()


def test_a_run_from_python_reuses_the_command_lines_store(
    finished: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    results = synthbench.run("small.yaml")
    assert " 0 stages executed" in capsys.readouterr().err
    assert results.result.identity == synthbench.load("small.yaml").result.identity


def test_a_partial_run_is_a_separate_result(finished: Project) -> None:
    with refused("'small'"):
        synthbench.load("small.yaml", seeds=(1,))
    part = synthbench.run("small.yaml", seeds=(1,), assignments={"table.caption": "one seed"})
    assert set(part.scores["seed"]) == {1}
    again = synthbench.load("small.yaml", seeds=(1,), assignments={"table.caption": "one seed"})
    assert np.array_equal(again.scores["score"], part.scores["score"])


def test_a_fault_of_the_file_is_an_error_with_its_line(finished: Project, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(finished.file.read_text(encoding="utf-8").replace("seeds: [0, 1]", "seeds: [0, a]"))
    with refused("wrong.yaml", "seeds"):
        synthbench.load(wrong)


def test_the_example_plots_gains(finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "gains.png"
    monkeypatch.setattr(sys, "argv", ["own_plot.py", str(finished.file), str(picture)])
    with contextlib.chdir(finished.folder):
        runpy.run_path(str(OWN_PLOT), run_name="__main__")
    assert picture.read_bytes().startswith(b"\x89PNG")
