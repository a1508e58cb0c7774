"""`synthbench data audit` from end to end."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from synthbench.base.errors import UserError
from synthbench.cli.data import app
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, RecordKind, ScoredPair

CAPTION = "A man is feeding a dolphin."
SAME = "There is a guy feeding a dolphin."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pairs intended as same (one really is), one intended as different, and a failure."""
    records = [
        ScoredPair(sentence1=CAPTION, sentence2=SAME, score=1.0),
        ScoredPair(sentence1=CAPTION, sentence2="Dolphins!", score=1.0),
        ScoredPair(sentence1=SAME, sentence2="Bridge inspected by builder", score=0.0),
    ]
    target = tmp_path / "pairs"
    target.mkdir()
    failures = [Failure(reason="no closing quote")]
    SyntheticDataset.create(RecordKind.SCORED_PAIR, records, failures=failures).write(target)
    return target


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def succeed(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


def problem(*arguments: str | Path) -> str:
    error = call(*arguments).exception
    assert isinstance(error, UserError)
    return str(error)


def test_the_oracle_prints_the_confusion_and_writes_it(folder: Path, tmp_path: Path) -> None:
    output = succeed(folder, "--oracle", "sandbox", "--json", tmp_path / "audit.json")
    for text in (
        "judged labels (rows) of intended labels (columns)",
        "50.0% [9.5, 90.5] (1)",
        "outside the grammar",
        "Outside the grammar: 1 x sentence2",
        "same from 0.9, similar from 0.5, a little from 0.25, different from 0",
        "Rank correlation (Spearman) of intended score and judgement: 1.000, 2 pairs",
        "Failures, without a text to judge: 1 (1 x no closing quote)",
    ):
        assert text in output
    figures = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert figures["confusion"]["cells"]["same"]["1"]["count"] == 1
    assert figures["bands"]["same"] == [0.9, 1.0]


def test_a_sheet_is_written_and_read_again_with_answers(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    output = succeed(
        folder, "--write", sheet, "--sample", "2", "--question", "Is it true?", "--labels", "yes,no"
    )
    assert "2 to answer with yes, no" in output
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    assert header[-1] == "Is it true? Answer: yes | no"
    for name, answers in {"anna": ("yes", "no"), "ben": ("yes", "yes")}.items():
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            answered = [[*row[:-1], answer] for row, answer in zip(rows, answers, strict=True)]
            csv.writer(stream).writerows([header, *answered])
    output = succeed(folder, "--read", tmp_path / "anna.csv", "--read", tmp_path / "ben.csv")
    for text in (
        "Asked: Is it true?",
        "Judged by: anna, ben",
        "no majority",
        "Answers of each annotator",
        "75.0%",
        "Agreement of 2 annotators on 2: equal answers 50.0%, Cohen's kappa 0.000",
    ):
        assert text in output


def test_a_sheet_is_replaced_only_by_force(folder: Path, tmp_path: Path) -> None:
    succeed(folder, "--write", tmp_path / "sheet.csv")
    assert "use --force" in problem(folder, "--write", tmp_path / "sheet.csv")
    succeed(folder, "--write", tmp_path / "sheet.csv", "--force")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give one of --oracle sandbox, --write FILE.csv"),
        (("--oracle", "sandbox", "--write", "a.csv"), "given: --oracle, --write"),
        (("--oracle", "sandbox", "--labels", "a,b"), "--labels: only goes with --write"),
        (("--read", "a.csv", "--question", "Why?"), "--question: only goes with --write"),
        (("--read", "a.csv", "--sample", "5"), "--sample: does not go with --read"),
        (("--write", "a.csv", "--json", "a.json"), "--json: does not go with --write"),
        (("--gold", "a", "--oracle", "sandbox"), "given: --oracle, --gold"),
        (("--gold", "a", "--sample", "5"), "--sample: does not go with --gold"),
        (("--oracle", "sandbox", "--sample", "5"), "the sample of 5 is larger than the data set"),
        (("--oracle", "sandbox", "--json", "nowhere/a.json"), "--json nowhere/a.json: no folder"),
    ],
)
def test_options_without_effect_are_refused(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in problem(folder, *options)


def test_another_data_sets_scores_of_the_same_pairs_judge(folder: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.mkdir()
    scores = {SAME: 0.9, "Dolphins!": 0.2}
    records = [ScoredPair(sentence1=CAPTION, sentence2=text, score=score) for text, score in scores.items()]
    SyntheticDataset.create(RecordKind.SCORED_PAIR, records).write(gold)
    output = succeed(folder, "--gold", gold, "--json", tmp_path / "audit.json")
    for text in ("Judged by: gold", "agreement with gold", "50.0 [9.5, 90.5]", "On 2 gold pairs"):
        assert text in output
    found = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["quality"]
    assert (found["num_pairs"], found["correct"]["count"], found["threshold"]) == (2, 1, 0.5)
