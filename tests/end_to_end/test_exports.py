"""Exported models and data sets: complete, loadable by common libraries, with cards, only on request."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_bert
from small_experiment import Called, Project, artifact
from small_hub import REVISION, TOKEN, small_hub
from wording import worded

from synthbench.base.runtime import Runtime
from synthbench.exporting.cards import Statements
from synthbench.exporting.training_code import USUAL_BASE
from synthbench.models.artifact import load
from synthbench.models.interfaces import Encoder


@pytest.fixture
def project(finished_run: tuple[Project, Called], tmp_path: Path) -> Project:
    """The finished project; each test exports to its own folder."""
    return finished_run[0]


def export(project: Project, what: str, row: str, *options: str | Path) -> Called:
    """Export a model or data set of a row."""
    return project.call("export", what, project.file, row, *options)


def refuses(called: Called, *facts: str) -> None:
    """Expect one line with these facts and exit code 2."""
    assert (called.code, len(called.errors)) == (2, 1), called.err
    worded(called.errors, *facts)


def test_sentence_transformers_loads_the_model_that_was_evaluated(project: Project, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    done = export(project, "model", "gold-only", "--seed", "1", "--to", tmp_path / "out")
    assert done.code == 0, done.err
    ours = load(artifact(project, "train gold-only seed 1"), Runtime(device="cpu"))
    assert isinstance(ours, Encoder)
    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(theirs, ours.encode(SENTENCES), atol=1e-6)


def test_the_model_card_has_description_and_scores(project: Project, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    done = export(project, "model", "augsbert", "--seed", "0", "--to", tmp_path / "out", "--license", "mit")
    assert done.code == 0, done.err
    card = ModelCard.load(tmp_path / "out" / "README.md")
    lineage = json.loads((tmp_path / "out" / "lineage.json").read_text("utf-8"))
    sizes = [data["num_records"] for data in lineage["run"]["datasets"]]
    assert card.data.license == "mit"
    assert card.data.library_name == "sentence-transformers"
    assert {
        "sentence-transformers",
        "sentence-similarity",
        "feature-extraction",
        "loss:CosineSimilarityLoss",
        "synthetic",
        f"dataset_size:{sum(sizes)}",
    } <= set(card.data.tags or [])
    (score,) = card.data.eval_results or []
    (recorded,) = lineage["run"]["scores"]
    assert (score.dataset_name, score.metric_type) == ("test", "spearman_all")
    assert score.metric_value == pytest.approx(recorded["scores"]["spearman_all"], abs=1e-6)
    for section in ("How good it is", "What it was trained on", "Test sentences", "How to make it again"):
        assert f"## {section}" in card.text
    assert f"{100 * recorded['scores']['spearman_all']:.2f} ±" in card.text
    assert "Each seed redraws: order of training." in card.text
    assert str(project.folder) not in card.content


def test_best_on_dev_is_the_seed_with_the_best_dev_score(project: Project, tmp_path: Path) -> None:
    scores = {
        seed: json.loads((artifact(project, f"train gold-only seed {seed}") / "training.json").read_text())[
            "dev_score"
        ]
        for seed in (0, 1)
    }
    export(project, "model", "gold-only", "--to", tmp_path / "out")
    lineage = json.loads((tmp_path / "out" / "lineage.json").read_text("utf-8"))
    assert lineage["seed"] == max(scores, key=lambda seed: (scores[seed], -seed))


def test_the_exported_experiment_is_the_one_that_was_run(project: Project, tmp_path: Path) -> None:
    export(project, "model", "gold-only", "--to", tmp_path / "out")
    again = project.folder / "again.yaml"
    shutil.copy(tmp_path / "out" / "experiment.yaml", again)
    try:
        assert "\nnothing to compute" in (said := project.call("plan", again).out) or ": 0 to run" in said
    finally:
        again.unlink()


def test_datasets_loads_the_training_records(project: Project, tmp_path: Path) -> None:
    from datasets import load_dataset
    from huggingface_hub import DatasetCard

    done = export(project, "dataset", "augsbert", "--to", tmp_path / "out")
    assert done.code == 0, done.err
    loaded = load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    manifest = json.loads((tmp_path / "out" / "lineage.json").read_text("utf-8"))["manifests"]["silver"]
    assert sum(len(split) for split in loaded.values()) == manifest["num_records"]
    assert loaded["train"].column_names == ["sentence1", "sentence2", "score"]
    beside = load_dataset(str(tmp_path / "out"), "provenance", cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in beside.items()} == {k: len(v) for k, v in loaded.items()}
    assert set(beside["train"]["method"]) == {"augsbert"}
    card = DatasetCard.load(tmp_path / "out" / "README.md").data.to_dict()
    assert card["annotations_creators"] == "machine-generated"
    assert card["configs"][0]["data_files"][0] == {"split": "train", "path": "data/train.parquet"}
    assert {"license", "language", "source_datasets", "size_categories", "task_categories"} <= card.keys()
    assert "synthetic" in card["tags"]


def python_blocks(card: Path) -> list[str]:
    """Return the code that a card shows."""
    return re.findall(r"```python\n(.*?)```", card.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("what", "row"), [("dataset", "augsbert"), ("model", "gold-only"), ("model", "augsbert")]
)
def test_the_code_on_a_card_runs_as_it_is_printed(
    what: str, row: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names on it are folders here: the base's, and PATH OF THIS FOLDER."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    assert export(project, what, row, "--to", tmp_path / Statements().address).code == 0
    (tmp_path / USUAL_BASE).parent.mkdir()
    tiny_bert(tmp_path / USUAL_BASE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = python_blocks(tmp_path / Statements().address / "README.md")
    assert len(blocks) == (3 if what == "dataset" else 1)
    for block in blocks:
        exec(block, names)


@pytest.mark.parametrize(
    ("what", "row"), [("dataset", "augsbert"), ("model", "gold-only"), ("model", "augsbert")]
)
def test_the_lines_of_a_card_are_separate(what: str, row: str, project: Project, tmp_path: Path) -> None:
    assert export(project, what, row, "--to", tmp_path / "out").code == 0
    text = (tmp_path / "out" / "README.md").read_text("utf-8").partition("\n---\n")[2]
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    assert re.findall(r"\S*[a-z)][.!?:;,][A-Z]\S*", prose) == []
    assert [
        line for line in prose.splitlines() if re.search(r"\S(#+ |\|$)", line) and line[0] not in "|#"
    ] == []


@pytest.mark.parametrize(
    ("what", "arguments", "facts"),
    [
        ("model", ("augsbrt",), ("augsbrt", "did you mean 'augsbert'")),
        ("model", ("augsbert", "--seed", "7"), ("--seed 7", "0, 1", "best-on-dev")),
        ("dataset", ("gold-only",), ("gold-only", "no synthetic data")),
        ("dataset", ("augsbert", "--part", "silvr"), ("silvr", "did you mean 'silver'")),
        ("dataset", ("augsbert", "--part", "gold"), ("--part gold", "no method made it")),
        ("model", ("augsbert", "--public"), ("--public", "--push")),
        ("model", ("augsbert", "--push", "mine"), ("--push mine", "OWNER/NAME")),
    ],
)
def test_missing_rows_and_models_are_reported_in_one_line_and_nothing_is_written(
    what: str, arguments: tuple[str, ...], facts: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    refuses(export(project, what, *arguments, "--to", tmp_path / "out"), *facts)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_only_on_request_and_only_an_export(project: Project, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "thesis.tex").write_text("years of work", encoding="utf-8")
    refuses(export(project, "dataset", "augsbert", "--to", target), "exists already", "--force")
    refuses(export(project, "dataset", "augsbert", "--to", target, "--force"), "did not write")
    refuses(export(project, "dataset", "augsbert", "--to", target / "thesis.tex", "--force"), "is a file")
    (target / "thesis.tex").rename(target / "lineage.json")
    assert export(project, "dataset", "augsbert", "--to", target, "--force").code == 0
    assert (target / "data" / "train.parquet").is_file()


def test_a_missing_or_damaged_model_is_reported_with_the_command_that_makes_it(
    project: Project, tmp_path: Path
) -> None:
    folder = artifact(project, "train gold-only seed 0")
    weights = next((folder / "model").rglob("*.safetensors"))
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        refuses(
            export(project, "model", "gold-only", "--seed", "0", "--to", tmp_path / "out"),
            "damaged",
            "synthbench run small.yaml",
        )
        folder.rename(folder.with_suffix(".away"))
        refuses(
            export(project, "model", "gold-only", "--seed", "0", "--to", tmp_path / "out"),
            "no longer in the store",
            "synthbench run small.yaml",
        )
        folder.with_suffix(".away").rename(folder)
    finally:
        weights.write_bytes(content)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_lists_the_files_and_writes_and_sends_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_hub(monkeypatch) as hub:
        told = export(
            project, "dataset", "augsbert", "--to", tmp_path / "out", "--push", "me/mine", "--dry-run"
        )
    assert told.code == 0, told.err
    for fact in ("README.md", "data/train.parquet", " bytes", "me/mine", "private"):
        assert fact in told.out
    assert (hub.asked, list(tmp_path.iterdir())) == ([], [])


def test_with_yes_a_script_uploads_and_gets_the_revision(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    with small_hub(monkeypatch) as hub:
        arguments = ("--to", target, "--push", "me/mine")
        refuses(export(project, "dataset", "augsbert", *arguments), "--yes")
        assert not target.exists()
        sent = export(project, "dataset", "augsbert", *arguments, "--yes")
    assert sent.code == 0, sent.err
    assert f"revision {REVISION}" in sent.out
    stored = hub.repositories["datasets/me/mine"]
    assert stored["private"]
    assert stored["files"]["data/train.parquet"] == (target / "data" / "train.parquet").read_bytes()
    assert b'load_dataset("me/mine")' in stored["files"]["README.md"]
    assert TOKEN.encode() not in b"".join(stored["files"].values())
    assert TOKEN not in sent.out + sent.err


def test_answering_no_keeps_the_folder_and_uploads_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question: "me/mine (new, private)" not in question)
    with small_hub(monkeypatch) as hub:
        told = export(project, "dataset", "augsbert", "--to", tmp_path / "out", "--push", "me/mine")
    assert (told.code, hub.repositories) == (0, {})
    assert "not sent" in told.out
    assert (tmp_path / "out" / "README.md").is_file()
