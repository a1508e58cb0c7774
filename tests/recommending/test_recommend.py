import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from small_study import small_study

from synthbench.base.errors import UserError
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.outcome import Recommendation
from synthbench.recommending.page import markdown_page, write_page
from synthbench.recommending.recommend import Recommender
from synthbench.recommending.studies import recommender_of

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


def recommender(file: Path) -> Recommender:
    return recommender_of(file, Overrides(), PlainProgress(), jobs=1, output=Path("reports"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recommended")


@pytest.fixture(scope="module")
def found(folder: Path) -> Recommendation:
    small_study(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SYNTHBENCH_HOME", str(folder / ".synthbench"))
        recommendation = recommender(Path("tickets.yaml")).run()
        write_page(recommendation, Path("reports"))
    return recommendation


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path / ".synthbench"))
    return tmp_path


def read(file: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe").load(file.read_text(encoding="utf-8")))


def test_the_answer_is_the_first_line_of_the_page(found: Recommendation, folder: Path) -> None:
    page = folder / "reports/tickets-recommendation"
    assert markdown_page(found).splitlines()[0].startswith(f"{found.recipe}: ")
    assert f'<p class="answer">{found.recipe}: ' in (page / "recommendation.html").read_text(encoding="utf-8")
    assert (page / "curves.png").is_file()


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
    assert 0 < float(found.spent.split()[1]) <= 100


def test_an_ended_recommendation_computes_nothing_again(
    found: Recommendation, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(folder / ".synthbench"))
    assert recommender(Path("tickets.yaml")).run() == found
    summaries = [line for line in capsys.readouterr().err.splitlines() if "stages executed" in line]
    assert summaries
    assert all(" 0 stages executed" in line for line in summaries)


@pytest.mark.experiments
def test_a_killed_recommendation_ends_in_the_same_answer(found: Recommendation, elsewhere: Path) -> None:
    small_study(elsewhere)
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
