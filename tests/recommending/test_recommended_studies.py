from pathlib import Path
from typing import Any

import pytest
from small_study import small_study
from wording import refused

from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.config.short import UNTESTED
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.phases import PhaseRow
from synthbench.recommending.recommend import Recommender
from synthbench.recommending.standard import StandardTask
from synthbench.recommending.studies import PLUMBING, recommender_of
from synthbench.recommending.synthetic import GradedPairs, WrittenQuestions
from synthbench.results.collect import to_yaml

TEXTS = "text\n" + "".join(f"The printer on floor {floor} is out of paper.\n" for floor in range(150))
PAIRS = "one,other,score\n" + "".join(
    f"Room {room} is cold.,It is cold in room {room + room % 2}.,{5 * (1 - room % 2)}\n"
    for room in range(400)
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.csv").write_text(TEXTS, encoding="utf-8")
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    return tmp_path


def study(folder: Path, sources: str, variants: str, *sets: str, llm: str = "sandbox") -> Recommender:
    file = folder / "tickets.yaml"
    lines = [
        "experiment: tickets", "base: sandbox/encoder", f"sources: {sources}", f"llm: {llm}",
        "budget: {usd: 10, machine_hour_usd: 2}", f"variants: {variants}",
    ]  # fmt: skip
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    overrides = Overrides(assignments=sets)
    return recommender_of(file, overrides, PlainProgress(), jobs=1, output=Path("reports"))


def dev_of(found: Recommender) -> dict[str, Any]:
    return dict(found.study.phase("pilot", [PhaseRow("untrained")])["sources"])


def test_gold_pairs_give_baseline_dev_set_and_the_amounts_there_are(folder: Path) -> None:
    found = study(
        folder, "{sentences: texts.csv, gold: pairs.csv}", "[untrained, gold-only, syncse-then-gold]"
    )
    assert found.study.baseline == "gold-only"
    assert (found.study.usd, found.study.hour_usd) == (10, 2)
    assert {name: each.available for name, each in found.study.contenders.items()} == {
        "untrained": 0,
        "gold-only": 0,
        "syncse-partial": 150,
        "syncse-then-gold": 150,
    }
    assert dev_of(found)["dev"]["part"]["take"] == "dev"
    assert found.study.contenders["gold-only"].rates


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The standard tasks that can be read; a test may take some away."""
    names = {"STSb", "SICK-R"}

    def texts_of(task: StandardTask, *_: object) -> list[str]:
        if task.name not in names:
            raise UserError(f"{task.name}: not here")
        return ["A man plays." if task.name == "SICK-R" else "The printer prints."]

    monkeypatch.setattr("synthbench.recommending.without_gold._texts_of", texts_of)
    return names


@pytest.mark.usefixtures("readable")
def test_without_gold_standard_tasks_are_dev_and_test_and_that_is_said(folder: Path) -> None:
    found = study(folder, "{sentences: texts.csv}", "[untrained, syncse-partial]")
    assert found.study.baseline == "untrained"
    assert dev_of(found) == {f"{task}-dev": {"task": task, "split": "dev"} for task in ("STSb", "SICK-R")}
    assert found.study.long["sources"]["test"] == {"task": "STSb", "split": "test"}
    assert any("compared on STSb and SICK-R, " in note and "is unknown" in note for note in found.notes)
    assert not any(note.startswith(UNTESTED) for note in found.notes)


@pytest.mark.usefixtures("readable")
def test_an_llm_grades_pairs_of_sentences_that_no_recipe_learns_from(folder: Path) -> None:
    found = study(folder, "{sentences: texts.csv}", "[untrained, syncse-partial]")
    assert isinstance(found.synthetic, GradedPairs)
    assert len(found.synthetic.sentences) == 30
    assert found.study.contenders["syncse-partial"].available == 120
    assert found.study.long["sources"]["sentences"]["part"]["take"] == "train"


@pytest.mark.usefixtures("readable")
def test_without_an_llm_there_is_no_synthetic_set_and_all_sentences_are_read(folder: Path) -> None:
    found = study(folder, "{sentences: texts.csv}", "[untrained, simcse-sentences]", llm="null")
    assert found.synthetic is None
    assert found.study.contenders["simcse-sentences"].available == 150


def test_a_test_set_of_the_file_stays_and_needs_no_standard_task(folder: Path, readable: set[str]) -> None:
    sources = "{sentences: texts.csv, test: pairs.csv}"
    found = study(folder, sources, "[untrained, syncse-partial]")
    assert found.study.long["sources"]["test"]["file"] == "pairs.csv"
    assert not any("the test set is of" in note for note in found.notes)
    readable.clear()
    found = study(folder, sources, "[untrained, syncse-partial]")
    assert found.synthetic is not None
    assert found.study.devs == {}


def test_without_any_set_to_compare_on_nothing_is_asked(folder: Path, readable: set[str]) -> None:
    readable.clear()
    with pytest.raises(UserError, match="STSb: not here"):
        study(folder, "{sentences: texts.csv}", "[untrained, syncse-partial]")


SEARCH = "{{sandbox: retrieval, split: {}, size: 80, domains: held-out}}"


def test_recipes_for_search_are_compared_on_the_studys_own_dev_set(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# Pumps\n\n" + "The pump starts when the lever is pulled. " * 90)
    sources = f"passages: docs, dev: {SEARCH.format('dev')}, test: {SEARCH.format('test')}"
    found = study(folder, f"{{{sources}}}", "all")
    assert {each.available for name, each in found.study.contenders.items() if name != "untrained"} == {4}
    assert len(found.study.contenders) == 7
    assert dev_of(found)["dev"]["sandbox"] == "retrieval"
    assert PLUMBING in found.notes
    assert found.synthetic is None
    assert "no row uses sources.dev" not in found.notes


def test_without_a_dev_set_of_search_one_line_says_what_is_missing(folder: Path) -> None:
    with refused("sources.dev", "corpus"):
        study(folder, f"{{passages: texts.csv, test: {SEARCH.format('test')}}}", "[untrained, gpl-queries]")


def test_without_sets_of_search_the_llm_writes_questions_for_passages_that_no_recipe_reads(
    folder: Path,
) -> None:
    found = study(folder, "{passages: texts.csv}", "[untrained, gpl-queries]")
    assert isinstance(found.synthetic, WrittenQuestions)
    assert found.study.contenders["gpl-queries"].available == 120
    assert len(found.synthetic.passages) == 150
    made = folder / "made.yaml"
    made.write_text(to_yaml(found.synthetic.document(found.study)), encoding="utf-8")
    asked = load_experiment(made)
    assert len(asked.sources["held-out"].read(asked.roots).records) == 30
    assert found.study.devs == {}


def test_passages_alone_have_recipes_for_search_whose_shared_queries_are_paid_once(folder: Path) -> None:
    found = study(folder, "{passages: texts.csv}", "all")
    assert found.study.groups == {
        "untrained": ("untrained",),
        "gpl-pairs": ("gpl-pairs", "gpl-queries", "gpl-relabelled", "gpl-written-negatives"),
        "persona-queries": ("persona-queries",),
        "two-passage-queries": ("two-passage-queries",),
    }


def test_real_texts_in_the_sandbox_prove_plumbing_only(folder: Path) -> None:
    found = study(folder, "{sentences: texts.csv, gold: pairs.csv}", "[gold-only, syncse-partial]")
    assert PLUMBING in found.notes
    assert (
        PLUMBING
        not in recommender_of(
            small_study(folder), Overrides(), PlainProgress(), jobs=1, output=Path("reports")
        ).notes
    )


def test_recipes_that_can_not_be_had_are_named(folder: Path) -> None:
    found = study(folder, "{sentences: texts.csv, gold: pairs.csv}", "all")
    assert any(note.startswith("gpl-queries is left out") for note in found.notes)


def test_a_rate_of_the_file_is_not_chosen_again(folder: Path) -> None:
    found = study(folder, "{gold: pairs.csv}", "{untrained: , gold-only: {train.learning_rate: 2e-4}}")
    assert found.study.contenders["gold-only"].rates == ()
    assert found.study.contenders["gold-only"].rate is None


def test_changes_of_the_short_form_are_not_made_twice(folder: Path) -> None:
    found = study(folder, "{gold: pairs.csv}", "[untrained, gold-only]", "budget.usd=7", "runtime.threads=1")
    assert found.overrides.assignments == ("runtime.threads=1",)
    assert found.study.usd == 7
