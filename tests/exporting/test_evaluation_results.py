"""`.eval_results` of an exported model: scores that huggingface_hub's parser reads, and omitted ones."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import EvalResultEntry, parse_eval_result_entries
from scipy.stats import t
from small_experiment import Project

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset, spearman_influence
from synthbench.base.yaml_loading import load_yaml
from synthbench.config.load import load_experiment
from synthbench.engine.artifacts import DATASET_FOLDER, write_json
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.exporting.evaluation_results import evaluation_results
from synthbench.exporting.facts import hub_test_set, scores
from synthbench.exporting.subject import Subject, find_subject
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench_sts import STS

EXPERIMENT = """\
experiment: measured
sources:
  sts: {{task: {sts}, origin: {origin}{more}}}
  reranking: {{task: SciDocsRR, origin: hub}}
  spanish: {{task: STS17-es-es, origin: folder}}
  own: {{file: test.tsv, kind: scored_pair}}
seeds: [0]
defaults:
  train: {{trainer: none, base: {{model: "{bert}", static: true, static_dimension: 8}}}}
  evaluate:
    similarity: {{evaluator: sts, tasks: [sts, spanish, own]}}
    ranking: {{evaluator: reranking, tasks: [reranking]}}
baseline: small
"""
MEASURED = {"sts": "spearman_all", "spanish": "spearman_all", "own": "spearman_all", "reranking": "map_mixed"}


def subject_of(
    project: Project, origin: str = "hub", more: str = "", sts: str = "STS12", **measured: Any
) -> Subject:
    """Return a run of the experiment; its score on each test set is 0.5."""
    bert = project.file.read_text(encoding="utf-8").partition('base: {model: "')[2].partition('"')[0]
    project.file.write_text(EXPERIMENT.format(origin=origin, more=more, sts=sts, bert=bert), encoding="utf-8")
    of_tasks = tuple(
        TaskScores(
            **{
                "task": task,
                "evaluator": "reranking" if task == "reranking" else "sts",
                "main_score": name,
                "scores": {name: 0.8123456},
                "num_items": 3108,
                "split": "test",
                "stage": "0" * 64,
                **(measured if task == "sts" else {}),
            }
        )
        for task, name in MEASURED.items()
    )
    run = RunResult(variant="small", seed=0, identity="run", is_seeded=False, scores=of_tasks)
    result = ExperimentResult(
        experiment="measured", identity="one", runs=(run,), environment={"synthbench": "1.2"}
    )
    return find_subject(load_experiment(project.file), result, "small", "0", Store(project.home / "store"))


def read_back(subject: Subject) -> dict[str, EvalResultEntry]:
    """Return each file as parsed by the hub's library."""
    found = {}
    for file, text in evaluation_results(subject):
        (found[file],) = parse_eval_result_entries(load_yaml(text, file))
    return found


def test_the_hubs_parser_reads_score_task_and_commit(project: Project) -> None:
    found = read_back(subject_of(project))
    assert found.keys() == {"STS12.yaml", "SciDocsRR.yaml"}
    entry = found["STS12.yaml"]
    assert (entry.dataset_id, entry.task_id) == ("mteb/sts12-sts", "STS12")
    assert entry.dataset_revision == "a0d554a64d88156834ff5ae9920b964011b16384"
    assert entry.value == pytest.approx(81.23456, abs=1e-5)
    assert entry.notes == "synthbench 1.2, spearman_all, 3,108 items"
    assert found["SciDocsRR.yaml"].dataset_id == "mteb/scidocs-reranking"


def test_results_on_local_data_name_no_commit(project: Project) -> None:
    entry = read_back(subject_of(project, "folder"))["STS12.yaml"]
    assert (entry.dataset_id, entry.dataset_revision) == ("mteb/sts12-sts", None)


@pytest.mark.parametrize(
    "case",
    [
        {"more": ", split: train", "sts": "STSb"},
        {"more": ", sample: {size: 100}"},
        {"more": ", subsets: [MSRpar]"},
        {"num_dropped": 1},
        {"main_score": "pearson_all", "scores": {"pearson_all": 0.5}},
        {"more": ", expected_size: 0"},
    ],
    ids=["another split", "a sample", "subsets", "items left out", "another measure", "another size"],
)
def test_scores_on_unpublished_data_are_left_out(project: Project, case: dict[str, Any]) -> None:
    subject = subject_of(project, **case)
    assert read_back(subject).keys() == {"SciDocsRR.yaml"}
    names = {score.task: hub_test_set(subject, score) for score in scores(subject)}
    assert names["reranking"] == "mteb/scidocs-reranking"
    assert not names["sts"] or "scores" in case, "it has the hub's items, and another measure"


def test_a_cards_interval_over_items_knows_which_items_share_a_sentence(project: Project) -> None:
    gold, predicted = [0.1, 0.2, 0.6, 0.9], [0.2, 0.4, 0.3, 0.8]
    hubs = ["a", "hub", "hub", "d"]
    pairs = [
        ScoredPair(id=str(number), sentence1=hub, sentence2=f"own {number}", score=score)
        for number, (hub, score) in enumerate(zip(hubs, gold, strict=True))
    ]
    store = Store(project.home / "store")
    task = Stage(Evaluate("sts", STS()))
    folder = store.workspace(task.identity) / "output" / DATASET_FOLDER
    folder.mkdir()
    SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs).write(folder)
    store.commit(task.identity, {"spec": task.spec})
    stage = Stage(Evaluate("sts", STS()), {"task": task})
    output = store.workspace(stage.identity) / "output"
    items = {"id": list("0123"), "subset": [""] * 4, "gold": gold, "predicted": predicted}
    pq.write_table(pa.table(items), output / ITEMS_FILE)
    write_json(output / SCORES_FILE, {"main_score": "s", "scores": {"s": 0.8}, "num_items": 4})
    store.commit(stage.identity, {"spec": stage.spec})

    over_items = next(scores(subject_of(project, stage=stage.identity))).over_items

    x = spearman_influence(np.array(gold), np.array(predicted)) / 12**0.5
    by_sentence = np.array([*x, x[1] + x[2]])
    error = (x[0] ** 2 + (x[1] + x[2]) ** 2 + x[3] ** 2) ** 0.5
    degrees = 3 * (by_sentence**2).sum() ** 2 / (by_sentence**4).sum() - 2
    assert error > (x**2).sum() ** 0.5
    assert over_items == pytest.approx(100 * error * t.ppf(0.975, degrees), rel=1e-4)
