"""`synthbench data contamination` against experiments, tasks and suites."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from wording import worded

from synthbench.base.errors import UserError
from synthbench.cli.data import app

EXPERIMENT = """\
experiment: tested
sources:
  there: {file: test.tsv, kind: scored_pair, split: test}
  absent: {file: absent.tsv, kind: scored_pair, split: test}
defaults:
  train: {trainer: none, base: {model: sandbox/encoder}}
  evaluate:
    sts: {evaluator: sts, tasks: [there], if_found: [absent]}
baseline: base
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Three training sentences, and an experiment that tests on one of them."""
    rows = ["sentence1\tsentence2\tscore", "A dog barks.\tIt rains.\t0.5", "One.\tTwo.\t0.1"]
    (tmp_path / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "tested.yaml").write_text(EXPERIMENT, encoding="utf-8")
    file = tmp_path / "training.txt"
    file.write_text("a dog barks\nIt rains.\nThree\n", encoding="utf-8")
    return file


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["contamination", *map(str, arguments)], env={"COLUMNS": "120"})


def test_the_test_sets_of_an_experiment_are_searched(training: Path) -> None:
    figures = training.with_name("figures.json")
    result = call(training, "--against", training.with_name("tested.yaml"), "--json", figures)
    assert result.exit_code == 0, result.exception
    assert "1 of 2" in result.stdout
    assert "2 distinct sentences of the data are in a test set" in result.stdout
    assert "not looked for: absent" in result.stderr
    report = json.loads(figures.read_text(encoding="utf-8"))
    assert (report["num_records"], report["training_sentences_in_any"]["normalised"]) == (3, 2)
    (there,) = report["tests"]
    assert (there["name"], there["num_items"], there["items_as_pairs"]) == ("there", 2, 0)
    assert there["checks"]["normalised"] == {
        "training_sentences": 2,
        "sentences": 2,
        "items": 1,
        "whole_items": 1,
    }
    assert there["checks"]["exact"]["whole_items"] == 0


def test_test_sets_with_equal_names_are_all_searched(training: Path) -> None:
    figures, file, other = (training.with_name(name) for name in ("figures.json", "tested.yaml", "b.yaml"))
    other.write_text(EXPERIMENT.replace("test.tsv", "other.tsv"), encoding="utf-8")
    rows = "sentence1\tsentence2\tscore\nFour.\tFive.\t0.1\nSix.\tSeven.\t0.5\n"
    training.with_name("other.tsv").write_text(rows, encoding="utf-8")
    options = [text for each in (file, other, file) for text in ("--against", each)]
    assert call(training, *options, "--json", figures).exit_code == 0
    tests = json.loads(figures.read_text(encoding="utf-8"))["tests"]
    found = {each["name"]: each["checks"]["normalised"]["sentences"] for each in tests}
    assert found == {"there": 2, f"{other}: there": 0}


def test_without_a_terminal_no_word_is_truncated(training: Path) -> None:
    arguments = ["contamination", str(training), "--against", str(training.with_name("tested.yaml"))]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": None})
    assert "near-duplicate" in result.stdout
    assert "…" not in result.stdout


def test_an_experiment_without_any_available_test_set_is_an_error(training: Path) -> None:
    file = training.with_name("tested.yaml")
    file.write_text(
        file.read_text(encoding="utf-8")
        .replace("tasks: [there], if_found: [absent]", "if_found: [absent]")
        .replace("  there: {file: test.tsv, kind: scored_pair, split: test}\n", ""),
        encoding="utf-8",
    )
    result = call(training, "--against", file)
    assert isinstance(result.exception, UserError)
    worded(str(result.exception), "--against", str(file), "test")


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("stss", "neither a suite, a task nor an experiment file; did you mean 'sts'?"),
        ("STSb/valid", "the split is one of train, dev, test"),
        ("STS12/dev", "STS12 has no split 'dev', only test"),
        ("none.yaml", "no such file"),
    ],
)
def test_unknown_tests_are_named(training: Path, against: str, message: str) -> None:
    problem = call(training, "--against", against).exception
    assert isinstance(problem, UserError)
    assert message in str(problem)


def test_missing_data_are_named_before_any_test_set_is_read(training: Path) -> None:
    problem = call(training.with_name("nothing.txt"), "--against", "sts").exception
    worded(str(problem), str(training.with_name("nothing.txt")))


def test_words_finds_a_chinese_sentence_within_a_longer_one(training: Path) -> None:
    sentence = "我们昨天在北京的一家小餐馆里吃了非常好吃的烤鸭然后回家"
    tests = (
        f"sentence1\tsentence2\tscore\n{sentence}\t今天上海下了很大的雨。\t0.5\n我喜欢狗。\t我喜欢猫。\t0.1\n"
    )
    training.with_name("test.tsv").write_text(tests, encoding="utf-8")
    training.write_text(f"他说{sentence}了。\n", encoding="utf-8")
    note = "13-gram: the texts have no spaces between words, so only whole sentences are found; give --words"
    for options in ((), ("--words", "icu"), ("--words", "pairs")):
        result = call(training, "--against", training.with_name("tested.yaml"), *options)
        assert result.exit_code == 0, result.exception
        assert (note in result.stdout) is not bool(options)
        assert ("13-gram: 1 distinct sentences of the data" in result.stdout) is bool(options)
