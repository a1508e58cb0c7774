import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from small_study import recommender, small_study

from synthbench.base.errors import UserError
from synthbench.recommending.page import markdown_page, write_page
from synthbench.recommending.recommend import Recommendation

RUN = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(os.pathsep)
from small_study import recommender
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.page import write_page

class Killing(PlainProgress):
    left = int(sys.argv[1])
    def say(self, message):
        super().say(message)
        if message.startswith("done train") and self.left:
            Killing.left -= 1
            if not Killing.left:
                os.kill(os.getpid(), signal.SIGKILL)

found = recommender(Path("."))
found.progress = Killing()
write_page(found.run(), Path("reports"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recommended")


@pytest.fixture(scope="module")
def found(folder: Path) -> Recommendation:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SYNTHBENCH_HOME", str(folder / ".synthbench"))
        recommendation = recommender(Path()).run()
        write_page(recommendation, Path("reports"))
    return recommendation


def read(file: Path) -> dict[str, object]:
    return dict(YAML(typ="safe").load(file.read_text(encoding="utf-8")))


def test_the_answer_is_the_first_line_of_the_page(found: Recommendation, folder: Path) -> None:
    page = folder / "reports/tickets-recommendation"
    assert (page / "recommendation.md").read_text(encoding="utf-8").startswith(found.answer.partition(":")[0])
    assert found.answer.split(" ")[0] in (page / "recommendation.html").read_text(encoding="utf-8")
    assert (page / "curves.png").is_file()


def test_only_the_final_file_knows_the_test_set(found: Recommendation, folder: Path) -> None:
    for file in found.files:
        assert ("test" in read(folder / file)["sources"]) == (file.name == "tickets.final.yaml"), file
    final = read(folder / "tickets.final.yaml")
    (baseline,) = final["table"]["compare_to"].items()
    assert baseline[0] == "gold-only"
    assert len(baseline[1]) == 1


def test_the_rule_stands_in_the_pilot_file(found: Recommendation, folder: Path) -> None:
    text = " ".join((folder / "tickets.pilot.yaml").read_text(encoding="utf-8").split()).replace(" # ", " ")
    assert "Fixed before the first score: A recipe is dropped if its forecast" in text


def test_every_recipe_is_on_the_page_and_those_that_lost_say_why(found: Recommendation) -> None:
    assert {each.recipe for each in found.measured} == {"gold-only", "syncse", "then-gold"}
    losers = [each for each in found.measured if found.answer.partition(":")[0] != each.recipe]
    assert all(each.dropped or each.recipe == "gold-only" for each in losers)


def test_nothing_is_spent_beyond_the_budget(found: Recommendation) -> None:
    assert 0 < float(found.spent.split()[1]) <= 100


def test_a_killed_recommendation_ends_in_the_same_answer(found: Recommendation, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN]
    paths = os.pathsep.join(str(Path(__file__).parents[level]) for level in (0, 1))
    environment = {**os.environ, "SYNTHBENCH_HOME": str(tmp_path / ".synthbench")}
    ended = subprocess.run([*command, "7", paths], cwd=tmp_path, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    subprocess.run([*command, "0", paths], cwd=tmp_path, env=environment, check=True)
    page = (tmp_path / "reports/tickets-recommendation/recommendation.md").read_text(encoding="utf-8")
    assert page == markdown_page(found)


def test_a_budget_under_the_pilots_cost_is_one_line_with_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path / ".synthbench"))
    with pytest.raises(UserError) as refused:
        recommender(Path(), small_study(usd=2.0)).run()
    (message,) = refused.value.messages
    assert message.startswith("tickets.yaml: budget.usd: 2.00 dollars: the pilot may take a tenth")
    assert not list(tmp_path.glob("tickets.*.yaml"))
