from pathlib import Path

import pytest
from small_study import small_study

from synthbench.base.errors import UserError
from synthbench.config.overrides import Overrides
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Record, RecordKind, ScoredPair, Sentence
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.page import markdown_page
from synthbench.recommending.phases import Contest, PhaseRow
from synthbench.recommending.standard import STANDARD_TASKS, StandardTask, nearest_tasks
from synthbench.recommending.studies import recommender_of
from synthbench.recommending.synthetic import GradedPairs, WrittenQuestions, pairs_of

OF_TASK = {
    "STSb": "A man is slicing an onion.",
    "MRPC": "Shares of the company fell two percent on Tuesday.",
    "Quora": "How do I open a bank account online?",
}
QUESTIONS = ["How do I close my account?", "How do I open the online form?"]


def contest() -> Contest:
    long = {
        "experiment": "tickets",
        "llm": "sandbox",
        "sources": {"passages": {"file": "passages.csv"}, "test": {"task": "STSb"}},
        "defaults": {"evaluate": {"test": {"evaluator": "sts", "tasks": ["test"]}}},
    }
    return Contest(long, {}, "untrained", 10)


def texts_of(task: StandardTask) -> list[str]:
    if task.name not in OF_TASK:
        raise UserError(f"{task.name}: not here")
    return [OF_TASK[task.name]]


def test_the_tasks_whose_words_are_most_like_the_texts_are_taken() -> None:
    assert [task.name for task in nearest_tasks(QUESTIONS, texts_of)] == ["Quora", "MRPC"]
    captions = ["A man is cutting an onion.", "A woman is slicing bread."]
    assert nearest_tasks(captions, texts_of)[0].name == "STSb"


def test_without_texts_it_is_stsb_and_without_a_readable_task_an_error() -> None:
    def none(task: StandardTask) -> list[str]:
        raise UserError(f"{task.name}: not here")

    assert [task.name for task in nearest_tasks([], none)] == ["STSb"]
    with pytest.raises(UserError, match="STSb: not here"):
        nearest_tasks(QUESTIONS, none)


def test_dev_and_test_of_a_standard_task_share_no_record() -> None:
    for task in STANDARD_TASKS:
        parts = [(each.get("split"), each.get("part", {}).get("take")) for each in (task.dev, task.test)]
        assert parts[0] != parts[1]
        if "part" in task.test:
            assert task.dev["part"] == {**task.test["part"], "take": "dev"}


def test_a_sentence_is_paired_with_the_nearest_and_with_any_other_and_no_pair_comes_twice() -> None:
    sentences = [f"The printer on floor {floor} prints {floor} pages." for floor in range(60)]
    sentences += ["Cats sleep all day.", "My cats sleep at night.", "Cats sleep all day."]
    pairs = pairs_of(sentences)
    assert pairs == pairs_of(sentences)
    assert {"Cats sleep all day.", "My cats sleep at night."} in map(set, pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) > 62
    assert all(one != other for one, other in pairs)
    assert pairs_of(["alone"]) == []


def data_of(kind: RecordKind, records: list[Record]) -> SyntheticDataset:
    return SyntheticDataset.create(kind, records)


def graded(number: int, last: float = 0.8) -> SyntheticDataset:
    return data_of(
        RecordKind.SCORED_PAIR,
        [
            ScoredPair(id=str(each), sentence1=f"a {each}", sentence2="b", score=last if each else 0.2)
            for each in range(number)
        ],
    )


def test_graded_pairs_are_a_dev_set_beside_the_standard_tasks(tmp_path: Path) -> None:
    study = contest().with_dev({"STSb-dev": {"task": "STSb", "split": "dev"}}, {"STSb-dev": "sts"})
    found = GradedPairs(tmp_path / "study.yaml", []).use(graded(60), study)
    lines = (tmp_path / "study.dev.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["sentence1,sentence2,score", "a 0,b,0.2", "a 1,b,0.8"]
    document = found.phase("pilot", [])
    assert document["defaults"]["evaluate"] == {
        "sts": {"evaluator": "sts", "tasks": ["STSb-dev", "synthetic"]}
    }
    assert document["table"]["averages"] == {"dev": ["STSb-dev", "synthetic"]}
    assert "averages" not in found.final([]).get("table", {})


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (graded(3), "the LLM graded 3 pairs; at least 50 are needed"),
        (graded(60, last=0.2), "the LLM gave all 60 pairs the same grade"),
        (graded(60), ""),
    ],
)
def test_grades_that_tell_nothing_say_why(made: SyntheticDataset, why: str) -> None:
    assert GradedPairs(Path("study.yaml"), []).why_useless(made) == why


def test_grades_that_people_corrected_are_never_overwritten(tmp_path: Path) -> None:
    pairs = GradedPairs(tmp_path / "study.yaml", ["one text", "another text"])
    pairs.use(graded(60), contest())
    pairs.use(graded(60), contest())
    mine = (tmp_path / "study.dev.csv").read_text(encoding="utf-8").replace("0.8", "0.6")
    (tmp_path / "study.dev.csv").write_text(mine, encoding="utf-8")
    with pytest.raises(UserError) as refused:
        pairs.use(graded(60), contest())
    assert "(`dev: study.dev.csv` in `sources`), else move it" in refused.value.messages[0]
    assert (tmp_path / "study.dev.csv").read_text(encoding="utf-8") == mine


def test_graded_pairs_with_carriage_returns_are_written_again(tmp_path: Path) -> None:
    pairs = [
        ScoredPair(id=str(each), sentence1=f"a\r\nb {each}", sentence2="c", score=0.5) for each in range(2)
    ]
    for _ in range(2):
        GradedPairs(tmp_path / "study.yaml", []).use(data_of(RecordKind.SCORED_PAIR, [*pairs]), contest())
    assert b"a\r\nb 0" in (tmp_path / "study.dev.csv").read_bytes()


def test_the_file_to_grade_is_renewed_unless_it_is_another(tmp_path: Path) -> None:
    file = tmp_path / "study.dev-pairs.csv"
    for texts in (["one text", "another text"], ["a new text", "and another text"]):
        GradedPairs(tmp_path / "study.yaml", texts).document(contest())
        assert texts[0] in file.read_text(encoding="utf-8")
    file.write_text("mine\n", encoding="utf-8")
    with pytest.raises(UserError):
        GradedPairs(tmp_path / "study.yaml", texts).document(contest())


def test_written_questions_are_dev_and_test_set_of_a_search_study(tmp_path: Path) -> None:
    passages = [Sentence(id=f"p{each}", sentence=f"passage {each}") for each in range(60)]
    asked: list[Record] = [
        Pair(
            id=str(each), anchor=f"q {each}", positive=f"passage {each}", split="dev" if each % 2 else "train"
        )
        for each in range(60)
    ]
    made = data_of(RecordKind.PAIR, asked)
    written = WrittenQuestions(
        tmp_path / "study.yaml", data_of(RecordKind.SENTENCE, [*passages]), {"file": "passages.csv"}
    )
    assert written.why_useless(made) == ""
    for _ in range(2):
        found = written.use(made, contest())
    assert len((tmp_path / "study.dev/qrels/test.tsv").read_text(encoding="utf-8").splitlines()) == 31
    assert found.final([])["defaults"]["evaluate"] == {
        "retrieval": {"evaluator": "retrieval", "tasks": ["test"]}
    }
    assert found.long["sources"]["dev"] == {"corpus": "study.dev", "split": "dev"}
    assert [each.name for each in tmp_path.iterdir()] == ["study.dev"]
    (tmp_path / "study.dev/queries.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(UserError, match="differs from what recommend would write"):
        written.use(made, contest())


@pytest.mark.parametrize(
    ("passage", "prompts", "said"),
    [
        ("The bees fly out in spring when it is warm enough.", None, "about your passages. "),
        ("Die Bienen fliegen im Frühling aus, sobald es warm genug ist.", "de", "about your passages. "),
        ("蜜蜂在春天天气足够暖和的时候飞出来采蜜。", "zh", "about your passages. "),
        (
            "Les abeilles sortent au printemps dès qu'il fait assez chaud.",
            None,
            "in fr; it was asked in English",
        ),
    ],
)
def test_questions_are_asked_for_in_the_passages_language_where_there_are_prompts(
    passage: str, prompts: str | None, said: str, tmp_path: Path
) -> None:
    passages = data_of(RecordKind.SENTENCE, [Sentence(id="0", sentence=passage)])
    written = WrittenQuestions(tmp_path / "study.yaml", passages, {"file": "passages.csv"})
    (row,) = written.document(contest())["variants"].values()
    assert row["data"]["synthetic"].get("prompts") == prompts
    assert said in written.said(data_of(RecordKind.PAIR, []))


SENTENCES = "{sentences: {sandbox: sentences, split: train, size: 300, domains: [sport, traffic]}}"
SHORT = "&short {train: {epochs: null, least_steps: null, max_steps: 4}}"


@pytest.mark.experiments
def test_a_study_without_gold_is_answered_on_standard_tasks_and_a_synthetic_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNTHBENCH_HOME", str(tmp_path / ".synthbench"))
    file = small_study(tmp_path, variants=f"{{untrained: , syncse-partial: {SHORT}}}")
    text = file.read_text(encoding="utf-8")
    text = text[: text.index("sources:")] + f"sources: {SENTENCES}\n" + text[text.index("llm:") :]
    file.write_text(text.partition("  gold-only:")[0], encoding="utf-8")
    given = Overrides(profile="sandbox")
    found = recommender_of(file, given, PlainProgress(), jobs=1, output=Path("reports"))
    answer = found.run()
    assert set(found.study.devs) == {"STSb-dev", "SICK-R-dev", "synthetic"}
    assert {row.amount for row in found.known.rows["syncse-partial"]} <= set(range(241))
    assert PhaseRow("untrained") in found.known.rows["untrained"]
    page = markdown_page(answer)
    assert "Its agreement with people is unknown" in page
    assert "no gold pairs and no test set" not in page
