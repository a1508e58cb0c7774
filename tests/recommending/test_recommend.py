import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from small_study import small_study
from typer.testing import CliRunner

from synthbench.base.errors import PendingError, UserError
from synthbench.cli.main import app
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.answer import OnTest
from synthbench.recommending.files import PhaseFiles
from synthbench.recommending.outcome import Recommendation, dev_scores, on_test
from synthbench.recommending.page import markdown_page, write_page
from synthbench.recommending.recommend import Recommender
from synthbench.recommending.studies import recommender_of
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.tracking.mlflow_tracker import MlflowTracker

KILLED = """
import os, signal, sys
from pathlib import Path
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.page import write_page
from synthbench.recommending.studies import recommender_of

class Killing(PlainProgress):
    left = int(sys.argv[1])
    def say(self, message):
        super().say(message)
        if message.startswith("done train"):
            Killing.left -= 1
            if Killing.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

found = recommender_of(Path("tickets.yaml"), Overrides(), Killing(), jobs=1, output=Path("reports")).run()
write_page(found, Path("reports"))
"""

# One recipe tries learning rates, the one that starts from another. All sets are smaller.
SMALLER = {
    "  sentences": ("{sandbox: sentences, split: train, size: 150, domains: &domains [sport, traffic]}"),
    "  gold": "&pairs {sandbox: pairs, split: train, size: 40, domains: *domains}",
    "budget": "{usd: 60}",
    "  gold-only": "&short {train: {learning_rate: 2.0e-3, epochs: null, least_steps: null, max_steps: 4}}",
    "  syncse-then-gold": "{train: {epochs: null, least_steps: null, max_steps: 4}}",
}


def recommender(file: Path) -> Recommender:
    return recommender_of(file, Overrides(), PlainProgress(), jobs=1, output=Path("reports"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recommended")


def track_the_answer_alone(patch: pytest.MonkeyPatch, noted: Path) -> None:
    """Note the name of each experiment that is to be tracked, but track only the final one."""
    log = MlflowTracker.log

    def noting(tracker: MlflowTracker, result: ExperimentResult, report: Path) -> str:
        with noted.open("a", encoding="utf-8") as file:
            file.write(f"{result.experiment}\n")
        return log(tracker, result, report) if result.experiment.endswith("-final") else "nowhere"

    patch.setattr(MlflowTracker, "log", noting)


@pytest.fixture(scope="module")
def found(folder: Path, training_libraries: None) -> Recommendation:
    small_study(folder, **SMALLER)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SYNTHBENCH_HOME", str(folder / ".synthbench"))
        track_the_answer_alone(patch, folder / "tracked.txt")
        recommendation = recommender(Path("tickets.yaml")).run()
        write_page(recommendation, Path("reports"))
    return recommendation


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path / ".synthbench"))
    return tmp_path


@pytest.fixture
def again(found: Recommendation, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the ended recommendation, whose stages are all cached."""
    track_the_answer_alone(monkeypatch, tmp_path / "tracked.txt")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(folder / ".synthbench"))
    return Path("tickets.yaml")


def read(file: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe").load(file.read_text(encoding="utf-8")))


def test_the_answer_is_the_first_line_of_the_page(found: Recommendation, folder: Path) -> None:
    page = folder / "reports/tickets-recommendation"
    assert markdown_page(found).splitlines()[0].startswith(f"{found.recipe}: ")
    assert f'<p class="answer">{found.recipe}: ' in (page / "recommendation.html").read_text(encoding="utf-8")
    assert (page / "curves.png").is_file()


def test_every_phase_is_tracked_under_its_own_name(found: Recommendation, folder: Path) -> None:
    tracked = (folder / "tracked.txt").read_text(encoding="utf-8").split()
    assert tracked == [f"tickets-{phase}" for phase in found.reports]
    assert MlflowTracker(folder / ".synthbench").load("tickets-final").experiment == "tickets-final"


def test_the_rates_are_tried_of_the_recipe_that_sets_none(found: Recommendation, folder: Path) -> None:
    tried = {name for name in read(folder / "tickets.rates.yaml")["variants"] if "-rate-" in name}
    assert {name.partition("-rate-")[0] for name in tried} == {"syncse-then-gold-100"}
    assert len(tried) == 2


def test_only_the_final_file_knows_the_test_set(found: Recommendation, folder: Path) -> None:
    for file in found.files:
        assert ("test" in read(folder / file)["sources"]) == (file.name == "tickets.final.yaml"), file
    ((baseline, rows),) = read(folder / "tickets.final.yaml")["table"]["compare_to"].items()
    assert baseline == "gold-only"
    assert len(rows) == 1


def test_the_rule_stands_in_the_pilot_file(found: Recommendation, folder: Path) -> None:
    text = " ".join((folder / "tickets.pilot.yaml").read_text(encoding="utf-8").replace("\n# ", " ").split())
    assert "Fixed before the first score: A recipe is dropped if its forecast" in text


def test_every_recipe_is_on_the_page_and_those_that_lost_say_why(found: Recommendation) -> None:
    assert {each.recipe for each in found.measured} == {"gold-only", "syncse-partial", "syncse-then-gold"}
    losers = [each for each in found.measured if each.recipe != found.recipe]
    assert all(each.dropped for each in losers)


def test_the_pilot_measures_three_amounts_and_spends_a_tenth(found: Recommendation, folder: Path) -> None:
    assert {len(each.scores) for each in found.measured} <= {1, 3, 4, 5}
    amounts = [name.rpartition("-")[2] for name in read(folder / "tickets.pilot.yaml")["variants"]]
    assert len({amount for amount in amounts if amount.isdecimal()}) == 3
    assert 0 < float(found.spent.split()[1]) <= 60


def test_an_ended_recommendation_computes_nothing_again(
    found: Recommendation, again: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recommender(again).run() == found
    summaries = [line for line in capsys.readouterr().err.splitlines() if "stages executed" in line]
    assert summaries
    assert all(" 0 stages executed" in line for line in summaries)


def test_a_clear_loss_on_the_test_set_makes_the_baseline_the_answer_everywhere(
    found: Recommendation, again: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthbench.recommending.recommend.on_test", lambda *_: (OnTest(0.5, -0.2, 0.1), 0.7))
    answer = recommender(again).run()
    assert answer.recipe == "gold-only"
    assert answer.score == pytest.approx(70)
    assert answer.answer.startswith("gold-only: 70.0; ")
    assert answer.more.startswith("More money: gold-only ")
    assert " tickets.final.yaml gold-only --to " in answer.export
    reasons = {each.recipe: each.dropped for each in answer.measured}
    assert [recipe for recipe, why in reasons.items() if not why] == ["gold-only"]
    assert reasons[found.recipe] == "is clearly below the baseline on the test set"


def test_a_recipe_whose_last_runs_failed_says_so(again: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_one(result: ExperimentResult) -> dict[str, list[float]]:
        return {row: each for row, each in dev_scores(result).items() if row != "syncse-partial-150"}

    monkeypatch.setattr("synthbench.recommending.recommend.dev_scores", without_one)
    answer = recommender(again).run()
    (failed,) = [each for each in answer.measured if each.recipe == "syncse-partial"]
    assert failed.dropped == "its runs with more data failed or scored NaN"


def result_of(scores: dict[str, tuple[float, ...]], num_items: dict[str, int]) -> ExperimentResult:
    """Return a result with these rows' scores by seed, on test sets of these sizes."""
    runs = []
    for row, by_seed in scores.items():
        for seed, value in enumerate(by_seed):
            score = TaskScores(
                task="test",
                evaluator="sts",
                main_score="spearman",
                scores={"spearman": value},
                num_items=num_items[row],
                stage=f"{row} {seed}",
            )
            runs.append(RunResult(variant=row, seed=seed, identity=f"{row} {seed}", scores=(score,)))
    return ExperimentResult(
        experiment="x",
        identity="",
        tasks=("test",),
        table={"compare_to": {"gold": []}},
        runs=tuple(runs),
    )


def test_a_row_with_an_undefined_dev_score_has_none() -> None:
    result = result_of({"gold": (0.5, 0.6), "silver": (0.7, math.nan)}, {"gold": 9, "silver": 9})
    assert dev_scores(result) == {"gold": [0.5, 0.6]}


@pytest.mark.parametrize(
    ("last", "num_items", "why"), [(0.6, 8, "scored on different items"), (math.nan, 9, "a score is NaN")]
)
def test_a_challenger_that_was_not_compared_on_the_test_set_is_no_answer(
    last: float, num_items: int, why: str
) -> None:
    result = result_of({"gold": (0.5, 0.6), "silver": (0.7, last)}, {"gold": 9, "silver": num_items})
    with pytest.raises(UserError, match=f"silver and gold were not compared: {why}"):
        on_test(result, "silver", "gold")


def test_a_secret_of_the_command_is_not_in_the_answer(again: Path) -> None:
    given = recommender(again)
    given.overrides = Overrides(profile="sandbox", assignments=("llm.api_key=hunter2", "table.caption=a b"))
    given.written["final"] = Path("tickets.final.yaml")
    command = given._export("gold-only")
    assert "hunter2" not in command
    assert command.endswith(
        "--to tickets-model --profile sandbox --set 'llm.api_key=***' --set 'table.caption=a b'"
    )


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        (PendingError("batch b1 is not done"), 4, "pending: batch b1 is not done\nwhat is finished is kept;"),
        (KeyboardInterrupt(), 130, "interrupted; finished work is kept. To resume: synthbench recommend "),
    ],
)
def test_the_command_says_how_to_resume(
    again: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, line: str
) -> None:
    def stop(_: Recommender) -> None:
        raise raised

    monkeypatch.setattr(Recommender, "run", stop)
    monkeypatch.setattr("sys.argv", ["synthbench", "recommend", str(again)])
    result = CliRunner().invoke(app, ["recommend", str(again)])
    assert result.exit_code == code
    assert line in result.output


@pytest.mark.experiments
def test_a_killed_recommendation_ends_in_the_same_answer(found: Recommendation, elsewhere: Path) -> None:
    small_study(elsewhere, **SMALLER)
    command = [sys.executable, "-c", KILLED]
    assert subprocess.run([*command, "7"], check=False).returncode == -signal.SIGKILL
    subprocess.run([*command, "0"], check=True)
    page = (elsewhere / "reports/tickets-recommendation/recommendation.md").read_text(encoding="utf-8")
    assert page == markdown_page(found)


def test_a_budget_under_the_pilots_cost_is_one_line_with_what_it_costs(elsewhere: Path) -> None:
    with pytest.raises(UserError) as refused:
        recommender(small_study(elsewhere, budget="{usd: 2}")).run()
    (message,) = refused.value.messages
    assert "tickets.yaml:9: budget.usd: 2.00 dollars: the pilot may take a tenth" in message
    assert not list(elsewhere.glob("tickets.*.yaml"))


def test_a_study_without_a_budget_is_refused(elsewhere: Path) -> None:
    with pytest.raises(UserError) as refused:
        recommender(small_study(elsewhere, budget="{}"))
    (message,) = refused.value.messages
    assert message.endswith("budget.usd: missing; set the US dollars that all phases together may cost")


def test_a_long_file_is_refused(elsewhere: Path) -> None:
    file = elsewhere / "long.yaml"
    file.write_text("experiment: long\n", encoding="utf-8")
    with pytest.raises(UserError) as refused:
        recommender(file)
    (message,) = refused.value.messages
    assert message.endswith("recommend reads a short file, with `base`, `budget` and `variants`")


def test_a_file_that_is_no_phase_file_is_never_overwritten(elsewhere: Path) -> None:
    mine = elsewhere / "tickets.pilot.yaml"
    mine.write_text("experiment: mine\n", encoding="utf-8")
    files = PhaseFiles(elsewhere / "tickets.yaml", {})
    with pytest.raises(UserError) as refused:
        files.write("pilot", {}, {}, "")
    assert refused.value.messages == (f"{mine}: recommend would write its pilot phase here; move your file",)
    assert mine.read_text(encoding="utf-8") == "experiment: mine\n"
    files.write("rates", {"seeds": [0]}, {"amounts": {}}, "")
    files.write("rates", {"seeds": [1]}, {"amounts": {"a": 1}}, "")
    assert files.decisions("rates", dict) == {"amounts": {"a": 1}}
