"""`fetch`, `plan` and `run` against a hub on loopback with real layouts, and without any hub."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from manifest_hub import ManifestHub, manifest_hub, use_hub
from small_experiment import Called, Project

from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.hub.repositories import HubRepository
from synthbench.models.building import build_encoder
from synthbench.models.checkpoint_files import ModelFiles
from synthbench.models.pretrained import Pretrained
from synthbench.pipeline.hub_needs import files_on_hub, missing, planned, sources_of

BERT, BERT_COMMIT = "bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594"
NLI = "princeton-nlp/datasets-for-simcse"
SIMCSE = "princeton-nlp/unsup-simcse-bert-base-uncased"
FILE = """\
experiment: fetched
description: What names on the hub need
sources:
  nli:
    hub: {data}
    file: {file}
    kind: triplet
    columns: {{anchor: sent0, positive: sent1, negative: {column}}}
  test: {{task: STSb, expected_size: 0}}
seeds: [0]
defaults:
  data: {{nli: {{source: nli}}}}
  train:
    trainer: bi-encoder
    base: {{model: {model}}}
    loss: {{name: multiple-negatives, learns_from: triplet}}
    max_steps: 2
    batch_size: 4
  evaluate: {{sts: {{evaluator: sts, tasks: [test]}}}}
baseline: only
variants: {{}}
runtime: {{device: cpu, threads: 1}}
"""
GIVEN = {
    "data": NLI,
    "file": "nli_for_simcse.csv",
    "column": "hard_neg",
    "model": SIMCSE,
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManifestHub]:
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    with manifest_hub() as running:
        use_hub(running, tmp_path / "huggingface", monkeypatch)
        yield running


@pytest.fixture
def project(tmp_path: Path, hub: ManifestHub) -> Project:
    folder = tmp_path / "experiment"
    folder.mkdir()
    return Project(folder, tmp_path / "home")


def called(project: Project, *arguments: str, **changes: Any) -> Called:
    (project.folder / "fetched.yaml").write_text(FILE.format(**{**GIVEN, **changes}), encoding="utf-8")
    return project.call(arguments[0], "fetched.yaml", *arguments[1:])


def cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the hub's address answer no more."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")


def test_after_a_fetch_all_that_a_run_reads_is_at_hand_without_a_hub(
    project: Project, hub: ManifestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called(project, "fetch").code == 0
    cut_off(monkeypatch)
    hub.asked.clear()
    plan = planned(load_experiment(project.folder / "fetched.yaml"))
    assert plan.not_at_hand == {}
    assert missing(files_on_hub(plan.stages.values())) == []
    sources = sources_of(plan.stages.values())
    assert sum(bool(source.read(roots).records) for source, roots in sources) == 2
    build_encoder(Pretrained(model=SIMCSE), 0, "cpu")
    assert hub.asked == []


@pytest.mark.experiments
def test_a_fetched_experiment_runs_without_a_hub(
    project: Project, hub: ManifestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = called(project, "fetch")
    assert (fetched.code, fetched.errors) == (0, [])
    cut_off(monkeypatch)
    hub.asked.clear()
    ran = project.call("run", "fetched.yaml", "--quiet")
    assert (ran.code, ran.errors) == (0, [])
    assert hub.asked == []


def test_a_dry_run_lists_commits_and_sizes_and_downloads_no_weights(
    project: Project, hub: ManifestHub
) -> None:
    listed = called(project, "fetch", "--dry-run")
    assert listed.code == 0
    (line,) = [line for line in listed.out.splitlines() if NLI in line]
    assert "e145e8b" in line
    assert "to download" in listed.out
    assert not [line for line in hub.asked if "/resolve/" in line and line.endswith((".bin", ".csv", ".gz"))]


def test_what_is_cached_is_not_downloaded_again(project: Project, hub: ManifestHub) -> None:
    called(project, "fetch")
    hub.asked.clear()
    again = called(project, "fetch")
    assert "0 bytes of" in again.out
    assert not [line for line in hub.asked if line.startswith("GET") and "/resolve/" in line]


def test_files_deleted_in_the_cache_are_downloaded_again(project: Project, tmp_path: Path) -> None:
    called(project, "fetch")
    blobs = [*(tmp_path / "huggingface" / "hub").glob("*/blobs/*")]
    for blob in blobs:
        blob.unlink()
    again = called(project, "fetch")
    assert (again.code, again.errors) == (0, [])
    assert all(blob.is_file() for blob in blobs)


def test_a_cache_that_can_not_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    repository = HubRepository("model", SIMCSE)
    refused = pytest.raises(UserError, match=r"can't be written: Read-only .*; HF_HOME sets another folder")
    with refused, repository.errors():
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path))


def test_a_disk_that_fills_up_during_a_download_keeps_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository = HubRepository("model", SIMCSE)
    names = ("blobs/whole", "blobs/half.incomplete", "trees/half.tmp")
    for name in names:
        (repository.cache / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.cache / name).write_bytes(b"x")
    with pytest.raises(UserError, match="is full; HF_HOME sets another folder"), repository.errors():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert [name for name in names if (repository.cache / name).exists()] == ["blobs/whole"]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"model": SIMCSE.removesuffix("-uncased")}, ["no model of this name", f"did you mean '{SIMCSE}'"]),
        ({"data": "princeton-nlp/datasets-for-simce"}, ["no data set of this name", f"did you mean '{NLI}'"]),
        ({"model": SIMCSE.replace("princeton", "stanford")}, [f"did you mean '{SIMCSE}'"]),
        ({"data": "somebody/datasets-for-simcse"}, [f"did you mean '{NLI}'"]),
        ({"file": "nli.csv"}, ["has no nli.csv", "it has nli_for_simcse.csv"]),
        ({"file": "data/nli_for_simcse.csv"}, ["has no data/nli_for_simcse.csv"]),
        ({"model": f"{BERT}, revision: {'c' * 40}"}, [f"no commit {'c' * 40}"]),
    ],
)  # fmt: skip
def test_a_run_names_what_the_hub_lacks_before_it_computes_anything(
    project: Project, changes: dict[str, str], parts: list[str]
) -> None:
    for command in ("fetch", "run"):
        refused = called(project, command, **changes)
        assert refused.code == 2
        (error,) = refused.errors
        assert all(part in error for part in parts), error
        key = "hub:" if {"data", "file"} & changes.keys() else "base:"
        lines = (project.folder / "fetched.yaml").read_text(encoding="utf-8").splitlines()
        (number,) = (number for number, line in enumerate(lines, start=1) if line.strip().startswith(key))
        assert error.startswith(tuple(f"fetched.yaml:{at}: " for at in (number, number - 1)))
    assert not list((project.home / "store").glob("artifacts/*/*"))


def test_a_wrong_column_is_found_by_the_first_rows(project: Project) -> None:
    refused = called(project, "fetch", column="negative")
    assert refused.code == 2
    (error,) = refused.errors
    assert "no column 'negative'" in error


def test_a_gated_model_is_named_with_the_page_whose_terms_are_to_be_accepted(
    project: Project, hub: ManifestHub
) -> None:
    hub.gated.add(SIMCSE)
    for command in ("fetch", "run"):
        (error,) = called(project, command).errors
        assert f"accept its terms at {hub.address}/{SIMCSE}" in error
        assert "HF_TOKEN" in error
        assert str(project.folder) not in error, "it is on the hub, so no folder was meant"


def test_a_repository_without_weights_that_we_read_says_which_we_read(hub: ManifestHub) -> None:
    files = ModelFiles(HubRepository("model", "org/name"))
    with pytest.raises(UserError, match=r"\*.safetensors and pytorch_model\*.bin; it has model.gguf"):
        files.chosen(["config.json", "model.gguf", "README.md"])


def test_pickled_weights_are_taken_only_from_folders_without_others(hub: ManifestHub) -> None:
    files = ModelFiles(HubRepository("model", "org/name"))
    names = ["config.json", "model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin"]
    names += ["onnx/model.onnx", "original/consolidated.safetensors", "tf_model.h5"]
    names += ["checkpoint-500/model.safetensors", "checkpoint-500/config.json", "other/pytorch_model.bin"]
    assert files.chosen(names) == ["config.json", "model.safetensors", "2_Dense/pytorch_model.bin"]


def test_too_full_a_disk_is_reported_before_anything_is_downloaded(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 99, 1))  # type: ignore[attr-defined]
    refused = called(project, "fetch")
    assert refused.code == 2
    (error,) = refused.errors
    assert "1 bytes free" in error
    assert "no weights or data were downloaded" in error
    assert not list((tmp_path / "huggingface").rglob("*.bin"))


def test_without_a_hub_a_run_says_once_what_is_missing_with_three_ways_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(monkeypatch)
    refused = called(project, "run")
    assert refused.code == 2
    (error,) = refused.errors
    assert error.startswith("the hub does not answer, and this machine lacks ")
    ways = ("synthbench fetch FILE", "--data", "--profile sandbox")
    assert all(part in error for part in (SIMCSE, NLI, "mteb/stsbenchmark-sts", *ways))


def test_a_plan_names_the_missing_models_and_data_without_asking_for_weights(
    project: Project, hub: ManifestHub
) -> None:
    planned = called(project, "plan", model=f"{BERT}, revision: {BERT_COMMIT}")
    assert planned.code == 0
    lines = [line for line in planned.out.splitlines() if line.startswith("not at hand")]
    assert f"not at hand: model {BERT} at {BERT_COMMIT}" in lines
    assert any(NLI in line for line in lines)
    assert "synthbench fetch FILE" in planned.out


def test_a_short_file_with_a_wrong_base_gets_the_hubs_answer_with_near_names(
    tmp_path: Path, hub: ManifestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size can't be known; without a hub, the line asks for the size instead."""
    (tmp_path / "texts.csv").write_text("text\nA man runs.\nA dog sits.\n", encoding="utf-8")
    file = tmp_path / "study.yaml"
    file.write_text(
        f"experiment: s\nbase: {SIMCSE.removesuffix('-uncased')}\nsources: {{sentences: texts.csv}}\n"
        "variants: [untrained]\n",
        encoding="utf-8",
    )
    with pytest.raises(UserError, match=rf"study.yaml:2: base: .*no model of this name.*'{SIMCSE}'"):
        load_experiment(file, Overrides())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("synthbench.models.sizes.is_reachable", lambda: False)
    with pytest.raises(UserError, match=r"study.yaml:2: base: the size of .* is not known"):
        load_experiment(file, Overrides())
